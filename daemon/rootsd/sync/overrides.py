"""Find the denials that other settings of the same client take away.

A client merges several files, and some variables. Those of a person are read back after each
write. So are the files of published projects, which rootsd never edits: a project whose file wins
is named. Not read is what lies deeper in a project, and what the files of an agent say.

Sources: runs of opencode 1.18.33 and of Codex 0.169.0, as of November 2026, and
tests/e2e/agents/test_sync_lists.py.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any

from msgspec import Struct

from rootsd.core.labels import safe_label
from rootsd.disk.reader import CONFIG_CAP, read_small
from rootsd.settings import json_spans, toml_spans
from rootsd.settings.errors import NotEditable
from rootsd.sync import opencode_rules
from rootsd.sync.opencode_rules import AccessRule
from rootsd.sync.targets import SyncTarget

_MAX_PROJECTS = 500
_SUFFIX = "/**"
_RULE_LIMIT = 120
_NAMES = ("opencode.json", "opencode.jsonc")
_MANAGED = "/Library/Application Support" if sys.platform == "darwin" else "/etc"
# In the settings of a project that Codex trusts, each of them replaces a part of our profile.
_CODEX_KEYS = ("default_permissions", "permissions", "sandbox_mode")

Values = Mapping[str, Any]


class WrittenDenials(Struct, frozen=True):
    """The `names` of the denials that are in the settings `file` of a client.

    `variables` are those of this process. The client may have others.
    """

    target: SyncTarget
    file: str
    names: tuple[str, ...]
    variables: Mapping[str, str]

    def lost(self) -> list[str]:
        """Return a sentence for each folder that the client denies in no session."""
        if self.target.name != "opencode":
            return []
        return [
            f"{folder} is not denied there: {rule or 'another rule'} in the settings applies"
            " instead"
            for folder, rule in OpencodeSettings(self, _home()).lost((), self.folders()).items()
        ]

    def lost_in(self, projects: Sequence[str]) -> list[str]:
        """Return a sentence for each of `projects` whose own files take denials away."""
        find = _IN_PROJECTS.get(self.target.name)
        if find is None or not self.names:
            return []
        return [
            f"a session in {safe_label(project, limit=None)} can open denied folders: {why}"
            for project, why in find(self, projects[:_MAX_PROJECTS])
        ]

    def folders(self) -> list[str]:
        """Return the denied folders, from patterns for everything in them."""
        return [name.removesuffix(_SUFFIX) for name in self.names]


class OpencodeSettings:
    """The settings that opencode merges: those before a project's, ours, and later ones."""

    def __init__(self, written: WrittenDenials, home: str) -> None:
        target, variables = written.target, written.variables
        moved = variables.get("XDG_CONFIG_HOME", "")
        folder = os.path.join(moved if os.path.isabs(moved) else f"{home}/.config", "opencode")
        added = variables.get("OPENCODE_CONFIG", "")
        self._before = _files(
            [f"{folder}/{name}" for name in ("config.json", *_NAMES)]
            + ([added] if os.path.isabs(added) else [])
        )
        usual = target.settings_file(home, {})
        places = [usual] if os.path.dirname(usual) != os.path.dirname(written.file) else []
        ours = [each for file in (*places, written.file) for each in target.merged_files(file)]
        managed = [f"{_MANAGED}/opencode/{name}" for name in _NAMES]
        content = _parsed(variables.get("OPENCODE_CONFIG_CONTENT", ""))
        permission = _parsed(variables.get("OPENCODE_PERMISSION", ""))
        after = [content, *_files(managed), {"permission": permission}]
        self._after = [*_files(ours), *after]

    def lost(self, theirs: Iterable[Values], folders: Iterable[str]) -> dict[str, str]:
        """Return each of `folders` that is open in a project with the settings `theirs`."""
        return opencode_rules.without_denial(self.rules(theirs), folders)

    def rules(self, theirs: Iterable[Values]) -> list[AccessRule]:
        """Return the merged rules in a project with the settings `theirs`."""
        return opencode_rules.folder_rules([*self._before, *theirs, *self._after])


def project_settings(project: str) -> list[Values]:
    """Return what opencode merges from the top folder of a project."""
    places = (project, f"{project}/.opencode")
    return _files(f"{place}/{name}" for place in places for name in _NAMES)


def _in_opencode_projects(
    written: WrittenDenials, projects: Sequence[str]
) -> Iterator[tuple[str, str]]:
    settings = OpencodeSettings(written, _home())
    everywhere = settings.lost((), written.folders())
    folders = [each for each in written.folders() if each not in everywhere]
    for project in projects:
        theirs = project_settings(project)
        if theirs and (lost := settings.lost(theirs, folders)):
            rule = next(iter(lost.values())) or "another rule"
            yield project, f"{safe_label(rule, _RULE_LIMIT)} in its settings for opencode applies"


def _in_codex_projects(
    written: WrittenDenials, projects: Sequence[str]
) -> Iterator[tuple[str, str]]:
    del written  # any of them is lost
    for project in projects:
        values = _read(f"{project}/.codex/config.toml", toml_spans.parse)
        if found := [key for key in _CODEX_KEYS if key in values]:
            yield project, f"its .codex/config.toml has {found[0]}, which wins if Codex trusts it"


_IN_PROJECTS = {"opencode": _in_opencode_projects, "codex": _in_codex_projects}


def reads_projects(target: SyncTarget) -> bool:
    """Return whether files of a project can take away what is denied in `target`."""
    return target.name in _IN_PROJECTS


def _home() -> str:
    return os.path.expanduser("~")


def _files(paths: Iterable[str]) -> list[Values]:
    """Return the values of the files that are there."""
    return [found for path in paths if (found := _read(path, _json))]


def _read(path: str, parse: Callable[[str], Values]) -> Values:
    """Return the values of a file. Without a valid one, the client does not start, or has none."""
    text = read_small(os.path.realpath(os.fsencode(path)), CONFIG_CAP)
    try:
        return parse(text.decode()) if text else {}
    except (NotEditable, UnicodeDecodeError):
        return {}


def _json(text: str) -> Values:
    value = json_spans.parse(text).value if text.strip() else {}
    return value if isinstance(value, dict) else {}


def _parsed(text: str) -> Values:
    try:
        return _json(text)
    except NotEditable:
        return {}
