"""Order the messages between one ACP client and its agent. Pure.

Most lines go on as the same bytes. The relay answers or changes these only:

* A request that sets the folders of a session: one that is not approved does not pass.
* The agent's requests for files and terminals, which the *client* serves, outside any wall.
* `initialize`, if the agent is behind the wall: such requests are not offered to it.
* The answer to `session/list`, without the sessions of other folders.
* A line that two parsers could read in two ways (`parse_strict`), which never goes on.
"""

from __future__ import annotations

import shlex
from collections.abc import Iterable, Sequence
from typing import Protocol

from rootsd.core.errors import RootsdError
from rootsd.core.labels import safe_label
from rootsd.core.paths import contains, text_of
from rootsd.proxy.acp import messages
from rootsd.proxy.acp.messages import RESOURCE_NOT_FOUND, ServerWords, text_at
from rootsd.proxy.replay import RepeatPolicy, Replay
from rootsd.proxy.run.command import LaunchSpec
from rootsd.proxy.run.line_reader import MAX_LINE_BYTES
from rootsd.proxy.run.outbox import Outbox
from rootsd.proxy.run.relayed_session import RelayedSession
from rootsd.proxy.run.roots import RootFolder
from rootsd.wire import mcp_messages
from rootsd.wire.jsonrpc import (
    INTERNAL_ERROR,
    INVALID_PARAMS,
    INVALID_REQUEST,
    Batch,
    ErrorResponse,
    Id,
    Malformed,
    Message,
    Notification,
    Request,
    Response,
    encode,
    parse_repaired,
)
from rootsd.wire.roots_subscription import RootsUpdate

_BATCH = ErrorResponse(None, INVALID_REQUEST, "ACP has no batches")
_TOO_LONG = f"the line is longer than {MAX_LINE_BYTES} bytes"
ParsedLine = Message | Batch | Malformed
_CLIENT_SERVES = ("fs/", "terminal/")
_MAX_REFUSALS = 1_000  # that an agent leaves unread


class FolderSource(Protocol):
    """What the daemon approves, and what is on the disk. See `ApprovedFolders`."""

    narrows: bool
    """Whether a person has named the roots, so that an approved one may be left out."""

    def approved(self) -> tuple[RootFolder, ...]:
        """Return all folders that a session may have, as verified now. Raises RootsdError."""

    def together_with(self, folder: bytes) -> tuple[RootFolder, ...]:
        """Return the folders of a session in an approved `folder`. Raises RootsdError."""

    def folder(self, path: str) -> bytes | None:
        """Return the real path of a folder, or None if there is none."""

    def place(self, path: str) -> bytes | None:
        """Return where a path leads, or None if no file can be there."""


class AgentWall(Protocol):
    """The wall around an agent."""

    def open(self, names: Iterable[str]) -> None:
        """Show these roots to the agent, if it does not see them yet. Raises RootsdError."""


class RefusedFolder(RootsdError):
    """A folder that no session may have. `path` is what the client sent."""

    def __init__(self, path: str, why: str, remedy: str) -> None:
        super().__init__(f"{safe_label(path, limit=None)} {why}", remedy)
        self.path = path


class AcpSession(RelayedSession):
    """One client and its agent. Pass it the lines of both sides, and updates of the roots."""

    verb = "rootsd acp"
    program = "agent"
    restart = "restart the agent in your editor"

    def __init__(
        self,
        launch: LaunchSpec,
        folders: FolderSource,
        out: Outbox,
        servers: ServerWords,
        wall: AgentWall | None,
    ) -> None:
        self._launch = launch
        self._folders = folders
        self._out = out
        self._servers = servers
        self._wall = wall
        self._replay = Replay(RepeatPolicy(frozenset()))
        self._setups: dict[Id, tuple[bytes, ...]] = {}  # not answered yet
        self._sessions: dict[str, tuple[bytes, ...]] = {}
        self._approved: tuple[RootFolder, ...] = ()
        self._takes_folders = False
        self._unread_refusals = 0
        self._printed = ""

    @property
    def printed_text(self) -> str:
        """The label of text that the agent printed after its last message; mostly empty."""
        return self._printed

    @property
    def pending_responses(self) -> int:
        """How many responses the client waits for."""
        return self._replay.waiting_count

    @property
    def is_flooded(self) -> bool:
        """Whether the agent has asked for so much that the loop must stop reading it."""
        return self._unread_refusals >= _MAX_REFUSALS

    def output_written(self) -> None:
        """Note that the agent may have read its input."""
        if not self._out.server_lags:
            self._unread_refusals = 0

    def from_client(self, line: bytes, now: float) -> None:  # noqa: ARG002
        """Take a line of the client, without its newline."""
        if not line.strip():
            return
        message: ParsedLine | None = messages.long_call(line)
        if message is None:
            line, message = parse_repaired(line)
        match message:
            case Request():
                try:
                    line = self._request(line, message)
                except RootsdError as error:
                    self._refuse(message.id, error)
                    return
                # Prompts are long, and nobody repeats one.
                self._replay.request_sent(message._replace(params=None), b"")
            case Notification() if messages.sets_folders(message):
                self._note_dropped("client", "a request without an id")
                return
            case Batch() | Malformed():
                self._drop("client", message, self._out.to_client, self._out.to_server)
                return
            case _:
                pass
        self._out.to_server += line
        self._out.to_server += b"\n"

    def from_server(self, line: bytes, now: float) -> None:  # noqa: ARG002
        """Take a line of the agent, without its newline."""
        if not line.strip():
            return
        message: ParsedLine | None = messages.long_call(line)
        if message is None:
            line, message = parse_repaired(line)
        if isinstance(message, Batch | Malformed):
            if (
                isinstance(message, Malformed)
                and not message.is_call
                and message.error.id is not None
            ):
                self._replay.close(message.error.id)
            self._drop("agent", message, self._out.to_server, self._out.to_client)
            if not mcp_messages.looks_like_response(line):
                self._printed = safe_label(line, limit=200)
            return
        self._printed = ""
        match message:
            case Request() if (refusal := self._refusal(message)) is not None:
                self._out.to_server += encode(refusal)
                self._unread_refusals += self._out.server_lags
                return
            case Notification(method) if method.startswith(_CLIENT_SERVES):
                self._note_dropped("agent", "a request without an id")
                return
            case Response() | ErrorResponse():
                line = self._response(line, message)
            case _:
                pass
        self._out.to_client += line
        self._out.to_client += b"\n"

    # The client's requests

    def _request(self, line: bytes, request: Request) -> bytes:
        """Return the line for the agent. Raises RootsdError for a folder that does not pass."""
        if request.method == messages.INITIALIZE and self._wall is not None:
            return messages.without_outside_capabilities(line)
        if request.method == messages.LIST:
            self._approved = self._folders.approved()
        if not messages.sets_folders(request):
            return line
        cwd = text_at(request.params, "cwd")
        if cwd is None and request.method in messages.SETUPS:
            raise RootsdError(f"{request.method} needs a cwd", "rootsd acp --help")
        given: dict[str, None] = {} if cwd is None else {cwd: None}
        for folder in messages.named_folders(request.params):
            if not isinstance(folder, str):
                what = "names a folder that is not a path"
                raise RootsdError(f"{request.method} {what}", "rootsd acp --help")
            given[folder] = None
        folders, roots = self._approved_folders(given)
        if request.method not in messages.SETUPS:
            return line
        added = self._other_roots(folders, roots)
        if self._takes_folders and added:
            _, *more = given
            line = messages.with_folders(line, messages.merged(more, map(text_of, added)))
            folders += added
        session = text_at(request.params, "sessionId")
        if session is not None and request.method != messages.FORK:  # it may ask for files at once
            self._sessions[session] = tuple(folders)
        self._setups[request.id] = tuple(folders)
        return messages.with_servers(line, request, self._servers)

    def _approved_folders(
        self, paths: Iterable[str]
    ) -> tuple[list[bytes], tuple[RootFolder, ...]]:
        """Return the real paths of folders, and the roots of a session in them.

        The first folder is that of the session. Raises RefusedFolder for one that is not approved.
        """
        real: dict[str, bytes] = {}
        for path in paths:
            found = self._folders.folder(path) if path.startswith("/") else None
            if found is None:
                why = "is not a folder" if path.startswith("/") else "is not an absolute path"
                raise RefusedFolder(path, why, f"ls -ld {shlex.quote(path)}")
            real[path] = found
        if not real:
            return [], ()
        together = known = self._folders.together_with(next(iter(real.values())))
        if any(_innermost(together, folder) is None for folder in real.values()):
            known = self._folders.approved()
        around = []
        for path, folder in real.items():
            root = _innermost(known, folder)
            typed = shlex.quote(text_of(folder))
            if root is None:
                self._out.proposals.append(folder)
                why = "is not approved"
                if self._folders.narrows:
                    why += ", or --only does not name it"
                raise RefusedFolder(path, why, f"rootsd approve {typed}")
            if self._wall is None and not _is_open(root):
                what = "has a denied folder" if root.denied else "is read-only"
                why = f"{what}, and only the wall can enforce that"
                raise RefusedFolder(path, why, "rootsd acp --confine")
            around.append(root)
        return [*real.values()], (*around, *together)

    def _other_roots(self, folders: Sequence[bytes], roots: Iterable[RootFolder]) -> list[bytes]:
        """Return the roots beside the `folders` of a session. Behind the wall, show all first."""
        roots = dict.fromkeys(roots)
        if self._wall is not None:
            self._wall.open({root.name for root in roots})
        return [
            root.path
            for root in roots
            if (_is_open(root) or self._wall is not None)
            and not any(contains(root.path, each) or contains(each, root.path) for each in folders)
        ]

    # The agent's messages

    def _refusal(self, request: Request) -> ErrorResponse | None:
        """Return the answer to a request that the client must not serve, or None."""
        if not request.method.startswith(_CLIENT_SERVES):
            return None
        is_file = request.method.startswith("fs/")
        if self._wall is not None:
            text = "the client serves this outside the wall; use your own tools"
            return ErrorResponse(request.id, INVALID_PARAMS, text)
        if not is_file and request.method != "terminal/create":
            return None
        path = text_at(request.params, "path" if is_file else "cwd")
        session = self._sessions.get(text_at(request.params, "sessionId") or "", ())
        if path is None and not is_file and session:
            path = text_of(session[0])  # the client starts it in the session's folder
        place = self._folders.place(path) if path is not None and path.startswith("/") else None
        if (
            place is not None
            and any(contains(each, place) for each in session)
            and not messages.has_look_alikes(request.params)
        ):
            try:
                self._approved = self._folders.approved()
            except RootsdError as error:
                return ErrorResponse(
                    request.id, INVALID_PARAMS, f"{error.message}; try: {error.remedy}"
                )
            root = _innermost(self._approved, place)
            is_read = request.method == "fs/read_text_file"
            if root is not None and not root.denied and (root.writable or is_read):
                return None
        shown = "a request without a path" if path is None else safe_label(path, limit=None)
        text = f"{shown} is outside the folders of this session"
        return ErrorResponse(request.id, RESOURCE_NOT_FOUND if is_file else INVALID_PARAMS, text)

    def _response(self, line: bytes, answer: Response | ErrorResponse) -> bytes:
        """Note an answer of the agent, and return its line."""
        if answer.id is None:
            return line
        entry = self._replay.close(id_ := self._replay.answered_by(answer.id))
        setup = self._setups.pop(id_, None)
        if entry is None or isinstance(answer, ErrorResponse):
            return line
        match entry.request.method:
            case messages.INITIALIZE:
                self._takes_folders = messages.takes_folders(answer.result)
            case messages.LIST:
                return messages.with_listed(line, answer.result, self._may_list)
            case _ if setup is not None:
                if (session := text_at(answer.result, "sessionId")) is not None:
                    self._sessions[session] = setup
            case _:
                pass
        return line

    def _may_list(self, path: str) -> bool:
        folder = self._folders.folder(path) if path.startswith("/") else None
        root = None if folder is None else _innermost(self._approved, folder)
        return root is not None and (self._wall is not None or not root.denied)

    # Errors

    def _drop(
        self, side: str, message: Batch | Malformed, to_sender: bytearray, to_other: bytearray
    ) -> None:
        """Drop a line that is not a message. If it was to be answered, answer with an error."""
        fault = _BATCH if isinstance(message, Batch) else message.error
        if isinstance(message, Batch) or (message.is_call and fault.id is not None):
            if self._out.client_reads and not self._out.server_lags:
                to_sender += encode(fault)
        elif fault.id is not None:
            text = f"the answer of the {side} is refused: {fault.message}"
            to_other += encode(ErrorResponse(fault.id, INTERNAL_ERROR, text))
        self._note_dropped(side, fault.message)

    def _note_dropped(self, side: str, why: str) -> None:
        self._out.dropped_lines.append(f"a line of the {side} was dropped: {why}")

    def _refuse(self, id_: Id, error: RootsdError) -> None:
        data = {"reason": error.code.value, "remedy": error.remedy}
        if isinstance(error, RefusedFolder):
            data["folder"] = error.path
        text = f"{error.message}; try: {error.remedy}"
        self._out.to_client += encode(ErrorResponse(id_, INVALID_PARAMS, text, data))

    def refuse_oversized_line(self) -> None:
        """Refuse a line of the client that is too long. Its id is not known."""
        fault = ErrorResponse(None, INVALID_REQUEST, _TOO_LONG)
        self._drop("client", Malformed(fault), self._out.to_client, self._out.to_server)
        if self._out.client_reads:
            self._out.to_client += encode(fault)

    def fail_oversized_response(self, ends: bytes) -> None:
        """Drop a line of the agent that is too long. If it is an answer, answer with an error."""
        fault = ErrorResponse(mcp_messages.quick_response_id(ends), INVALID_REQUEST, _TOO_LONG)
        if fault.id is not None:
            self._replay.close(fault.id)
        self._drop("agent", Malformed(fault), self._out.to_server, self._out.to_client)

    def fail_all(self, error: RootsdError) -> None:
        """Answer everything that the client waits for with `error`: no agent follows."""
        for entry in self._replay.open_requests:
            self._replay.close(entry.request.id)
            self._out.to_client += mcp_messages.encode_error(entry.request.id, error)

    # The roots, and the process of the agent

    def roots_updated(self, update: RootsUpdate[RootFolder], now: float) -> None:  # noqa: ARG002
        """Apply an update of the approved roots."""
        self._approved = update.roots

    def start(self) -> LaunchSpec:
        """Return the command of the agent."""
        return self._launch


def _is_open(root: RootFolder) -> bool:
    """Return whether an agent may use a root without the wall."""
    return root.writable and not root.denied


def _innermost(roots: Iterable[RootFolder], path: bytes) -> RootFolder | None:
    around = [
        root
        for root in roots
        if contains(root.path, path) and not any(contains(each, path) for each in root.denied)
    ]
    return max(around, key=lambda root: len(root.path), default=None)
