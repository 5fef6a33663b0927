"""Pass on what an agent's hook says about where the agent works.

* Before a call of an MCP server: another agent than the main one may work in a worktree of its
  own. `rootsd run` takes the note for the call with the same id.
* After a folder was added: the daemon proposes it, unless it is approved.

A hook never delays its agent for long, and nothing here can refuse a call.
"""

from __future__ import annotations

import os
from contextlib import suppress

from rootsd.core.errors import RootsdError
from rootsd.link.connect import connect_to_daemon
from rootsd.places.call_places import leave_note
from rootsd.places.runtime_dir import find_runtime_dir
from rootsd.wire.hello import Hello, WorkFolders, encode_hello, encode_move
from rootsd.wire.jsonrpc import LineReader, encode

_TIMEOUT_S = 1.0
_CHUNK = 1 << 12
_MAX_ANSWER_BYTES = 1 << 16


def tell_move(event: object, client: str) -> None:
    """Pass on one event of the hook of `client`. An event that says nothing new is ignored."""
    with suppress(OSError, RootsdError, ValueError):
        match event:
            case {"tool_use_id": str() as call, "cwd": str() as folder, "agent_id": str()} if (
                os.path.isabs(folder)
            ):
                leave_note(find_runtime_dir().path, call, folder)
            case {"directory": str() as folder} if os.path.isabs(folder):
                _propose(folder, client)
            case _:
                pass


def _propose(folder: str, client: str) -> None:
    """Let the daemon propose a folder, and wait for its answer, but not long."""
    with connect_to_daemon(_TIMEOUT_S) as daemon:
        daemon.settimeout(_TIMEOUT_S)
        daemon.sendall(encode(encode_hello(Hello(client=client), 0)))
        daemon.sendall(encode(encode_move(WorkFolders((folder,)), 1)))
        answers = LineReader(_MAX_ANSWER_BYTES)
        for _ in ("hello", "move"):
            while answers.pop() is None:
                if not (data := daemon.recv(_CHUNK)):
                    return
                answers.feed(data)
