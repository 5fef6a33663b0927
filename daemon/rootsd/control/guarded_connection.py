"""Admit the commands of one connection, and have a person confirm those that need it.

To confirm a command, a person types a word that the daemon shows on the caller's terminal. A
challenge and its answer use the same connection.
"""

from __future__ import annotations

import secrets

from msgspec.structs import replace

from rootsd.control.guard import REMEDY, CommandGuard
from rootsd.control.routes import GuardedCommand
from rootsd.core.errors import CallerRefused, RootsdError
from rootsd.core.guard import Caller, GuardAction, GuardDecision, describe_caller
from rootsd.core.guard_setting import Guard
from rootsd.core.labels import safe_text
from rootsd.core.model import Actor, ActorKind
from rootsd.processes.process_exit import ProcessHandle
from rootsd.wire.guard import Challenge

_MAX_LINES = 40
_SYLLABLES = tuple(c + v for c in "bdfgkmnprstvz" for v in "aeiou")


class ChallengeNeeded(CallerRefused):
    """The daemon carries out the command once a person types the word shown on the terminal."""

    def __init__(self, message: str, challenge: Challenge) -> None:
        super().__init__(message, REMEDY)
        self.challenge = challenge


class GuardedConnection:
    """The guard's state for one connection, whose other end is the process `peer`."""

    def __init__(self, guard: CommandGuard, peer: ProcessHandle) -> None:
        self._guard = guard
        self._peer = peer
        self._challenged: tuple[str, str] | None = None
        self._has_served = False

    def check_may_ask(self, order: GuardedCommand | None, typed: str | None) -> None:
        """Note a request, and raise CallerRefused for a command that is not the first one.

        Refuse everything from another pid namespace, where nobody can tell which process asks. A
        command has a connection of its own, except for the word that confirms it. So nothing can
        be decided over a connection that follows the daemon for long, even by a program that takes
        it from its owner (pidfd_getfd(2)). With the guard off, this refuses no command.
        """
        if self._peer.pid == 0:
            raise CallerRefused(
                "this program runs where rootsd cannot see it, in another pid namespace",
                "run it outside of that container",
            )
        if self._guard.guard is Guard.OFF:
            return
        is_answer = typed is not None and self._challenged is not None
        if self._has_served and order is not None and not is_answer:
            raise CallerRefused(
                "this command is refused: the connection has carried another request", REMEDY
            )
        self._has_served = True

    async def introduce(self) -> None:
        """Remember what the caller is, because it is about to hide from all programs."""
        await self._guard.introduce(self._peer)

    async def note_command(self, words: str) -> None:
        """Record a command that decides nothing, if an agent gives it."""
        await self._guard.note_command(words, self._peer)

    async def actor(self) -> Actor:
        """Return the actor of a query: a person, unless the guard would refuse a command."""
        if self._guard.guard is Guard.OFF:
            return self._unchecked_actor()
        caller, finding = await self._guard.judge_peer(self._peer)
        refused = finding.action is GuardAction.REFUSE
        return Actor(ActorKind.CALLER if refused else ActorKind.PERSON, describe_caller(caller))

    async def admit(self, order: GuardedCommand, typed: str | None) -> Actor:
        """Return the actor of a command that the guard admits. `typed` is the word of a person.

        Raises CallerRefused, or ChallengeNeeded if a person has to type a word first.
        """
        guard = self._guard
        if guard.guard is Guard.OFF:
            return self._unchecked_actor()
        caller, finding = await guard.judge_command(order, self._peer)
        match finding.action:
            case GuardAction.ADMIT:
                return Actor(ActorKind.PERSON, describe_caller(caller))
            case GuardAction.REFUSE:
                raise await guard.refuse(order, caller, finding)
            case GuardAction.CHALLENGE:
                pass
        asked, self._challenged = self._challenged, None
        if typed is None:
            raise await self._challenge(order, caller, finding)
        if asked != (order.text, typed.strip()):
            wrong = replace(finding, why="the word typed was not the one asked for", allow="")
            raise await guard.refuse(order, caller, wrong)
        return Actor(ActorKind.CHALLENGED, f"{describe_caller(caller)}: {finding.why}")

    async def _challenge(
        self, order: GuardedCommand, caller: Caller, finding: GuardDecision
    ) -> ChallengeNeeded:
        """Show a new word on the caller's terminal, and return the error to raise.

        Raises CallerRefused if the word cannot be shown.
        """
        assert caller.process is not None, "the guard challenges only callers that it has seen"
        word = "".join(secrets.choice(_SYLLABLES) for _ in range(3))
        preview = list(await order.preview())[:_MAX_LINES]
        lines = [*preview, f"Confirm this command, because {finding.why}."]
        if finding.allow:
            lines.append(f"If that is a program of yours: {finding.allow}")
        lines.append(f"Type {word} to go on: ")
        text = "\r\n".join(safe_text(line) for line in ["", *lines])
        try:
            terminal = await self._guard.view.show(caller.process, text)
        except RootsdError as error:
            reason = f"{finding.why}, and the word to type could not be shown: {error.message}"
            refused = replace(finding, why=reason)
            raise await self._guard.refuse(order, caller, refused) from error
        self._challenged = (order.text, word)
        return ChallengeNeeded(
            f"this has to be confirmed with the word shown on {terminal}, since {finding.why}",
            Challenge(terminal=terminal),
        )

    def _unchecked_actor(self) -> Actor:
        """Return the caller as the socket names it. With the guard off, it is not looked up."""
        return Actor(ActorKind.PERSON, f"pid {self._peer.pid}, with the guard off")
