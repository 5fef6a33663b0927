"""The policy of a machine: what its administrator refuses, denies, approves, and requires.

The policy is one more input of `rootsd.core.decide.judge`, so there is one place that decides. It
comes first in the order of precedence, and no order of a user changes it. It never changes a
decision: an approval that it denies is withheld, and counts again once the policy allows it.

While the policy cannot be used, nobody knows what it refuses. Then it denies every project, and
requires the wall. So a broken policy never widens anything.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from rootsd.core.paths import PolicyEntry, refusing_entry
from rootsd.core.rules import matches


class MachinePolicy(NamedTuple):
    """The policy in force.

    * `refused`: places that can never be a root, with everything below and above them.
    * `denied`, `approved`: the patterns of the rules, as in `rootsd.core.rules`.
    * `requires_wall`: whether programs that rootsd starts must be behind the wall.
    * `is_present`: whether there is a policy file.
    * `problem`: why the file cannot be used, as a sentence, or empty. Then it denies everything.
    """

    refused: tuple[PolicyEntry, ...] = ()
    denied: tuple[PolicyEntry, ...] = ()
    approved: tuple[PolicyEntry, ...] = ()
    requires_wall: bool = False
    is_present: bool = False
    problem: str = ""

    @property
    def must_confine(self) -> bool:
        """Return whether the wall is required, which it also is while the policy is broken."""
        return self.requires_wall or bool(self.problem)

    @property
    def summary(self) -> str:
        """Return what the policy says, in a few words."""
        if not self.is_present:
            return "no policy"
        if self.problem:
            return f"it cannot be used, so nothing is published: {self.problem}"
        counts = (
            f"refused places: {len(self.refused)}",
            f"deny rules: {len(self.denied)}",
            f"approve rules: {len(self.approved)}",
            f"wall: {'required' if self.requires_wall else 'not required'}",
        )
        return ", ".join(counts)

    def refused_place(self, path: bytes) -> PolicyEntry | None:
        """Return the refused place that `path` lies in or contains, or None."""
        return refusing_entry(self.refused, path)

    def deny_rule(self, path: bytes) -> PolicyEntry | None:
        """Return the first deny rule that covers `path`, or None."""
        return _first_match(self.denied, path)

    def approve_rule(self, path: bytes) -> PolicyEntry | None:
        """Return the first approve rule that covers `path`, or None.

        A broken policy has none.
        """
        return _first_match(self.approved, path)


NO_POLICY = MachinePolicy()


def broken_policy(problem: str) -> MachinePolicy:
    """Return the policy for a file that cannot be used."""
    return MachinePolicy(is_present=True, problem=problem)


def _first_match(entries: Iterable[PolicyEntry], path: bytes) -> PolicyEntry | None:
    return next((entry for entry in entries if matches(entry.pattern, path)), None)
