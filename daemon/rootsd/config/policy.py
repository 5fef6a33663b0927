"""Read and validate the machine's policy: `/etc/rootsd/policy.toml`.

It is validated like `config.toml`. But a file that cannot be used does not leave an earlier policy
in force: that would depend on when the daemon started. Instead, it denies everything until it is
repaired.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from typing import NamedTuple, cast

from rootsd.config.parent_paths import canonical_path, expand_account_home
from rootsd.config.policy_file import read_policy_text
from rootsd.config.policy_schema import PolicyRuleTable, PolicyTables, PolicyVerdict
from rootsd.config.validation import (
    ConfigProblem,
    TableValidator,
    invalid_file,
    line_of,
    syntax_error,
)
from rootsd.core.errors import BadConfig
from rootsd.core.labels import safe_label
from rootsd.core.parsing import Unparsable, parse_toml
from rootsd.core.paths import PathError, PolicyEntry, bytes_of, text_of
from rootsd.core.policy import NO_POLICY, MachinePolicy, broken_policy
from rootsd.core.rules import escape_pattern, normalize_pattern, split_pattern
from rootsd.settings.toml_spans import KeyPath, find_lines


class LoadedPolicy(NamedTuple):
    """The policy in force. If it is broken, `remedy` is the command that helps."""

    policy: MachinePolicy
    remedy: str = ""


def load_policy(file: bytes) -> LoadedPolicy:
    """Return the policy in `file`. A file that cannot be used gives a policy that is broken."""
    try:
        return LoadedPolicy(read_policy(file))
    except BadConfig as error:
        return LoadedPolicy(broken_policy(error.summary), error.remedy)


def read_policy(file: bytes) -> MachinePolicy:
    """Return the policy in `file`, or NO_POLICY if there is no such file.

    Raises BadConfig with every problem of the file.
    """
    text = read_policy_text(file)
    return NO_POLICY if text is None else parse_policy(text, file)


def parse_policy(text: str, file: bytes) -> MachinePolicy:
    """Return the policy in `text`. Error messages name `file`. Raises BadConfig."""
    remedy = f"sudoedit {safe_label(file, limit=None)}"
    try:
        tables = parse_toml(text)
    except Unparsable as error:
        raise syntax_error(file, error, remedy) from error
    validator = TableValidator()
    values = validator.convert(tables, PolicyTables, ())
    reader = _EntryReader(file, find_lines(text), validator.problems)
    policy = NO_POLICY if values is None else reader.policy(values)
    if validator.problems:
        raise invalid_file(file, text, validator.problems, remedy)
    return policy


class _EntryReader:
    """Turns the tables into a policy whose entries know their lines, and collects problems."""

    def __init__(
        self, file: bytes, lines: Mapping[KeyPath, int], problems: list[ConfigProblem]
    ) -> None:
        self._shown = safe_label(file, limit=None)
        self._lines = lines
        self._problems = problems

    def policy(self, values: PolicyTables) -> MachinePolicy:
        return MachinePolicy(
            tuple(self._places(values)),
            tuple(self._patterns(values, PolicyVerdict.DENY)),
            tuple(self._patterns(values, PolicyVerdict.APPROVE)),
            requires_wall=values.confine.required,
            is_present=True,
        )

    def _places(self, values: PolicyTables) -> Iterator[PolicyEntry]:
        """Yield each place under its canonical path, and as it is written if that differs.

        Somebody may replace a symlink on the way by a folder.
        """
        key = ("roots", "refuse")
        for typed in values.roots.refuse:
            if (path := self._absolute(typed, key)) is not None:
                written = bytes_of(os.path.normpath(path))
                for place in dict.fromkeys((canonical_path(path), written)):
                    yield self._entry(place, key)

    def _patterns(self, values: PolicyTables, verdict: PolicyVerdict) -> Iterator[PolicyEntry]:
        """Yield the patterns with this verdict, below canonical folders.

        A deny rule also counts as it is written.
        """
        # The validator puts None in place of a table with a problem.
        tables = cast("list[PolicyRuleTable | None]", values.rule)
        for index, table in enumerate(tables):
            if table is None or table.verdict is not verdict:
                continue
            key = ("rule", index, "pattern")
            if (path := self._absolute(table.pattern, key)) is None:
                continue
            try:
                written = normalize_pattern(bytes_of(path))
            except PathError as error:
                self._add(key, f"{safe_label(table.pattern)} is not a valid pattern: {error}")
                continue
            folder, rest = split_pattern(written)
            real = canonical_path(text_of(folder))
            patterns = [normalize_pattern(b"/".join((escape_pattern(real), rest)))]
            if verdict is PolicyVerdict.DENY:
                patterns.append(written)
            for pattern in dict.fromkeys(patterns):
                yield self._entry(pattern, key)

    def _entry(self, pattern: bytes, key: KeyPath) -> PolicyEntry:
        return PolicyEntry(pattern, f"{self._shown}, line {line_of(key, self._lines)}")

    def _absolute(self, typed: str, key: KeyPath) -> str | None:
        if (path := expand_account_home(typed)).startswith("/"):
            return path
        self._add(key, f"{safe_label(typed)} does not start with / or ~/, or has no such user")
        return None

    def _add(self, key: KeyPath, text: str) -> None:
        self._problems.append(ConfigProblem(key, text))
