"""A state machine that tries to publish a folder that no person approved.

Hypothesis drives the real ledger, store, verifier, and probe with real folders, links, mounts, and
kills. `support.approval_model` says which folders may be published.

Run it where it may mount: `python -m support.approval_machine EXAMPLES STEPS MEMORY CHOICE`. It
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
from support.approval_model import LINK, ApprovalModel
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

NAMES = ("a", "b", "acme/c", "acme/d")
RULES = ("acme", "a", "b")
MOST_RULES = 3
slots = st.sampled_from(NAMES)
numbers = st.integers(0, 11)
orders = st.sampled_from(["approve", "deny", "rule approve", "rule deny"])
verdicts = st.sampled_from(["approve", "deny"])


class ApprovalMachine(RuleBasedStateMachine):
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
        self.promise = ApprovalModel()
        self.below: dict[str, int] = {}
        self.copied: tuple[ApprovalModel, int] | None = None
        paths = [self.path(name) for name in NAMES]
        self.keeper = LedgerProcess(self.top / "state", paths, self.memory)
        self.check(self.keeper.start())
        for name in NAMES[:3]:
            self.put(name)
        self.look()

    def path(self, name: str) -> str:
        return os.fspath(self.top / "src" / name)

    def lies(self, name: str) -> int | None:
        return self.promise.lies.get(self.path(name))

    def put(self, name: str) -> None:
        fake_repository(Path(self.path(name)))
        self.promise.lies[self.path(name)] = next(_numbers)

    def look(self) -> None:
        self.check(self.keeper.order("look", ""))

    def check(self, state: State) -> None:
        """Check the invariant of the contract in both states that the ledger process reports."""
        at_once, later = (set(told) for told in state["told"])
        assert at_once <= self.promise.may_be_told(), f"told at once: {at_once}"
        self.promise.look()
        may, must = self.promise.may_be_told(), self.promise.must_be_told()
        assert must <= later <= may, f"told {later}, must be {must}, may be {may}"
        self.state = state
        # The control must fail by a wrong published folder.
        assert self.memory is Memory.PATH or self.stored() == self.promised(self.promise)

    def stored(self) -> tuple[object, ...]:
        return tuple(self.state[key] for key in ("approved", "denied", "rules", "lapsed"))

    def promised(self, promise: ApprovalModel) -> tuple[object, ...]:
        promise.follow(self.state["approved"])
        parts = (promise.approved, promise.denied, promise.rules, promise.lapsed)
        return tuple(sorted(part) for part in parts)

    def one_of(self, names: Iterable[str], number: int) -> str | None:
        """Draw a name independently of the state, since a kill may leave either state."""
        fitting = sorted(names)
        return fitting[number % len(fitting)] if fitting else None

    def folders(self) -> list[str]:
        return [name for name in NAMES if (self.lies(name) or LINK) != LINK]

    def movable(self) -> list[str]:
        return [n for n in NAMES if self.lies(n) is not None and n not in self.below]

    # A person's decisions

    @rule(number=numbers, verb=verdicts)
    def decide(self, number: int, verb: str) -> None:
        if (name := self.one_of(self.folders(), number)) is None:
            return
        steps[verb] += 1
        self.say(self.promise, verb, self.path(name))
        self.check(self.keeper.order(verb, self.path(name)))

    @rule(name=st.sampled_from(RULES), verb=verdicts)
    def make_or_take_back_a_rule(self, name: str, verb: str) -> None:
        if len(self.promise.rules) < MOST_RULES:
            steps[f"rule {verb}"] += 1
            self.say(self.promise, f"rule {verb}", self.path(name))
            self.check(self.keeper.order(f"rule {verb}", self.path(name)))
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

    def say(self, promise: ApprovalModel, verb: str, what: str) -> None:
        match verb:
            case "approve":
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
            if self.lies(name) is not None:
                self.remove(name)
            self.put(name)
            self.look()

    def remove(self, name: str) -> None:
        path = Path(self.path(name))
        path.unlink() if path.is_symlink() else shutil.rmtree(path)
        del self.promise.lies[self.path(name)]

    @rule(number=numbers, to=slots)
    def move_or_swap(self, number: int, to: str) -> None:
        name = self.one_of(set(self.movable()) - {to}, number)
        if name is None or to in self.below:
            return
        lies, here, there = self.promise.lies, self.path(name), self.path(to)
        if self.lies(to) is None:
            steps["move"] += 1
            os.rename(here, there)
            lies[there] = lies.pop(here)
        else:
            steps["swap"] += 1
            between = os.fspath(self.top / "between")
            for source, target in ((here, between), (there, here), (between, there)):
                os.rename(source, target)
            lies[here], lies[there] = lies[there], lies[here]
        self.look()

    @rule(number=numbers, to=slots)
    def swap_for_a_link(self, number: int, to: str) -> None:
        if name := self.one_of(set(self.movable()) - {to}, number):
            steps["swap for a link"] += 1
            path = Path(self.path(name))
            path.rename(self.pool / str(next(_numbers)))
            path.symlink_to(self.path(to))
            self.promise.lies[self.path(name)] = LINK
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
        if _libc.mount(other, os.fsencode(self.path(name)), None, _MS_BIND, None) != 0:
            raise OSError(ctypes.get_errno(), "the mount was refused")
        self.below[name] = self.promise.lies[self.path(name)]
        self.promise.lies[self.path(name)] = number

    def unmount(self) -> None:
        name, number = self.below.popitem()
        _libc.umount2(os.fsencode(self.path(name)), _MNT_DETACH)
        self.promise.lies[self.path(name)] = number

    # Changes of the daemon and its store

    @rule(number=numbers, verb=orders, spin=st.integers(0, _LONGEST_SPIN))
    def kill_amid_an_order(self, number: int, verb: str, spin: int) -> None:
        if (name := self.one_of(self.folders(), number)) is None:
            return
        steps["kill"] += 1
        self.keeper.send(verb, self.path(name))
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
    ApprovalMachine.memory = Memory(sys.argv[3])
    is_own = ApprovalMachine.memory is Memory.IDENTITY  # for the control, any failure is enough
    disk = Path.cwd() / "disk"
    disk.mkdir()
    subprocess.run(["mount", "-t", "tmpfs", "tmpfs", disk], check=True)
    disk.chmod(0o755)
    anyio.run(checkpoint)  # load modules once, so that each forked process has them
    with small_reserve():
        run_state_machine_as_test(
            ApprovalMachine,
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
