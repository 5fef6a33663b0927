"""A reference model of approvals. It follows the contract, not the code."""

from __future__ import annotations

from dataclasses import dataclass, field

LINK = -1


@dataclass
class ApprovalModel:
    """The model of a person's decisions.

    `lies` maps each path to the folder there. `rules` maps a number to the covered folder and
    whether the rule approves. `lapsed` are paths with an approval until a part of the history was
    lost. `doubted` are paths that the lost part may have denied.
    """

    lies: dict[str, int] = field(default_factory=dict)
    approved: dict[str, int] = field(default_factory=dict)
    denied: set[str] = field(default_factory=set)
    rules: dict[int, tuple[str, bool]] = field(default_factory=dict)
    lapsed: dict[int, tuple[str, bool]] = field(default_factory=dict)
    known: set[str] = field(default_factory=set)
    doubted: set[str] = field(default_factory=set)
    next_rule: int = 1

    def approve(self, path: str) -> None:
        """Approve a path. A deny rule that covers it refuses the approval."""
        if not self._ruled(path, approve=False):
            self.denied.discard(path)
            self.doubted.discard(path)
            self.approved[path] = self.lies[path]

    def deny(self, path: str) -> None:
        self.approved.pop(path, None)
        self.doubted.discard(path)
        self.denied.add(path)

    def add_rule(self, folder: str, *, approve: bool) -> None:
        self.rules[self.next_rule] = (folder, approve)
        self.next_rule += 1

    def approve_rules_again(self) -> None:
        self.rules, self.lapsed = self.rules | self.lapsed, {}

    def look(self) -> None:
        """Withdraw the approval of each replaced folder, even if the original comes back."""
        self.known |= set(self.lies)
        for path, number in list(self.approved.items()):
            if self.lies.get(path, number) != number:
                del self.approved[path]

    def follow(self, kept: list[str]) -> None:
        """End the approval of a moved folder's old path, if it may be approved at the new one."""
        for path in self.approved.keys() - self.lies.keys() - set(kept):
            if list(self.approved.values()).count(self.approved[path]) > 1:
                del self.approved[path]

    def lose_the_end_of(self, old: ApprovalModel) -> None:
        """Go back to an older store that knows that it is old."""
        self.approved, self.denied = {}, set(old.denied)
        self.rules = {n: rule for n, rule in old.rules.items() if not rule[1]}
        self.lapsed = old.lapsed | {n: rule for n, rule in old.rules.items() if rule[1]}
        self.known |= old.known
        self.doubted, self.next_rule = set(self.known), old.next_rule

    def may_be_told(self) -> set[str]:
        """Return the folders that clients may get."""
        return {path for path, number in self.lies.items() if number != LINK and self._yes(path)}

    def must_be_told(self) -> set[str]:
        """Return the folders that clients must get, because no denial can be lost."""
        return {p for p in self.may_be_told() if p in self.approved or p not in self.doubted}

    def _yes(self, path: str) -> bool:
        if path in self.denied or self._ruled(path, approve=False):
            return False
        return path in self.approved or self._ruled(path, approve=True)

    def _ruled(self, path: str, *, approve: bool) -> bool:
        rules = self.rules.values()
        return any(yes is approve and f"{path}/".startswith(f"{folder}/") for folder, yes in rules)
