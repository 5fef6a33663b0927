"""Say in a few words what a person should know before approving a project.

A risk is a group of findings (`rootsd.vcs.facts`). The words contain names that the author of the
project chose, so print them as a label.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from enum import StrEnum
from types import MappingProxyType
from typing import TypedDict


class FindingKind(StrEnum):
    """The kind of a finding."""

    SENSITIVE = "sensitive"
    EXECUTED = "executed"
    NESTED = "nested"
    ABSENT = "absent"
    ELSEWHERE = "elsewhere"


class FindingItem(TypedDict):
    """Something in a project that a person should know."""

    concern: str
    """A value of `FindingKind`. `elsewhere` means that the git data is in another place and does
    not link back to the project, and `absent` that a submodule was not cloned.
    """
    path: str
    """Where it is, relative to the project."""
    detail: str
    """The setting, the kind of the nested or absent project, or the other place. May be empty."""


class Risk(StrEnum):
    """A kind of risk. The order is that of their weight."""

    RUNS_CODE = "runs-code"
    """Agents or git execute something in the project."""
    SECRETS = "secrets"
    """A file looks like one with secrets."""
    OUTSIDE = "outside"
    """The git data is in another place and does not link back."""


class RiskLimit(StrEnum):
    """The risks that an approve rule accepts."""

    NONE = "none"


_RISKS: Mapping[str, Risk] = MappingProxyType(
    {
        FindingKind.EXECUTED: Risk.RUNS_CODE,
        FindingKind.SENSITIVE: Risk.SECRETS,
        FindingKind.ELSEWHERE: Risk.OUTSIDE,
    }
)
UNREAD = "?"
_TITLES = {Risk.RUNS_CODE: "runs code", Risk.SECRETS: "secrets", Risk.OUTSIDE: "git data outside"}
_MAX_NAMES = 3
_MAX_NAME_LENGTH = 40
# Other names are quoted. Otherwise, a name could look like another risk.
_PLAIN = re.compile(r"[\w.@/+-]+(?: [\w.@/+-]+)*")
_GIT_HOOKS = ".git/hooks/"


def risks_in(findings: Iterable[FindingItem]) -> Mapping[Risk, list[str]]:
    """Return the risks of findings in `rootsd/1`, by weight, with the names of their places."""
    found: dict[Risk, list[str]] = {risk: [] for risk in Risk}
    for finding in findings:
        risk = _RISKS.get(finding["concern"])
        if risk is not None and (name := _name_of(risk, finding)) not in found[risk]:
            found[risk].append(name)
    return {risk: names for risk, names in found.items() if names}


def describe_risks(findings: Iterable[FindingItem], *, is_whole: bool) -> str:
    """Return the risks in words, such as `runs code: .mcp.json, hooks; secrets: .env`.

    The result is empty if there are none. It ends with a question mark if not `is_whole`, so if
    there may be more.
    """
    parts = []
    for risk, names in risks_in(findings).items():
        shown = [_short(name) for name in names[:_MAX_NAMES]]
        shown += [f"{len(names) - _MAX_NAMES} more"] if len(names) > _MAX_NAMES else []
        parts.append(f"{_TITLES[risk]}: {', '.join(shown)}")
    return "; ".join(parts if is_whole else [*parts, UNREAD])


def _name_of(risk: Risk, finding: FindingItem) -> str:
    path = finding["path"]
    if risk is Risk.OUTSIDE:
        return finding["detail"]
    if risk is Risk.RUNS_CODE and path.startswith(_GIT_HOOKS):
        return "hooks"
    if risk is Risk.RUNS_CODE and path == ".git/config":
        return "git config"
    return path.rstrip("/")


def _short(name: str) -> str:
    if len(name) > _MAX_NAME_LENGTH:
        name = f"{name[: _MAX_NAME_LENGTH - 1]}\u2026"
    return name if _PLAIN.fullmatch(name.removesuffix("\u2026")) else f'"{name}"'
