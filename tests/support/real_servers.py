"""Real MCP servers, and a way to see whether a folder is open to each."""

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

from support import node_packages
from support.run_proxy import SCRIPTED

Look = Callable[[Client, Path], Awaitable[bool]]
LISTING = Path(__file__).with_name("listing_server.py")


class RootLimit(Enum):
    """How many roots a server can have."""

    ALL = auto()
    ONE = auto()


@dataclass(frozen=True, slots=True)
class Server:
    """A server with the flags of `run` that suit it. `is_open` probes a folder with it."""

    command: Callable[[], list[str]]
    is_open: Look
    takes: RootLimit = RootLimit.ALL
    flags: tuple[str, ...] = ()
    restarts: bool = False


async def said(client: Client, tool: str, **arguments: object) -> str | None:
    """Return the text of a tool's answer, or None if it refuses."""
    try:
        result: Any = await client.call_tool(tool, arguments)
    except MCPError:
        return None
    return None if result.is_error else str(result.content[0].text)


@cache
def _from_npm(package: str, *words: str) -> tuple[str, ...]:
    folder = node_packages.packages() / "node_modules" / package
    # Not through node_modules/.bin, where two packages may use the same name.
    (program,) = json.loads((folder / "package.json").read_text())["bin"].values()
    return (str(node_packages.node()), str(folder / program), *words)


def npm(package: str, *words: str) -> Callable[[], list[str]]:
    """Return the command of a package's program."""
    return lambda: list(_from_npm(package, *words))


def python(*words: str) -> Callable[[], list[str]]:
    return lambda: [sys.executable, *words]


async def reads_file(client: Client, folder: Path) -> bool:
    return "hello" in (await said(client, "read_text_file", path=str(folder / "README")) or "")


async def reads_by_script(client: Client, folder: Path) -> bool:
    return await said(client, "reads", path=str(folder / "README")) == "hello"


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
    """Return whether a note in the vault can be read.

    The tool takes a name within its vault and gives the same answer for all vaults, so the note
    differs.
    """
    note = await said(client, "obsidian_read_note", vault="v", path="NOTE.md")
    return f"I am {folder.name}" in (note or "")


async def writes_memory(client: Client, folder: Path) -> bool:
    memory = folder / "memory.json"
    before = memory.stat().st_size if memory.exists() else 0
    entity = {"name": f"e{before}", "entityType": "x", "observations": []}
    await said(client, "create_entities", entities=[entity])
    return memory.exists() and memory.stat().st_size > before


async def finds_text(client: Client, folder: Path) -> bool:
    return "hello" in (await said(client, "search", pattern="hello", path=str(folder)) or "")


async def runs_code(client: Client, folder: Path) -> bool:
    code = f"cat '{folder}/README'"
    return "hello" in (await said(client, "run-code", code=code, languageId="shellscript") or "")


async def thinks(client: Client, _: Path) -> bool:
    thought = {
        "thought": "?", "thoughtNumber": 1, "totalThoughts": 1, "nextThoughtNeeded": False,
    }  # fmt: skip
    return "thoughtHistoryLength" in (await said(client, "sequentialthinking", **thought) or "")


async def tells_time(client: Client, _: Path) -> bool:
    zone = "Europe/Berlin"
    return zone in (await said(client, "get_current_time", timezone=zone) or "")


SERVERS = {
    "server-filesystem": Server(npm("@modelcontextprotocol/server-filesystem"), reads_file),
    "server-filesystem {roots}": Server(
        npm("@modelcontextprotocol/server-filesystem", "{roots}"), reads_file, restarts=True
    ),
    "server-everything": Server(npm("@modelcontextprotocol/server-everything"), names_it),
    "SDK server with ListRoots": Server(python(str(LISTING)), shows_it),
    "mcp-server-git": Server(
        python("-m", "mcp_server_git", "--repository", "{root}"), shows_status, RootLimit.ONE,
        restarts=True,
    ),
    "git-mcp-server": Server(
        npm("@cyanheads/git-mcp-server"), shows_status_too, RootLimit.ONE,
        ("--env", "GIT_BASE_DIR={root}", "--env", "MCP_LOG_LEVEL=error"), restarts=True,
    ),
    "mcp-obsidian": Server(
        npm("mcp-obsidian", "{root}"), reads_note, RootLimit.ONE, restarts=True
    ),
    "server-memory": Server(
        npm("@modelcontextprotocol/server-memory"), writes_memory, RootLimit.ONE,
        ("--env", "MEMORY_FILE_PATH={root}/memory.json"), restarts=True,
    ),
    "agent-infra filesystem": Server(
        npm("@agent-infra/mcp-server-filesystem", "--allowed-directories={roots}"), reads_either,
        restarts=True,
    ),
    "obsidian-mcp": Server(
        npm("obsidian-mcp", "serve", "--vault", "v={root}"), reads_vault, RootLimit.ONE,
        restarts=True,
    ),
}  # fmt: skip

# Not a real one. It starts in a tenth of the time, for tests whose behavior is the same with all.
SCRIPTED_SERVER = Server(lambda: [*SCRIPTED], reads_by_script)

# They take no roots. They use every folder that they can reach, or none.
ROOTLESS_SERVERS = {
    "mcp-ripgrep": Server(npm("mcp-ripgrep"), finds_text),
    "mcp-server-code-runner": Server(npm("mcp-server-code-runner"), runs_code),
    "mcp-server-git, any repository": Server(python("-m", "mcp_server_git"), shows_status),
    "server-sequential-thinking": Server(
        npm("@modelcontextprotocol/server-sequential-thinking"), thinks
    ),
    "mcp-server-time": Server(python("-m", "mcp_server_time"), tells_time),
}
