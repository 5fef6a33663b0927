"""Find the denials that other settings of the same client take away.

A client merges several files, and some variables. Those of a person are read back after each
write. So are the files of published projects, which rootsd never edits: a project whose file wins
is named. Not read is what lies deeper in a project, and what the files of an agent say.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from msgspec import Struct

from rootsd.agents.forms.access import InProject, InVariable, ReplacingKeys
from rootsd.agents.forms.client import JSON, TOML
from rootsd.agents.forms.place import Platform, SettingsPlace
from rootsd.core.labels import safe_label
from rootsd.disk.reader import CONFIG_CAP, read_small
from rootsd.settings.errors import NotEditable
from rootsd.settings.formats import SettingsFormat
from rootsd.sync.merged_rules import AccessRule, folder_rules, without_denial
from rootsd.sync.targets import SyncTarget

_MAX_PROJECTS = 500
_RULE_LIMIT = 120

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
        if not self.target.format.merges:
            return []
        lost = self.without_denial(AllSettings(self, _home()).rules(), self.folders())
        return [
            f"{folder} is not denied there: {rule or 'another rule'} in the settings applies"
            " instead"
            for folder, rule in lost.items()
        ]

    def lost_in(self, projects: Sequence[str]) -> dict[str, str]:
        """Return a sentence for each of `projects` whose own files take denials away."""
        some = projects[:_MAX_PROJECTS] if self.names else ()
        found: Iterator[tuple[str, str]]
        if (replaced_by := self.target.format.replaced_by) is not None:
            found = _in_replacing(replaced_by, some)
        elif self.target.format.merges:
            found = _in_merged(self, some)
        else:
            return {}
        return {
            project: f"a session in {shown} can open denied folders: {why}"
            for project, why in found
            if (shown := safe_label(project, limit=None))
        }

    def folders(self) -> list[str]:
        """Return the denied folders, from patterns for everything in them."""
        suffix = self.target.format.denial[0].text.removeprefix("{}")
        return [name.removesuffix(suffix) for name in self.names]

    def without_denial(
        self, rules: Sequence[AccessRule], folders: Sequence[str]
    ) -> dict[str, str]:
        """Return each of `folders` that the rules do not deny, with the rule that applies."""
        return without_denial(rules, folders, self.target.format.denial[0].value)


class AllSettings:
    """The settings that a client merges. Those of no project are read once."""

    def __init__(self, written: WrittenDenials, home: str) -> None:
        target = written.target
        self._keys = target.format.denial[0].keys
        own = dict.fromkeys((each.name for each in target.format.place.variables), "")
        variables = {**written.variables, **own, **target.home_variables(written.file)}
        self._sources = [
            each if isinstance(each, InProject) else _values(each, home, variables)
            for each in target.format.merges
        ]

    def rules(self, project: str = "") -> list[AccessRule]:
        """Return the merged rules in a project, or outside of all."""
        settings = (
            _read(f"{project}/{each.path}", JSON) if isinstance(each, InProject) else each
            for each in self._sources
            if project or not isinstance(each, InProject)
        )
        return folder_rules(settings, self._keys)


def _in_merged(written: WrittenDenials, projects: Sequence[str]) -> Iterator[tuple[str, str]]:
    settings = AllSettings(written, _home())
    usual = settings.rules()
    everywhere = written.without_denial(usual, written.folders())
    folders = [each for each in written.folders() if each not in everywhere]
    for project in projects:
        rules = settings.rules(project)
        if rules != usual and (lost := written.without_denial(rules, folders)):
            rule = safe_label(next(iter(lost.values())) or "another rule", _RULE_LIMIT)
            yield project, f"{rule} in its settings for {written.target.name} applies"


def _in_replacing(replacing: ReplacingKeys, projects: Sequence[str]) -> Iterator[tuple[str, str]]:
    for project in projects:
        values = _read(f"{project}/{replacing.path}", TOML)
        if found := [key for key in replacing.keys if key in values]:
            yield project, f"its {replacing.path} has {found[0]}, which {replacing.condition}"


def _home() -> str:
    return os.path.expanduser("~")


def _values(source: SettingsPlace | InVariable, home: str, variables: Mapping[str, str]) -> Values:
    if isinstance(source, SettingsPlace):
        return _read(source.locate(home, variables, Platform(sys.platform)), JSON)
    values: Values = _parsed(os.fsencode(variables.get(source.name, "")), JSON)
    for key in reversed(source.keys):
        values = {key: values}
    return values


def _read(path: str, language: SettingsFormat) -> Values:
    """Return the values of a file, none if it is missing or not valid."""
    return _parsed(read_small(os.path.realpath(os.fsencode(path)), CONFIG_CAP) or b"", language)


def _parsed(text: bytes, language: SettingsFormat) -> Values:
    """Return the values of a text. With one that is not valid, a client does not start."""
    try:
        return language.values(text.decode())
    except (NotEditable, UnicodeDecodeError):
        return {}
