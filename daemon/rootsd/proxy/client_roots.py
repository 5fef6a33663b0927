"""Read which folders a client has open, and ask it. Pure.

A client that declares `roots` answers `roots/list` at any time (MCP before 2026-07-28). There is
one question at a time. Some clients never answer, so each question has a time limit, after which
the folders are not known.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable

from rootsd.core.errors import RootsdError
from rootsd.core.paths import PathError, bytes_of, normalize_path
from rootsd.wire.jsonrpc import (
    METHOD_NOT_FOUND,
    ErrorResponse,
    Id,
    Request,
    Response,
    encode,
)

ROOTS_LIST = "roots/list"
CLIENT_TIMEOUT_S = 1.0
"""How long to wait for a client that declares roots. Some clients never answer."""
_CLIENT_CHANGE_S = 0.1
"""How long to collect changes of the client's folders before one question."""

NamedFolders = tuple[tuple[bytes, ...], ...]
"""Folders of a client, each with all paths that it may mean. See `client_paths`."""


def parse_client_roots(result: object) -> NamedFolders:
    """Return the folders in a client's answer to `roots/list`."""
    match result:
        case {"roots": list() as items}:
            uris = (item.get("uri") for item in items if isinstance(item, dict))
            paths = (client_paths(uri) for uri in uris if isinstance(uri, str))
            return tuple(each for each in paths if each)
        case _:
            return ()


def path_of_uri(uri: str) -> bytes | None:
    """Return the path of a local `file://` URI (RFC 8089) as rootsd writes it; None for others."""
    text = _local_part(uri)
    if text is None or not text.isascii() or _NOT_IN_PATHS.search(text):
        return None
    return _normal(_unescaped(text.encode()))


def client_paths(uri: str) -> tuple[bytes, ...]:
    """Return the paths that a client may mean with `uri`, which is a `file:` URI or a bare path.

    Many clients put `file://` in front of a path and escape nothing, or not everything. So `#` and
    `?` are parts of the path, and `%20` may be a space or three characters. The disk must tell
    which of the paths is meant; if several exist, none is.
    """
    if uri.startswith("/"):
        return _known(_normal(_bytes_of(uri)))
    text = _local_part(uri)
    if text is None:
        return ()
    literal = _normal(_bytes_of(text))
    if _BAD_ESCAPE.search(text):
        return _known(literal)  # nobody has escaped it
    return _known(literal, _normal(_unescaped(_bytes_of(text) or b"")))


def _unescaped(text: bytes) -> bytes:
    if b"%" not in text:
        return text
    from urllib.parse import unquote_to_bytes  # noqa: PLC0415 - 2 ms of each start, rarely needed

    return unquote_to_bytes(text)


_FILE = re.compile(r"file:(?://(?:localhost)?(?=/)|(?!//))(/.*)", re.IGNORECASE | re.DOTALL)
_NOT_IN_PATHS = re.compile(r"[?#\x00-\x20\x7f]")
# Half an escape, or an escaped slash, which no path has.
_BAD_ESCAPE = re.compile(r"%(?![0-9A-Fa-f]{2})|%2[Ff]")


def _local_part(uri: str) -> str | None:
    """Return the path in a `file:` URI of this computer as it is written, or None."""
    found = _FILE.fullmatch(uri)
    return None if found is None else found[1]


def _bytes_of(text: str) -> bytes | None:
    try:
        return bytes_of(text)
    except UnicodeEncodeError:  # half a surrogate pair
        return None


def _normal(path: bytes | None) -> bytes | None:
    try:
        return None if path is None else normalize_path(path)
    except PathError:
        return None


def _known(*paths: bytes | None) -> tuple[bytes, ...]:
    return tuple(dict.fromkeys(path for path in paths if path is not None))


def unknown_place(reason: str, remedy: str) -> RootsdError:
    """Return the error for a call of a session whose folder is not known."""
    return RootsdError(f"it is not known in which folder the session works: {reason}", remedy)


Folders = tuple[bytes, ...]


def folders_in(result: object) -> Folders:
    """Return the folders in a client's answer, each with the path that it most likely means."""
    return tuple(paths[-1] for paths in parse_client_roots(result))


class ClientRoots:
    """The folders of one client, from its answers to our questions.

    Our questions have ids that begin with `prefix`. `read` returns the folders in a result.
    `remedy` helps if the client does not answer.
    """

    def __init__(self, prefix: str, read: Callable[[object], Folders], remedy: str) -> None:
        self.asked = 0
        """The number of the last question."""
        self.heard = 0
        """The number of the last question that the client has answered, or will not."""
        self.statement: Folders | RootsdError = ()
        """The answer to that question: the folders, or why they are not known."""
        self.first_statement: Folders | None = None
        """The first folders that the client named, or () if it has none."""
        self._prefix = prefix
        self._read = read
        self._remedy = remedy
        self._question: Id | None = None  # without an answer
        self._until = -math.inf  # until then, no second question is sent
        self._changed_at = math.inf  # the client's first change after the last question

    @property
    def deadline(self) -> float:
        """When to call `tick`."""
        return min(self._ask_at, self._until if self._is_asking else math.inf)

    @property
    def is_silent(self) -> bool:
        """Whether the client let its last question time out, and has yet to name folders."""
        is_late = self._question is not None and not self._is_asking
        return is_late and self.first_statement is None

    @property
    def _ask_at(self) -> float:
        """When to ask the client again: once for all changes that come close together."""
        return max(self._changed_at + _CLIENT_CHANGE_S, self._until)

    @property
    def _is_asking(self) -> bool:
        return self.heard < self.asked

    def ask(self, now: float) -> bytes:
        """Return a question, even if the client has yet to answer another one."""
        self._changed_at, self._until = math.inf, now + CLIENT_TIMEOUT_S
        self.asked += 1
        self._question = f"{self._prefix}{self.asked}"
        return encode(Request(self._question, ROOTS_LIST))

    def ask_again(self, now: float) -> bytes:
        """Return a question, or nothing if the client has yet to answer an earlier one."""
        return b"" if self._is_asking else self.ask(now)

    def changed(self, now: float) -> None:
        """Note that the client has other folders now. `tick` returns a question soon."""
        self._changed_at = min(self._changed_at, now)

    def is_ours(self, id_: Id | None) -> bool:
        """Return whether a response with this id answers a question of ours."""
        return isinstance(id_, str) and id_.startswith(self._prefix)

    def take(self, answer: Response | ErrorResponse) -> bool:
        """Take a response. Return whether it is the first one to our last question."""
        if answer.id != self._question:
            return False
        self._question, self._until = None, -math.inf
        if isinstance(answer, Response):
            self._told(self._read(answer.result))
        elif answer.code == METHOD_NOT_FOUND:
            self._told(())  # it declares roots, but has none
        else:
            self._unknown(f"the client answered: {answer.message}")
        return True

    def tick(self, now: float) -> bytes:
        """Stop waiting for a client that does not answer. Return the question that is due."""
        if self._is_asking and now >= self._until:
            self._unknown("the client did not answer within a second")
        return self.ask(now) if now >= self._ask_at else b""

    def _unknown(self, reason: str) -> None:
        self._told(unknown_place(reason, self._remedy))

    def _told(self, statement: Folders | RootsdError) -> None:
        self.heard, self.statement = self.asked, statement
        if self.first_statement is None and not isinstance(statement, RootsdError):
            self.first_statement = statement
