"""Learn where the session works before each call, and move the server there. Pure.

Agents change their folder, enter worktrees, and add folders. Some do not say so, but all give the
right answer when asked. So the client is asked for its roots before each call, and no answer
serves a call that came after the question. Codex has no roots, but names its folders in each call.

The first folder is the place where the session works. The others were added to it. The daemon
decides whether they are approved, and proposes those that are not. A session at a place that is
not approved gets an error for each call. An added folder that is not approved gets one error, and
then the session goes on without it.

A session moves between two calls only. A call for the new place waits until the calls for the old
one have ended.

Some clients start their servers outside all projects, such as in the home folder, and have that
open. If the client says so first, the session has not moved, and stays where it began.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable
from enum import Enum, auto

from rootsd.core.errors import RootsdError
from rootsd.core.labels import safe_label
from rootsd.core.paths import text_of
from rootsd.core.quick_tuple import NamedTuple
from rootsd.proxy.client_roots import Folders, NamedFolders
from rootsd.proxy.run import codex
from rootsd.proxy.run.input_required import may_require_input
from rootsd.proxy.run.outbox import Outbox
from rootsd.proxy.run.roots import RootsProvider
from rootsd.wire.hello import MoveResult, WorkFolders
from rootsd.wire.jsonrpc import Batch, Malformed, Message, Request

TakeNote = Callable[[str], bytes | None]

_DAEMON_S = 10.0
"""How long the daemon may take to look at a new place, which it may have to scan."""
_IDLE_S = 2.0
"""How long a call at a new place waits for calls at the old one."""
_BUSY = RootsdError(
    "the session has moved, but the server is busy at the old place",
    "cancel the call in flight, or ask again",
)
_NOWHERE = RootsdError("the client has no folder open any more", "open the project again")
_MAX_BYTES = 10_000  # of all paths; the daemon reads no line that is too long
_TOO_MANY = RootsdError("the session has too many folders open", "close some of them")
_SILENT = RootsdError("rootsd does not answer, so the session cannot move", "rootsd status")


class Standing(Enum):
    """Whether a call may go on."""

    HERE = auto()
    """The server is where the session works."""
    WAIT = auto()
    """That is not known yet, or the server is about to move."""


class CallPlace(NamedTuple):
    """What a call says about where it works. It came after a question to the client."""

    after_question: int
    """The number of that question."""
    told: NamedFolders | None = None
    """The folders of the session, if they came with the call. Otherwise the client is asked."""
    writable: NamedFolders = ()
    """More folders in which Codex may write. Nobody has opened them."""
    agent: NamedFolders = ()
    """The folder of an agent beside the main one, if that makes the call."""


def uses_place(message: Message | Batch | Malformed) -> bool:
    """Return whether the answer to a line depends on the folder where the session works."""
    if isinstance(message, Batch):
        return any(map(uses_place, message.members))
    return isinstance(message, Request) and may_require_input(message)


class SessionPlace:
    """The folders of one session. `start` is its first working directory, or None.

    `take_note` returns the folder in which an agent beside the main one makes the call with an id.
    """

    def __init__(
        self, provider: RootsProvider, out: Outbox, start: bytes | None, take_note: TakeNote
    ) -> None:
        self.has_moved = False
        """Whether the place is another folder since the last `take_move`."""
        self.working_directory = start
        """The place of the session."""
        self._provider = provider
        self._client = provider.client
        self._out = out
        self._take_note = take_note
        self._start = start
        self._start_identity = None if start is None else provider.identity(start)
        self._folders: Folders | None = () if start is None else (start,)
        self._identity = self._start_identity  # of the first of these folders
        self._place_identity = self._start_identity
        self._first: Folders | None = None  # what the client said first
        self._begins_outside = False  # of all roots
        self._at_start: Folders | None = None  # what the client says while it is still there
        self._outside: frozenset[bytes] = frozenset()
        self._announced: set[bytes] = set()
        self._moving: Folders | None = None
        self._moving_identity: Hashable | None = None
        self._failure: RootsdError | None = None
        self._until = math.inf  # for the daemon's answer, or for the end of the calls in flight
        self._may_wait = True

    @property
    def deadline(self) -> float:
        """When to call `tick`."""
        return self._until

    def tick(self, now: float) -> None:
        """Stop waiting if it is time."""
        if now >= self._until:
            self._until = math.inf
            if self._moving is None:
                self._may_wait = False
            else:
                self.moved(_SILENT)

    def place_of(self, message: Message | Batch | Malformed) -> CallPlace:
        """Return what a call that comes now says about where it works."""
        place = CallPlace(self._client.asked)
        match message:
            case Request(_, "tools/call", {"_meta": {"claudecode/toolUseId": str() as call}}):
                folder = self._take_note(call)
                return place if folder is None else place._replace(agent=((folder,),))
            case Request() if (state := codex.state_of(message)) is not None:
                return place._replace(told=(state.here,), writable=state.writable)
            case _:
                return place

    def look(self, call: CallPlace, now: float, *, is_idle: bool) -> Standing | RootsdError:
        """Return whether a call may go on, or why it must not. `is_idle`: no call is in flight."""
        if call.told is not None:
            told = first = self._provider.real_folders(call.told)
        elif self._client.heard > call.after_question:
            statement, first = self._client.statement, self._client.first_statement or ()
            if isinstance(statement, RootsdError):
                return statement
            told = statement
        else:
            self._provider.ask_client_again(now)
            return Standing.WAIT
        if self._first is None:
            self._begin(first)
        writable = self._provider.real_folders(call.writable)
        self._announced.update(writable)
        folders = (*self._provider.real_folders(call.agent), *told, *writable)
        return self._go(tuple(dict.fromkeys(folders)), now, is_idle=is_idle)

    def _go(self, folders: Folders, now: float, *, is_idle: bool) -> Standing | RootsdError:
        if self._moving is not None:
            return Standing.WAIT
        if self._failure is not None:
            failure, self._failure = self._failure, None
            return failure
        if sum(map(len, folders)) > _MAX_BYTES:
            return _TOO_MANY
        if not folders:
            return _NOWHERE if self._first else Standing.HERE
        identity = self._provider.identity(folders[0])
        if folders == self._folders and identity == self._identity:
            return self._verdict(folders)
        if is_idle:
            self._moving_identity = identity
            self._move(folders, now)
        elif not self._may_wait:
            self._may_wait = True
            return _BUSY
        else:
            self._until = min(self._until, now + _IDLE_S)
        return Standing.WAIT

    def _begin(self, first: Folders) -> None:
        self._first, self._begins_outside = first, not self._provider.holds(self._start)
        if self._begins_outside and first == self._folders:
            self._at_start = first

    def moved(self, outcome: MoveResult | RootsdError) -> None:
        """Note what the daemon says about the move."""
        folders, self._moving, self._until = self._moving, None, math.inf
        if folders is None:
            return  # it came too late
        if isinstance(outcome, RootsdError):
            self._failure = outcome
            return
        texts = dict(zip(map(text_of, folders), folders, strict=True))
        self._outside = frozenset(texts[text] for text in outcome.outside if text in texts)
        self._folders, self._identity = folders, self._moving_identity
        if folders == self._at_start:
            self._set_place(self._start, self._start_identity)
        elif folders[0] not in self._outside:
            self._set_place(folders[0], self._identity)
        elif folders == self._first and self._begins_outside:
            self._at_start = folders

    def take_move(self) -> bool:
        """Return `has_moved`, once."""
        moved, self.has_moved = self.has_moved, False
        return moved

    def _set_place(self, place: bytes | None, identity: Hashable | None) -> None:
        before = (self.working_directory, self._place_identity)
        self.working_directory, self._place_identity = place, identity
        self.has_moved = self.has_moved or before != (place, identity)

    def _move(self, folders: Folders, now: float) -> None:
        self._moving, self._until, self._may_wait = folders, now + _DAEMON_S, True
        # To go back to the start of the session is no move to a place.
        where = () if folders == self._at_start else folders
        self._out.move = WorkFolders(tuple(map(text_of, where)))

    def _verdict(self, folders: Folders) -> Standing | RootsdError:
        if folders == self._at_start:
            return Standing.HERE
        new = [each for each in folders if each in self._outside - self._announced]
        if self._identity is None:
            self._folders = None  # it may be there by the next call
            shown = safe_label(folders[0], limit=None)
            return RootsdError(
                f"the session works in {shown}, which is gone", "open a folder again"
            )
        if folders[0] in self._outside:
            self._folders = None  # it may be approved by the next call
            return _not_approved("works in", folders[0])
        if new:
            self._announced.add(new[0])
            return _not_approved("has added", new[0])
        return Standing.HERE


def _not_approved(verb: str, folder: bytes) -> RootsdError:
    shown = safe_label(folder, limit=None)
    return RootsdError(
        f"the session {verb} {shown}, which is not approved", f"rootsd approve {shown}"
    )
