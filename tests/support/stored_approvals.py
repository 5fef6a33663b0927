"""A state machine that tries to publish a folder that no person approved.

Hypothesis drives the real ledger, store, verifier, and probe with real folders, links, mounts, and
kills. `support.approval_model` says which folders may be published.

Run it where it may mount: `python -m support.stored_approvals EXAMPLES STEPS MEMORY CHOICE`. It
mounts a tmpfs on the working directory. CHOICE is `fixed` or `random`. It prints the number of
steps of each kind.
"""

from __future__ import annotations

import copy
import ctypes
import itertools
import json
import os
import shutil
import subprocess
import sys
from collections import Counter
from collections.abc import Iterable
from pathlib import Path

import anyio
from anyio.lowlevel import checkpoint
from hypothesis import HealthCheck, Phase, settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    rule,
    run_state_machine_as_test,
)

from rootsd.state.store.opening import DATABASE_NAME
from support.approval_model import ApprovalModel, within
from support.ledger_process import LedgerProcess, Memory, State
from support.repositories import fake_repository
from support.stores import small_reserve

_MS_BIND = 4096
_MNT_DETACH = 2
_LONGEST_SPIN = 60_000  # rounds of a loop, some ms: during an order, or after it
_libc = ctypes.CDLL(None, use_errno=True)
_numbers = itertools.count(1)
_tops = itertools.count(1)
steps: Counter[str] = Counter()

LINK = -1
NAMES = ("a", "b", "acme/c", "acme/d")
RULES = ("acme", "a", "b")
MOST_RULES = 3
slots = st.sampled_from(NAMES)
numbers = st.integers(0, 11)
orders = st.sampled_from(["approve", "deny", "rule approve", "rule deny"])
verdicts = st.sampled_from(["approve", "deny"])


class StoredApprovals(RuleBasedStateMachine):
    """Acts as people, programs, and power cuts, and checks the published folders after each
    step.
    """

    memory = Memory.IDENTITY

    @initialize()
    def begin(self) -> None:
        self.top = Path.cwd() / "disk" / str(next(_tops))
        (self.top / "src" / "acme").mkdir(parents=True)
        self.pool = self.top / "pool"
        self.pool.mkdir()
        self.promise = ApprovalModel(lambda folder, path: within(path, folder))
        self.lies: dict[bytes, int] = {}
        self.below: dict[str, int] = {}
        self.copied: tuple[ApprovalModel, int] | None = None
        paths = [os.fsdecode(self.path(name)) for name in NAMES]
        self.keeper = LedgerProcess(self.top / "state", paths, self.memory)
        self.check(self.keeper.start())
        for name in NAMES[:3]:
            self.put(name)
        self.look()

    def path(self, name: str) -> bytes:
        return os.fsencode(self.top / "src" / name)

    def there(self, name: str) -> int | None:
        """Return the number of the folder at a name, LINK, or None."""
        return self.lies.get(self.path(name))

    def put(self, name: str) -> None:
        fake_repository(Path(os.fsdecode(self.path(name))))
        self.lies[self.path(name)] = next(_numbers)

    def look(self) -> None:
        self.check(self.keeper.order("look", ""))

    def check(self, state: State) -> None:
        """Check the invariant of the contract in both states that the ledger process reports."""
        at_once, later = ({os.fsencode(path) for path in told} for told in state["told"])
        assert at_once <= self.may_be_told_before_a_look(), f"told at once: {at_once}"
        for path in map(self.path, NAMES):
            self.sight(path)
        self.promise.settle()
        may, must = self.promise.published(), self.promise.certainly_published()
        assert must <= later <= may, f"told {later}, must be {must}, may be {may}"
        self.state = state
        # The control must fail by a wrong published folder.
        assert self.memory is Memory.PATH or self.stored() == self.promised(self.promise)

    def may_be_told_before_a_look(self) -> set[bytes]:
        """Return the folders that a person approved at their paths, and those under a rule."""
        ruled = {path for path in self.lies if self.promise.ruled(path, approve=True)}
        words = {path: each.word for path, each in self.promise.folders.items() if each.word}
        own = {path for path, number in self.lies.items() if words.get(path) == number}
        return {path for path in ruled | own if not self.promise.denied(path)} - self.links()

    def links(self) -> set[bytes]:
        return {path for path, number in self.lies.items() if number == LINK}

    def sight(self, path: bytes) -> None:
        number = self.lies.get(path)
        if number is not None and number != LINK:
            self.promise.sight(path, number, None, whole=True)
        elif path in self.promise.folders:
            if number == LINK:
                self.promise.endanger(path)
            self.promise.lose(path, proven=True)

    def stored(self) -> tuple[object, ...]:
        return tuple(self.state[key] for key in ("approved", "denied", "rules", "lapsed"))

    def promised(self, promise: ApprovalModel) -> tuple[object, ...]:
        kept = {os.fsencode(path) for path in self.state["approved"]}
        words = {path: each.word for path, each in promise.folders.items() if each.word}
        for path in words.keys() - self.lies.keys() - kept:
            # The approval of a moved folder's old path ends, if it may be approved at the new one.
            if list(words.values()).count(words[path]) > 1:
                promise.forget(path)
        folders = sorted((os.fsdecode(path), each) for path, each in promise.folders.items())
        return (
            [path for path, each in folders if each.word],
            [path for path, each in folders if each.denied],
            sorted(promise.rules),
            sorted(promise.lapsed),
        )

    def one_of(self, names: Iterable[str], number: int) -> str | None:
        """Draw a name independently of the state, since a kill may leave either state."""
        fitting = sorted(names)
        return fitting[number % len(fitting)] if fitting else None

    def folders(self) -> list[str]:
        return [name for name in NAMES if (self.there(name) or LINK) != LINK]

    def movable(self) -> list[str]:
        return [n for n in NAMES if self.there(n) is not None and n not in self.below]

    # A person's decisions

    @rule(number=numbers, verb=verdicts)
    def decide(self, number: int, verb: str) -> None:
        if (name := self.one_of(self.folders(), number)) is None:
            return
        steps[verb] += 1
        self.say(self.promise, verb, self.path(name))
        self.check(self.keeper.order(verb, os.fsdecode(self.path(name))))

    @rule(name=st.sampled_from(RULES), verb=verdicts)
    def make_or_take_back_a_rule(self, name: str, verb: str) -> None:
        if len(self.promise.rules) < MOST_RULES:
            steps[f"rule {verb}"] += 1
            self.say(self.promise, f"rule {verb}", self.path(name))
            self.check(self.keeper.order(f"rule {verb}", os.fsdecode(self.path(name))))
            return
        steps["rule rm"] += 1
        number = min(self.promise.rules)
        del self.promise.rules[number]
        self.check(self.keeper.order("rule rm", str(number)))

    @rule()
    def approve_rules_again(self) -> None:
        if self.promise.lapsed:
            steps["rules again"] += 1
            self.promise.approve_rules_again()
            self.check(self.keeper.order("rules again", ""))

    def say(self, promise: ApprovalModel, verb: str, what: bytes) -> None:
        match verb:
            case "approve":
                if not promise.ruled(what, approve=False):  # a deny rule refuses the approval
                    promise.approve(what)
            case "deny":
                promise.deny(what)
            case _:
                promise.add_rule(what, approve=verb == "rule approve")

    # Changes of folders

    @rule(number=numbers)
    def delete(self, number: int) -> None:
        if name := self.one_of(self.movable(), number):
            steps["delete"] += 1
            self.remove(name)
            self.look()

    @rule(number=numbers)
    def make_anew(self, number: int) -> None:
        if name := self.one_of(set(NAMES) - set(self.below), number):
            steps["recreate"] += 1
            if self.there(name) is not None:
                self.remove(name)
            self.put(name)
            self.look()

    def remove(self, name: str) -> None:
        path = Path(os.fsdecode(self.path(name)))
        path.unlink() if path.is_symlink() else shutil.rmtree(path)
        del self.lies[self.path(name)]

    @rule(number=numbers, to=slots)
    def move_or_swap(self, number: int, to: str) -> None:
        name = self.one_of(set(self.movable()) - {to}, number)
        if name is None or to in self.below:
            return
        lies, here, there = self.lies, self.path(name), self.path(to)
        if self.there(to) is None:
            steps["move"] += 1
            os.rename(here, there)
            lies[there] = lies.pop(here)
        else:
            steps["swap"] += 1
            between = os.fsencode(self.top / "between")
            for source, target in ((here, between), (there, here), (between, there)):
                os.rename(source, target)
            lies[here], lies[there] = lies[there], lies[here]
        self.look()

    @rule(number=numbers, to=slots)
    def swap_for_a_link(self, number: int, to: str) -> None:
        if name := self.one_of(set(self.movable()) - {to}, number):
            steps["swap for a link"] += 1
            path = Path(os.fsdecode(self.path(name)))
            path.rename(self.pool / str(next(_numbers)))
            path.symlink_to(os.fsdecode(self.path(to)))
            self.lies[self.path(name)] = LINK
            self.look()

    @rule(number=numbers)
    def mount_over_or_unmount(self, number: int) -> None:
        name = self.one_of(set(self.folders()) - set(self.below), number)
        if self.below and (name is None or number % 2):
            steps["unmount"] += 1
            self.unmount()
        elif name is not None:
            steps["mount over"] += 1
            self.mount_over(name)
        self.look()

    def mount_over(self, name: str) -> None:
        number = next(_numbers)
        other = os.fsencode(fake_repository(self.pool / str(number)))
        if _libc.mount(other, self.path(name), None, _MS_BIND, None) != 0:
            raise OSError(ctypes.get_errno(), "the mount was refused")
        self.below[name] = self.lies[self.path(name)]
        self.lies[self.path(name)] = number

    def unmount(self) -> None:
        name, number = self.below.popitem()
        _libc.umount2(self.path(name), _MNT_DETACH)
        self.lies[self.path(name)] = number

    # Changes of the daemon and its store

    @rule(number=numbers, verb=orders, spin=st.integers(0, _LONGEST_SPIN))
    def kill_amid_an_order(self, number: int, verb: str, spin: int) -> None:
        if (name := self.one_of(self.folders(), number)) is None:
            return
        steps["kill"] += 1
        self.keeper.send(verb, os.fsdecode(self.path(name)))
        for _ in range(spin):
            pass
        acknowledged = self.keeper.kill()
        obeyed = copy.deepcopy(self.promise)
        self.say(obeyed, verb, self.path(name))
        self.state = self.keeper.start()
        if acknowledged or self.stored() == self.promised(obeyed):
            steps["killed after the order"] += 1
            self.promise = obeyed
        self.check(self.state)

    @rule()
    def copy_or_restore_the_store(self) -> None:
        store = self.top / "state" / DATABASE_NAME
        if self.copied is None:
            steps["copy the store"] += 1
            shutil.copy(store, self.top / "copy")
            self.copied = copy.deepcopy(self.promise), self.state["seq"]
            return
        steps["restore the store"] += 1
        old, seq = self.copied
        self.keeper.kill()
        shutil.copy(self.top / "copy", store)
        if seq != self.state["seq"]:
            self.promise.lose_the_end_of(old)
        self.copied = None
        self.check(self.keeper.start())

    def teardown(self) -> None:
        if not hasattr(self, "keeper"):
            return
        self.keeper.kill()
        while self.below:
            self.unmount()
        shutil.rmtree(self.top)


def main() -> None:
    """Run the state machine, and print the counts."""
    examples, count = int(sys.argv[1]), int(sys.argv[2])
    StoredApprovals.memory = Memory(sys.argv[3])
    is_own = StoredApprovals.memory is Memory.IDENTITY  # for the control, any failure is enough
    disk = Path.cwd() / "disk"
    disk.mkdir()
    subprocess.run(["mount", "-t", "tmpfs", "tmpfs", disk], check=True)
    disk.chmod(0o755)
    anyio.run(checkpoint)  # load modules once, so that each forked process has them
    with small_reserve():
        run_state_machine_as_test(
            StoredApprovals,
            settings=settings(
                max_examples=examples,
                stateful_step_count=count,
                derandomize=sys.argv[4] == "fixed",
                database=None,
                deadline=None,
                suppress_health_check=list(HealthCheck),
                report_multiple_bugs=False,
                phases=[Phase.generate, *([Phase.shrink] if is_own else [])],
            ),
        )
    print(json.dumps(steps))  # noqa: T201 - this is what the test reads


if __name__ == "__main__":
    main()
