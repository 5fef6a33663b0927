"""MCP servers that follow a session to another tree: one row for each.

Each row has a call whose answer says in which tree the server works. `WHERE` is a file of a tree
with the name of its branch. It is a note, a text, and a memory at the same time, so that all
servers can read it.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from enum import Enum, auto
from pathlib import Path
from typing import NamedTuple

from support import node_packages
from support.real_servers import SERVERS, npm
from support.scripted_model import Call

WHERE = "here.md"
UNTRACKED = (WHERE, ".serena")


def where_text(branch: str) -> str:
    """Return the text of `WHERE` in a tree on `branch`."""
    entity = {"type": "entity", "name": branch, "entityType": "branch", "observations": []}
    return json.dumps(entity) + "\n"


class Tells(Enum):
    """What an answer says about the tree."""

    FOLDERS = auto()
    """All folders of the session: its place and those that were added to it."""
    PLACE = auto()
    """The folder where the session works."""
    BRANCH = auto()


class FollowedServer(NamedTuple):
    """A server. `options` are those of `rootsd run` for it."""

    command: Callable[[], list[str]]
    call: Call
    tells: Tells
    options: tuple[str, ...] = ()


class Place(NamedTuple):
    """Where a session works: a checkout on a branch, and the folders that were added.

    It has neither the checkouts `others` nor anything in them.
    """

    folder: Path
    branch: str
    others: tuple[Path, ...]
    added: tuple[Path, ...] = ()


def is_right(server: FollowedServer, answer: str, place: Place) -> bool:
    """Return whether an answer of the server is about this place, and about no other."""
    if server.tells is Tells.BRANCH:
        return _names(place.branch, answer)
    added = place.added if server.tells is Tells.FOLDERS else ()
    return all(_names(str(each), answer) for each in (place.folder, *added)) and not any(
        _names(str(each), answer) for each in place.others
    )


def _names(text: str, answer: str) -> bool:
    return re.search(rf"{re.escape(text)}(?![\w/.-])", answer) is not None


def _from_pip(program: str, *words: str) -> Callable[[], list[str]]:
    folder = node_packages.TOP / "build" / "mcp-servers" / "bin"
    return lambda: [str(folder / program), *words]


FOLLOWED = {
    "files": FollowedServer(
        npm("@modelcontextprotocol/server-filesystem", "{root}"),
        Call("files__list_allowed_directories"),
        Tells.FOLDERS,
    ),
    "git": FollowedServer(
        SERVERS["mcp-server-git"].command,
        Call("git__git_status", {"repo_path": "."}),
        Tells.BRANCH,
    ),
    "everything": FollowedServer(
        SERVERS["server-everything"].command, Call("everything__get-roots-list"), Tells.FOLDERS
    ),
    "sdk": FollowedServer(
        SERVERS["SDK server with ListRoots"].command, Call("sdk__show_roots"), Tells.FOLDERS
    ),
    "ripgrep": FollowedServer(
        npm("mcp-ripgrep"),
        Call("ripgrep__search", {"pattern": "entity", "path": WHERE}),
        Tells.BRANCH,
    ),
    "infra": FollowedServer(
        SERVERS["agent-infra filesystem"].command,
        Call("infra__list_allowed_directories"),
        Tells.FOLDERS,
    ),
    "vault": FollowedServer(
        SERVERS["obsidian-mcp"].command,
        Call("vault__obsidian_read_note", {"vault": "v", "path": WHERE}),
        Tells.BRANCH,
    ),
    "memory": FollowedServer(
        SERVERS["server-memory"].command,
        Call("memory__read_graph"),
        Tells.BRANCH,
        ("--env", f"MEMORY_FILE_PATH={{root}}/{WHERE}"),
    ),
    "index": FollowedServer(
        _from_pip("code-index-mcp", "--project-path", "{root}"),
        Call("index__get_settings_info"),
        Tells.PLACE,
    ),
    "serena": FollowedServer(
        _from_pip(
            "serena", "start-mcp-server", "--project", "{root}", "--enable-web-dashboard", "false"
        ),
        Call("serena__read_file", {"relative_path": WHERE}),
        Tells.BRANCH,
    ),
}  # fmt: skip
