"""The protocol between a warden and its owner: lines of JSON over a socket pair. Pure.

The owner sends *orders*, and the warden answers each one, in order, after the kernel has applied
it:

    {"order": 7, "do": "set", "roots": [ROOT, ...]}       the roots are these, and no others
    {"order": 8, "do": "add", "roots": [ROOT, ...]}       add or replace these roots
    {"order": 9, "do": "remove", "paths": [PATH, ...]}    remove these roots
    {"order": 0, "do": "continue"}                        let stopped programs run for a while
    {"done": 7, "shown": 12, "read_only": 2, "masked": 1,
     "failed": [{"path": PATH, "reason": TEXT}], "holders": [TEXT, ...],
     "lost": [PATH, ...], "waiting": [PATH, ...]}

    ROOT = {"path": PATH, "access": "read" | "read-write", "identity": IDENTITY | null,
            "denied": [PATH, ...], "shared_git": PATH | null, "name": TEXT, "withheld": BOOLEAN,
            "shared_git_identity": IDENTITY | null, "git_access": TEXT, "ends_ns": N | null}
    IDENTITY = {"inode": N, "owner": N, "handle": HEX | null, "born_ns": N | null,
                "device": N | null}

An order may also have "denied": [PATH, ...], the denied folders. Without it, they stay the same.

Paths are text with lone surrogates for bytes that are not UTF-8. ROOT is also the form in which
the daemon publishes roots to wardens; other keys are ignored. `failed` lists all roots that are
not visible although the owner ordered them, also from earlier orders.
An owner that tells a program about roots keeps this rule: after a grant, wait for `done` and then
notify the program; for a revoke, notify the program first and then send the order.

A warden that follows the daemon itself answers no orders. It sends a line whenever it has stopped
the programs, or lets them continue:

    {"programs": "stopped" | "running", "why": TEXT, "remedy": TEXT}

`lost` and `waiting` are for an engine that cannot change a running program. With `lost`, the
warden ends now, and its programs with it, because they may no longer have these roots. Programs
see the roots in `waiting` only when they are started again, with another warden.

A report with `done` 0 answers no order: a root went away because it can no longer be protected.
A warden that follows the daemon by itself gets no orders, and reports to the daemon.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from enum import Enum
from typing import Any, NamedTuple

from rootsd.core.mount_plan import ConfinedRoot, FolderIdentity, MountAccess
from rootsd.core.parsing import Unparsable, parse_json
from rootsd.core.paths import PathError, bytes_of, normalize_path, text_of

MAX_LINE_BYTES = 1 << 28


class BadOrder(ValueError):
    """A line that is no order, or a root that is not described correctly."""


class OrderKind(Enum):
    """How the roots of an order relate to those before it."""

    SET = "set"
    ADD = "add"
    REMOVE = "remove"
    CONTINUE = "continue"
    """Changes no root. It lets stopped programs run for a while, for a signal of the user."""


class PauseState(Enum):
    """Whether the programs of a wall run."""

    RUNNING = "running"
    STOPPED = "stopped"


class PauseNews(NamedTuple):
    """The programs were stopped, or continue. A stop has a reason for people, and a command."""

    state: PauseState
    why: str = ""
    remedy: str = ""


class WardenOrder(NamedTuple):
    """A change that an owner orders. `paths` are for REMOVE, `roots` for the others.

    `denied` are the folders that the base of the view must not show, or None if they stay the
    same.
    """

    number: int
    kind: OrderKind
    roots: tuple[ConfinedRoot, ...] = ()
    paths: tuple[bytes, ...] = ()
    denied: frozenset[bytes] | None = None


class FailedRoot(NamedTuple):
    """A root that could not be shown, and why."""

    path: bytes
    reason: str


class WardenReport(NamedTuple):
    """The state after a change: how many roots are visible, and the problems."""

    number: int
    shown: int = 0
    read_only: int = 0
    masked: int = 0
    failed: tuple[FailedRoot, ...] = ()
    holders: tuple[str, ...] = ()
    lost: tuple[bytes, ...] = ()
    waiting: tuple[bytes, ...] = ()


def encode_order(order: WardenOrder) -> bytes:
    """Return the line for `order`."""
    message: dict[str, Any] = {"order": order.number, "do": order.kind.value}
    if order.kind is OrderKind.CONTINUE:
        pass
    elif order.kind is OrderKind.REMOVE:
        message["paths"] = [text_of(path) for path in order.paths]
    else:
        message["roots"] = [encode_root(root) for root in order.roots]
    if order.denied is not None:
        message["denied"] = [text_of(path) for path in sorted(order.denied)]
    return _line(message)


def decode_order(line: bytes) -> WardenOrder:
    """Return the order in `line`. Raises BadOrder."""
    match _parse(line):
        case {"order": int() as number, "do": "remove", "paths": list() as paths, **more}:
            denied = decode_denied(more.get("denied"))
            return WardenOrder(number, OrderKind.REMOVE, paths=tuple(_paths(paths)), denied=denied)
        case {"order": int() as number, "do": "continue"}:
            return WardenOrder(number, OrderKind.CONTINUE)
        case {
            "order": int() as number, "do": "set" | "add" as kind, "roots": list() as roots, **more
        }:  # fmt: skip
            decoded = tuple(decode_root(root) for root in roots)
            denied = decode_denied(more.get("denied"))
            return WardenOrder(number, OrderKind(kind), roots=decoded, denied=denied)
        case _:
            raise BadOrder("not an order")


def encode_report(report: WardenReport) -> bytes:
    """Return the line for `report`."""
    return _line(
        {
            "done": report.number,
            "shown": report.shown,
            "read_only": report.read_only,
            "masked": report.masked,
            "failed": [
                {"path": text_of(path), "reason": reason} for path, reason in report.failed
            ],
            "holders": list(report.holders),
            "lost": [text_of(path) for path in report.lost],
            "waiting": [text_of(path) for path in report.waiting],
        }
    )


def decode_report(line: bytes) -> WardenReport:
    """Return the report in `line`. Raises BadOrder."""
    match _parse(line):
        case {
            "done": int() as number,
            "shown": int() as shown,
            "read_only": int() as read_only,
            "masked": int() as masked,
            "failed": list() as failed,
            "holders": list() as holders,
            "lost": list() as lost,
            "waiting": list() as waiting,
        }:
            return WardenReport(
                number,
                shown,
                read_only,
                masked,
                tuple(FailedRoot(bytes_of(each["path"]), each["reason"]) for each in failed),
                tuple(holders),
                tuple(bytes_of(path) for path in lost),
                tuple(bytes_of(path) for path in waiting),
            )
        case _:
            raise BadOrder("not a report")


def encode_pause(news: PauseNews) -> bytes:
    """Return the line that tells the owner that the programs were stopped, or continue."""
    return _line({"programs": news.state.value, "why": news.why, "remedy": news.remedy})


def decode_pause(line: bytes) -> PauseNews | None:
    """Return the news about the programs in a line, or None if it tells something else."""
    match _parse(line):
        case {
            "programs": "running" | "stopped" as state, "why": str() as why,
            "remedy": str() as remedy,
        }:  # fmt: skip
            return PauseNews(PauseState(state), why, remedy)
        case _:
            return None


def decode_denied(item: object) -> frozenset[bytes] | None:
    """Return the denied folders in a JSON list, or None for null. Raises BadOrder."""
    if item is None:
        return None
    if not isinstance(item, list):
        raise BadOrder("denied is a list")
    return frozenset(_paths(item))


def encode_root(root: ConfinedRoot) -> dict[str, Any]:
    """Return the JSON object for `root`."""
    return {
        "path": text_of(root.path),
        "access": root.access.value,
        "identity": _encode_optional(root.identity),
        "denied": [text_of(path) for path in sorted(root.denied)],
        "shared_git": None if root.shared_git is None else text_of(root.shared_git),
        "name": root.name,
        "withheld": root.is_withheld,
        "shared_git_identity": _encode_optional(root.shared_git_identity),
        "git_access": root.git_access,
        "ends_ns": root.ends_ns,
    }


def decode_root(item: object) -> ConfinedRoot:
    """Return the root in a JSON object. Raises BadOrder."""
    match item:
        case {"path": str() as path, "access": "read" | "read-write" as access, **more}:
            denied, shared = more.get("denied", []), more.get("shared_git")
            name, withheld = more.get("name", ""), more.get("withheld", False)
            git_access = more.get("git_access", "")
            ends_ns = more.get("ends_ns")
            if not isinstance(ends_ns, int | None):
                raise BadOrder("ends_ns is a number of nanoseconds")
            if not isinstance(denied, list):
                raise BadOrder("denied is a list")
            if not isinstance(name, str) or not isinstance(withheld, bool):
                raise BadOrder("name is a string, and withheld is true or false")
            if not isinstance(git_access, str):
                raise BadOrder("git_access is a string")
            return ConfinedRoot(
                _path(path),
                MountAccess(access),
                _decode_identity(more.get("identity")),
                frozenset(_paths(denied)),
                None if shared is None else _path(shared),
                name,
                withheld,
                _decode_identity(more.get("shared_git_identity")),
                git_access,
                ends_ns,
            )
        case _:
            raise BadOrder("not a root")


def _encode_optional(identity: FolderIdentity | None) -> dict[str, Any] | None:
    if identity is None:
        return None
    return {
        "inode": identity.inode,
        "owner": identity.owner,
        "handle": None if identity.handle is None else identity.handle.hex(),
        "born_ns": identity.born_ns,
        "device": identity.device,
    }


def _decode_identity(item: object) -> FolderIdentity | None:
    match item:
        case None:
            return None
        case {
            "inode": int() as inode,
            "owner": int() as owner,
            "handle": None | str() as handle,
            "born_ns": None | int() as born_ns,
            "device": None | int() as device,
        }:
            try:
                data = None if handle is None else bytes.fromhex(handle)
            except ValueError as error:
                raise BadOrder("not a file handle") from error
            return FolderIdentity(inode, owner, data, born_ns, device)
        case _:
            raise BadOrder("not an identity")


def _paths(items: Iterable[object]) -> Iterator[bytes]:
    return (_path(item) for item in items)


def _path(item: object) -> bytes:
    if not isinstance(item, str):
        raise BadOrder("a path is a string")
    try:
        return normalize_path(bytes_of(item))
    except (PathError, UnicodeEncodeError) as error:
        raise BadOrder(f"not an absolute path: {error}") from error


def _parse(line: bytes) -> object:
    try:
        return parse_json(line)
    except Unparsable as error:
        raise BadOrder("not JSON") from error


def _line(message: dict[str, Any]) -> bytes:
    return json.dumps(message).encode("ascii") + b"\n"
