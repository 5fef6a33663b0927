"""Real MCP servers, and how to see whether a folder is open to them."""

from __future__ import annotations

import json
import sys
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from enum import Enum, auto
from functools import cache
from pathlib import Path
from typing import Any

from mcp import Client
from mcp.shared.exceptions import MCPError

from support import node

Look = Callable[[Client, Path], Awaitable[bool]]
LISTING = Path(__file__).with_name("listing_server.py")


class Takes(Enum):
    """How many roots a server can have."""

    ALL = auto()
    ONE = auto()


@dataclass(frozen=True, slots=True)
class Server:
    """A server with the form of `run` that suits it. `is_open` uses it on a folder."""

    command: Callable[[], list[str]]
    is_open: Look
    takes: Takes = Takes.ALL
    flags: tuple[str, ...] = ()
    restarts: bool = False


async def said(client: Client, tool: str, **arguments: object) -> str | None:
    """What a tool answers; None where it refuses."""
    try:
        result: Any = await client.call_tool(tool, arguments)
    except MCPError:
        return None
    return None if result.is_error else str(result.content[0].text)


@cache
def _from_npm(package: str, *words: str) -> tuple[str, ...]:
    folder = node.packages() / "node_modules" / package
    # Not through node_modules/.bin, where two packages may want the same name.
    (program,) = json.loads((folder / "package.json").read_text())["bin"].values()
    return (str(node.node()), str(folder / program), *words)


def npm(package: str, *words: str) -> Callable[[], list[str]]:
    """The program of a package."""
    return lambda: list(_from_npm(package, *words))


def python(*words: str) -> Callable[[], list[str]]:
    return lambda: [sys.executable, *words]


async def reads_file(client: Client, folder: Path) -> bool:
    return "hello" in (await said(client, "read_text_file", path=str(folder / "README")) or "")


async def names_it(client: Client, folder: Path) -> bool:
    return f"file://{folder}\n" in (await said(client, "get-roots-list") or "") + "\n"


async def shows_it(client: Client, folder: Path) -> bool:
    return folder.as_uri() in (await said(client, "show_roots") or "").split()


async def shows_status(client: Client, folder: Path) -> bool:
    return "branch" in (await said(client, "git_status", repo_path=str(folder)) or "")


async def shows_status_too(client: Client, folder: Path) -> bool:
    return "currentBranch" in (await said(client, "git_status", path=str(folder)) or "")


async def reads_note(client: Client, folder: Path) -> bool:
    way = f"../{folder.name}/README"
    return "hello" in (await said(client, "read_notes", paths=[way]) or "")


async def reads_either(client: Client, folder: Path) -> bool:
    return "hello" in (await said(client, "read_file", path=str(folder / "README")) or "")


async def reads_vault(client: Client, folder: Path) -> bool:
    """It is asked by a name within its vault, and says the same of all; so the note differs."""
    note = await said(client, "obsidian_read_note", vault="v", path="NOTE.md")
    return f"I am {folder.name}" in (note or "")


async def writes_memory(client: Client, folder: Path) -> bool:
    memory = folder / "memory.json"
    before = memory.stat().st_size if memory.exists() else 0
    entity = {"name": f"e{before}", "entityType": "x", "observations": []}
    await said(client, "create_entities", entities=[entity])
    return memory.exists() and memory.stat().st_size > before


SERVERS = {
    "server-filesystem": Server(npm("@modelcontextprotocol/server-filesystem"), reads_file),
    "server-filesystem {roots}": Server(
        npm("@modelcontextprotocol/server-filesystem", "{roots}"), reads_file, restarts=True
    ),
    "server-everything": Server(npm("@modelcontextprotocol/server-everything"), names_it),
    "SDK server with ListRoots": Server(python(str(LISTING)), shows_it),
    "mcp-server-git": Server(
        python("-m", "mcp_server_git", "--repository", "{root}"), shows_status, Takes.ONE,
        restarts=True,
    ),
    "git-mcp-server": Server(
        npm("@cyanheads/git-mcp-server"), shows_status_too, Takes.ONE,
        ("--env", "GIT_BASE_DIR={root}", "--env", "MCP_LOG_LEVEL=error"), restarts=True,
    ),
    "mcp-obsidian": Server(npm("mcp-obsidian", "{root}"), reads_note, Takes.ONE, restarts=True),
    "server-memory": Server(
        npm("@modelcontextprotocol/server-memory"), writes_memory, Takes.ONE,
        ("--env", "MEMORY_FILE_PATH={root}/memory.json"), restarts=True,
    ),
    "agent-infra filesystem": Server(
        npm("@agent-infra/mcp-server-filesystem", "--allowed-directories={roots}"), reads_either,
        restarts=True,
    ),
    "obsidian-mcp": Server(
        npm("obsidian-mcp", "serve", "--vault", "v={root}"), reads_vault, Takes.ONE, restarts=True,
    ),
}  # fmt: skip
