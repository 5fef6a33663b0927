"""Decide on a terminal, with keys or with the answers that flags give in advance.

If an order is about more than one project, a person sees the list with names and risks, and
presses a key. `--yes` is the same answer in advance. Without a terminal and without `--yes`, the
order is sent as it is. It succeeds if it decides about one project.

An approval asks three more questions. It says what an incomplete project lacks, and publishes it
only after a key, or with `--incomplete`. Worktrees that are older than the approval are published
only after a key, or with `--worktrees`. An approval of a linked worktree or a submodule includes
its Git directory in a pending checkout, for programs behind the wall, only after another key, or
with `--shared-git`.
"""

from __future__ import annotations

import shlex
import sys
from collections.abc import Coroutine, Mapping, Sequence
from enum import Enum, auto
from typing import Any, TypeVar

from msgspec import Struct, field
from msgspec.structs import replace

from rootsd.cli.answers.affected import Item, affected_lines
from rootsd.cli.answers.decision_flow import (
    Decided,
    Face,
    Facts,
    Order,
    OrderT,
    decide,
    including,
    incomplete_lines,
    question_of,
    read_facts,
)
from rootsd.cli.answers.decisions import print_result
from rootsd.cli.answers.invocation import Invocation
from rootsd.cli.text.phrases import shorten_home
from rootsd.cli.text.projects import describe_session_request, describe_shared_git, path_of
from rootsd.cli.text.terminal import Keyboard
from rootsd.core.errors import Exit, Unconfirmed
from rootsd.core.labels import safe_label, safe_text
from rootsd.link.rpc import DaemonError
from rootsd.wire.decisions import ApprovalScope, DecideRequest, DecisionVerb, TagRequest
from rootsd.wire.projects import Selection
from rootsd.wire.request import ApplyMode, ControlRequest

_MOST_LINES = 20
_MOST_SESSIONS = 9  # one key for each
_ROUNDS = 3
GLOB = frozenset("*?[")
_UNDO = "rootsd undo takes this back."
_NO_GIT_DIRECTORY = "No project of this approval uses the Git directory of a pending checkout."

Result = TypeVar("Result")


class Further(Enum):
    """What to do with something that an approval can include besides what it names."""

    ASK = auto()
    """Include it if a person presses a key for that."""
    INCLUDE = auto()
    AS_ORDERED = auto()
    """Include it if the order names it."""


class KeyPolicy(Enum):
    """Whether to ask a person for a key, or to take the answer from `--yes`."""

    IF_THERE = auto()
    NEVER = auto()

    @classmethod
    def for_flag(cls, *, yes: bool) -> KeyPolicy:
        """Return the policy for the flag `--yes`."""
        return cls.NEVER if yes else cls.IF_THERE


class TerminalFace(Struct, frozen=True):
    """A terminal, and the answers that a person gave in advance.

    `worktrees` are those that existed before the approval, and `git_directories` those of pending
    checkouts that approved projects use. `incomplete` are the named projects that are incomplete.
    """

    invocation: Invocation
    keyboard: Keyboard = field(default_factory=Keyboard)
    key: KeyPolicy = KeyPolicy.IF_THERE
    worktrees: Further = Further.ASK
    git_directories: Further = Further.ASK
    incomplete: Further = Further.ASK

    @property
    def asks(self) -> bool:
        """Whether a key can be asked for."""
        flags = self.invocation.flags
        return self.key is KeyPolicy.IF_THERE and not flags.no_input and self.keyboard.is_there()

    @property
    def _has_answers(self) -> bool:
        """Whether the person confirmed in advance something that only a plan lists."""
        further = (self.worktrees, self.git_directories, self.incomplete)
        return self.key is KeyPolicy.NEVER or Further.INCLUDE in further

    def decide(self, order: OrderT) -> Decided[OrderT] | None:
        """Ask for confirmation if the order needs it, and send it. None means no change.

        Raises Unconfirmed if the order decides about several projects and nobody can be asked, or
        if the list of these projects changes in each round; and what the daemon answers.
        """
        asks = self.asks
        confirms = asks or self.key is KeyPolicy.NEVER
        try:
            if order.effect is ApplyMode.DRY_RUN or not (asks or self._has_answers):
                return Decided(order, None, self.invocation.call(order))
            face: Face[OrderT] = self
            return _finished(decide(face, order, _ROUNDS if confirms else 1))
        except DaemonError as error:
            if not error.unconfirmed:
                raise
            raise self._list_changed() if confirms else self._how_to_confirm(error) from error

    def _list_changed(self) -> Unconfirmed:
        """Return the error for a list that changed in each round, and the command to repeat."""
        what = f"the list of projects changed {_ROUNDS} times before it was confirmed"
        return Unconfirmed(f"{what}, so nothing changed", self._command())

    def _how_to_confirm(self, error: DaemonError) -> Unconfirmed:
        """Return the error with the reason why nobody was asked, and the whole command to type."""
        is_forbidden = self.invocation.flags.no_input
        why = "--no-input forbids the question" if is_forbidden else "no terminal to ask on"
        return Unconfirmed(
            f"{error.message} ({why}; --dry-run lists them)", self._command("--yes")
        )

    def _command(self, *more: str) -> str:
        """Return the whole command as a person types it, with `more` flags."""
        words = shlex.split(self.invocation.command)
        return shlex.join(["rootsd", *words, *more, *self.invocation.arguments])

    async def read(self, request: ControlRequest) -> dict[str, Any]:
        """Send a request."""
        return self.invocation.call(request)

    async def send(self, order: Order) -> dict[str, Any]:
        """Send an order. The guard may ask for a word."""
        return self.invocation.call(order)

    async def confirm(self, facts: Facts[OrderT]) -> OrderT | None:
        """Return the order with what the person confirmed, or None to change nothing."""
        asks = self.asks
        if facts.requests and asks:
            chosen = self._for_one_session(facts)
            if chosen is None:
                return None
            facts = await read_facts(self, chosen)
        lacking = facts.incomplete if self._takes(self.incomplete) else ()
        if lacking and self.incomplete is Further.ASK and not self._accepts_incomplete(lacking):
            return None
        trees = facts.worktrees if self._takes(self.worktrees) else ()
        listed = await facts.with_worktrees(self.read) if trees else facts
        if asks and (trees or listed.confirmation is not None):
            key = self._answer_about(listed, trees)
            if key == "n":
                return None
            if key == "p":
                listed = facts
        git = facts.git_directories if self._takes(self.git_directories) else ()
        if asks and git:
            key = self._answer_about_git(git)
            if key == "q":
                return None
            git = git if key == "y" else ()
        order = including(listed.order, git_directories=git, incomplete=lacking)
        return listed.confirmed(order) if asks or self.key is KeyPolicy.NEVER else order

    def _takes(self, further: Further) -> bool:
        """Return whether to include something, unless a person presses another key."""
        return further is Further.INCLUDE or (further is Further.ASK and self.asks)

    def _for_one_session(self, facts: Facts[OrderT]) -> OrderT | None:
        """Return the order for the session that a person chooses, or for all; None for none."""
        requests = facts.requests[:_MOST_SESSIONS]
        name = safe_label((*facts.plan["items"], *facts.plan["unchanged"])[0]["name"])
        _write(f"{len(requests)} sessions ask for {name}. rootsd saw these processes:")
        for number, each in enumerate(requests, 1):
            _write(f"{number}  {describe_session_request(each)}")
        numbers = ",".join(map(str, range(1, len(requests) + 1)))
        effects = {
            numbers: "only that session, until it ends",
            "e": "every session, until you revoke it",
            "n": "none",
        }
        key = self._choose(f"Which one gets {name}?", effects)
        if key == "n":
            return None
        if key == "e":
            return replace(facts.order, span=ApprovalScope.ALWAYS)
        session = requests[int(key) - 1]["session"]
        return replace(facts.order, span=ApprovalScope.SESSION, session=session)

    def _accepts_incomplete(self, lacking: Sequence[Item]) -> bool:
        _write_some(incomplete_lines(lacking))
        what = _it(lacking)
        keys = {
            "y": f"publish {what} as on the disk, now and when the rest arrives",
            "n": "change nothing",
        }
        return self._choose(f"Publish {what} anyway?", keys) == "y"

    def _answer_about(self, facts: Facts[OrderT], trees: Sequence[Item]) -> str:
        """Show what an order would do, and return a key: y, n, or p for no worktrees."""
        if facts.confirmation is not None:
            for line in affected_lines(facts.confirmation):
                _write(line)
        if isinstance(facts.order, DecideRequest) and facts.order.verb is DecisionVerb.APPROVE:
            for folder in sorted({each["within"] for each in facts.listed} - {None}):
                shown = shorten_home(folder)
                where = shlex.quote(shown) if " " in folder else shown
                _write(
                    f"To publish only the projects in it instead: rootsd approve --under {where}"
                )
        if trees:
            _write("These worktrees are older than this approval. Clients would see them, too:")
            _write_some([_place(tree) for tree in trees])
        keys = {"y": "do everything above"}
        if trees and facts.plan["items"]:
            keys["p"] = "publish the projects without these worktrees"
        return self._choose(question_of(facts), {**keys, "n": "change nothing"})

    def _answer_about_git(self, directories: Sequence[Item]) -> str:
        """Show these Git directories, and return a key: y, n, or q to publish nothing."""
        _write_some([describe_shared_git(each) for each in directories])
        what = _it(directories)
        keys = {
            "y": f"publish, and let programs behind the wall use {what}",
            "n": f"publish without {what}",
            "q": "publish nothing",
        }
        return self._choose(f"Include {what}?", keys)

    def _choose(self, question: str, effects: Mapping[str, str]) -> str:
        """Ask until a person presses a key that has an effect, and return it.

        A key of `effects` may stand for several, as `1,2`. Without an effect of its own, `q` is
        `n`.
        """
        keys = ",".join(effects)
        if not effects.keys() <= {"y", "n"}:  # nobody can guess what the others do
            _explain(effects)
        while True:
            pressed = self.keyboard.press(f"{question} [{keys}] ")
            if pressed == "q" and "q" not in effects:
                return "n"
            if pressed in keys.split(","):
                return pressed
            _explain(effects)


def _explain(effects: Mapping[str, str]) -> None:
    for key, effect in effects.items():
        _write(f"{key}  {effect}")


def _finished(work: Coroutine[object, None, Result]) -> Result:
    """Run a coroutine that never waits, because its face answers at once."""
    try:
        work.send(None)
    except StopIteration as end:
        result: Result = end.value
        return result
    raise AssertionError(f"{work} waits")


def confirm_and_send(face: TerminalFace, order: DecideRequest | TagRequest) -> int:
    """Decide about projects on a terminal, print the effect, and return the status."""
    decided: Decided[DecideRequest | TagRequest] | None = face.decide(order)
    invocation = face.invocation
    if decided is None:
        return declined(invocation, order)
    order, answer = decided.order, decided.answer
    print_result(invocation, order, answer)
    if not isinstance(order, DecideRequest) or order.effect is ApplyMode.DRY_RUN:
        return Exit.OK
    if order.verb is DecisionVerb.APPROVE:
        if _is_open_ended(order) and answer["items"]:
            invocation.output.message(_UNDO)
        facts = decided.facts or Facts(order, answer)
        if decided.facts is not None:
            order = _add_to_unknown(face, order, decided.facts, Facts(order, answer))
        if face.git_directories is Further.INCLUDE and not (
            facts.git_directories or order.shared_git
        ):
            invocation.output.message(_NO_GIT_DIRECTORY)
    return Exit.OK


def declined(invocation: Invocation, order: Order) -> int:
    """Say that nothing was changed, and return the exit status for that."""
    is_approval = isinstance(order, DecideRequest) and order.verb is DecisionVerb.APPROVE
    invocation.output.message(f"Nothing was {'published' if is_approval else 'changed'}.")
    return Exit.FAILED


def _add_to_unknown(
    face: TerminalFace, order: DecideRequest, before: Facts[Any], after: Facts[Any]
) -> DecideRequest:
    """Handle what a person can confirm for a folder that was unknown before its approval.

    Return the last order that was sent.
    """
    fresh = {
        "worktrees": _not_in(before.plan, after.worktrees, "worktrees", "id"),
        "shared_git": _not_in(before.plan, after.git_directories, "shared_git", "root"),
    }
    again = _finished(face.confirm(Facts(order, {**fresh, "items": (), "warnings": ()})))
    if again is None or again == order:
        return order
    print_result(face.invocation, again, face.invocation.call(again))
    return again


def _not_in(plan: Item, items: Sequence[Item], key: str, id_: str) -> list[Item]:
    known = {each[id_] for each in plan.get(key, ())}
    return [each for each in items if each[id_] not in known]


def _is_open_ended(order: DecideRequest) -> bool:
    """Return whether the order may cover projects that it does not name."""
    is_glob = any(not GLOB.isdisjoint(reference) for reference in order.refs)
    return order.select is not Selection.NAMED or is_glob


def _it(items: Sequence[Item]) -> str:
    return "it" if len(items) == 1 else "them"


def _place(tree: Item) -> str:
    return f"{shorten_home(path_of(tree))}  (worktree of {shorten_home(tree['main'])})"


def _write_some(lines: Sequence[str]) -> None:
    for line in lines[:_MOST_LINES]:
        _write(f"  {line}")
    if (more := len(lines) - _MOST_LINES) > 0:
        _write(f"  and {more} more: add --dry-run to list them")


def _write(line: str) -> None:
    sys.stderr.write(safe_text(line) + "\n")
