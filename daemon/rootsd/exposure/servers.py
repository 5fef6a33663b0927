"""Tell what an MCP server of a client can reach, and what is wrong with its entry."""

from __future__ import annotations

import os
import re
import shutil
from collections.abc import Iterator, Sequence

from rootsd.agents.forms.reach import (
    AgentReach,
    ExposureFinding,
    ExposureKind,
    Extent,
    by_default,
    finding,
)
from rootsd.connect.base import ClientEnvironment, McpClient
from rootsd.connect.edits import all_servers
from rootsd.connect.launch import launch_of
from rootsd.connect.servers import (
    IS_REMOTE,
    TURNED_OFF,
    ServerEntry,
    ServerId,
    is_wrapped,
    list_servers,
)
from rootsd.connect.wraps import ServerWrap, WrapMode
from rootsd.settings.errors import NotEditable
from rootsd.settings.formats import KeyPath
from rootsd.settings.settings_text import SettingsText

_CONTAINERS = ("docker", "podman", "container")
# Programs that fetch a package and run it: the words before it, and the options with a value.
_RUNNERS = {
    "npx": (), "bunx": (), "pnpx": (), "uvx": (), "npm": ("exec",), "pnpm": ("dlx",),
    "yarn": ("dlx",), "bun": ("x",), "pipx": ("run",), "uv": ("tool", "run"), "deno": ("run",),
    **dict.fromkeys(_CONTAINERS, ("run",)),
}  # fmt: skip
_NAMES_PACKAGE = ("--package", "-p", "--from", "--spec")
_WITH_VALUE = (
    "-e", "--env", "--env-file", "-v", "--volume", "--mount", "-p", "--publish", "--name",
    "--network", "--net", "-u", "--user", "-w", "--workdir", "--entrypoint", "--python",
    "--with", "--index-url", "-l", "--label", "-h", "--hostname", "-m", "--memory", "--pull",
    "--platform", "--add-host", "--cap-add", "--cap-drop", "--security-opt",
)  # fmt: skip
_EXACT = re.compile(r"(?:==|@)v?\d+\.\d+[\w.+-]*$")
_CREDENTIALS = re.compile(r"(?<=//)[^/]*@|\?.*")
_FIXED_SOURCE = re.compile(r"@(?:sha256:)?[0-9a-f]{40,64}(?:#.*)?$")


def servers_of(
    client: McpClient, environment: ClientEnvironment, file: SettingsText
) -> list[tuple[ServerId, AgentReach]]:
    """Return the servers in a settings file that a session would start."""
    if file.problem or not file.text:
        return []
    try:
        entries = all_servers(client, file.text)
    except NotEditable:
        return []
    return [
        (entry.server, _reach(client, environment, file, entry))
        for entry in list_servers(client.facts.form, entries)
        if entry.obstacle != TURNED_OFF
    ]


def _reach(
    client: McpClient, environment: ClientEnvironment, file: SettingsText, entry: ServerEntry
) -> AgentReach:
    keys = _keys_of(client, entry.server)
    extent, reason = Extent.EVERYTHING, "nothing limits a program that a client starts"
    opened: tuple[str, ...] = ()
    if not entry.words:
        extent = Extent.NOTHING if entry.obstacle == IS_REMOTE else Extent.UNKNOWN
        reason = entry.obstacle
    elif is_wrapped(entry.words):
        wrap = ServerWrap.parse(entry.words)
        if wrap is not None and wrap.mode is WrapMode.CONFINED:
            extent, reason = Extent.ROOTS, "rootsd run --confine starts it"
            opened = tuple(each.path for each in wrap.shown)
    elif os.path.basename(entry.words[0]) in _CONTAINERS:
        extent, reason = Extent.CONTAINER, "a container runs it"
        opened = tuple(_mounted(entry.words))
    access = by_default(extent, reason)
    access |= {"file": file.path, "line": file.line(keys)}
    found = _findings(client, environment, file, entry, keys)
    return AgentReach(access, access, opened, tuple(found))


def _keys_of(client: McpClient, server: ServerId) -> KeyPath:
    front = (*client.facts.projects, server.project) if server.project else ()
    return (*front, *client.facts.keys, server.name)


def _findings(
    client: McpClient,
    environment: ClientEnvironment,
    file: SettingsText,
    entry: ServerEntry,
    keys: KeyPath,
) -> Iterator[ExposureFinding]:
    if not entry.words:
        return
    launch = launch_of(entry, client.facts.reading, environment)
    label = entry.server.label
    program = launch.words[0]
    search = launch.variables.get("PATH") or environment.variables.get("PATH", "")
    is_sure = not (launch.unknown or launch.is_shell)
    if is_sure and shutil.which(os.path.expanduser(program), path=search) is None:
        text = f"{label} starts {program.partition(' ')[0]}, which does not exist"
        yield finding(ExposureKind.PROGRAM_GONE, file, keys, text)
    words = launch.words
    if is_wrapped(words) and "--" in words:
        words = words[words.index("--") + 1 :]
    if (package := unpinned(words)) is not None:
        package = _CREDENTIALS.sub("", package)
        text = f"each start of {label} may fetch another version of {package}"
        yield finding(ExposureKind.UNPINNED, file, keys, text)


def unpinned(words: Sequence[str]) -> str | None:
    """Return the package or image that a command fetches in whatever version, or None. Pure."""
    runner = os.path.basename(words[0]) if words else ""
    before = _RUNNERS.get(runner)
    rest = list(words[1:])
    if before is None or tuple(rest[: len(before)]) != before:
        return None
    rest = rest[len(before) :]
    package = None
    while rest and package is None:
        word = rest.pop(0)
        name, _, value = word.partition("=")
        if runner not in _CONTAINERS and name in _NAMES_PACKAGE:
            package = value or (rest.pop(0) if rest else None)
        elif not word.startswith("-"):
            package = word
        elif name in _WITH_VALUE and not value:
            rest[:1] = []
    if package is None or package.startswith((".", "/", "~", "file:")):
        return None
    if runner == "deno" and not package.startswith(("npm:", "jsr:", "http")):
        return None
    is_exact = runner not in _CONTAINERS and _EXACT.search(package) is not None
    return None if is_exact or _FIXED_SOURCE.search(package) is not None else package


def _mounted(words: Sequence[str]) -> Iterator[str]:
    """Yield the folders of the host that a container gets."""
    for word, value in zip(words, (*words[1:], ""), strict=False):
        name, _, glued = word.partition("=")
        given = glued or value
        if name in ("-v", "--volume"):
            yield given.partition(":")[0]
        elif name == "--mount":
            parts = dict(part.split("=", 1) for part in given.split(",") if "=" in part)
            yield parts.get("source", parts.get("src", ""))
