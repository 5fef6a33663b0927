"""Real servers behind the wall, with no option of the wall: they work, and reach roots only."""

from __future__ import annotations

import sys
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from dataclasses import replace

import anyio
import pytest
from anyio import to_thread
from mcp import Client
from mcp.client.stdio import StdioServerParameters

from rootsd.agents.forms.client import EntryReading
from rootsd.agents.forms.place import Platform
from rootsd.connect.base import ClientEnvironment
from rootsd.connect.launch import launch_of
from rootsd.connect.named_paths import ReachableFiles, path_needs
from rootsd.connect.servers import ServerEntry, ServerId
from rootsd.connect.wraps import ServerWrap
from rootsd.core.wall import WallSettings
from support import node_packages
from support.person import Resident
from support.real_servers import ROOTLESS_SERVERS, SERVERS, Server, tells_time, thinks
from support.sizes import Sizes

HANG_GUARD_S = 120
OF_OTHERS = {
    name: server
    for name, server in {**SERVERS, **ROOTLESS_SERVERS}.items()
    if name != "SDK server with ListRoots"
}
WITHOUT_FILES = (thinks, tells_time)
# They read what they are told to, so only the wall is in their way.
UNLIMITED = ("mcp-ripgrep", "mcp-server-code-runner", "mcp-server-git, any repository")

pytestmark = [
    pytest.mark.needs("wall", "npm", "ripgrep", "bash"),
    # The SDK deprecates what its own legacy mode still has to use.
    pytest.mark.filterwarnings("ignore::mcp.shared.exceptions.MCPDeprecationWarning"),
]


class Installer(Resident):
    """Has installed the packages for Node in their home folder."""

    def environment(self) -> dict[str, str]:
        return {**super().environment(), "HOME": str(node_packages.HOME)}


@pytest.fixture(scope="module")
def person(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Installer]:
    """Has approved alpha, and not decided about gamma."""
    person = Installer(tmp_path_factory.mktemp("installer"))
    for name in ("alpha", "gamma"):
        folder = person.clone(name)
        (folder / ".obsidian").mkdir()  # which makes it a vault
        (folder / "NOTE.md").write_text(f"I am {name}\n")
    person.rootsd("up", str(person.parent))
    person.rootsd("approve", "alpha")
    yield person
    person.run("down")


@asynccontextmanager
async def client_of(person: Installer, server: Server, *flags: str) -> AsyncIterator[Client]:
    environment = person.environment()
    parameters = StdioServerParameters(
        command=sys.executable,
        args=["-m", "rootsd", "run", "--all", *flags, *server.flags, "--", *server.command()],
        env={
            **{name: environment[name] for name in ("HOME", "PATH", "ROOTSD_DIR")},
            # One of them writes to a fixed name in there.
            "TMPDIR": str(person.home),
        },
        cwd="/",
    )
    async with Client(parameters, mode="legacy") as client:
        yield client


async def use(person: Installer, name: str) -> None:
    """Use a server behind the wall: it works, and reaches what is approved at that moment."""
    server = OF_OTHERS[name]
    alpha, gamma = (person.parent / each for each in ("alpha", "gamma"))
    async with client_of(person, server, "--confine") as client:
        assert (await client.list_tools()).tools, name
        assert await server.is_open(client, alpha), name
        if server.is_open in WITHOUT_FILES:
            return
        assert not await server.is_open(client, gamma), name
        if name in UNLIMITED:
            await to_thread.run_sync(person.rootsd, "approve", "gamma")
            assert await server.is_open(client, gamma), name
            await to_thread.run_sync(person.rootsd, "forget", "gamma")
            assert not await server.is_open(client, gamma), name


async def test_servers_work_and_reach_the_roots_only(person: Installer, sizes: Sizes) -> None:
    names = sizes.pick(test=UNLIMITED[:1], check=tuple(OF_OTHERS), soak=tuple(OF_OTHERS))
    for name in names:
        with anyio.fail_after(HANG_GUARD_S):
            await use(person, name)


async def test_without_the_wall_they_read_every_folder(person: Installer, sizes: Sizes) -> None:
    for name in sizes.pick(test=UNLIMITED[:1], check=UNLIMITED, soak=UNLIMITED):
        server = OF_OTHERS[name]
        with anyio.fail_after(HANG_GUARD_S):
            async with client_of(person, server) as client:
                assert await server.is_open(client, person.parent / "gamma"), name


async def test_a_memory_outside_the_roots_is_found_and_kept_as_connect_shows_it(
    person: Installer,
) -> None:
    folder = person.home / "notes"
    folder.mkdir()
    file = folder / "memory.json"
    file.touch()
    flags = ("--env", f"MEMORY_FILE_PATH={file}")
    server = replace(OF_OTHERS["server-memory"], flags=flags)
    variables = {"MEMORY_FILE_PATH": str(file)}
    entry = ServerEntry(ServerId("memory"), tuple(server.command()), variables)
    environment = ClientEnvironment(node_packages.HOME, person.environment(), Platform.LINUX)
    launch = launch_of(entry, EntryReading(), environment)
    reachable = ReachableFiles(node_packages.HOME, WallSettings())
    [need] = path_needs(launch, reachable, environment.variables["PATH"])
    assert (need.path, need.origin) == (str(file), "MEMORY_FILE_PATH")
    assert need.shown is not None
    shown = ServerWrap(shown=(need.shown,))
    for wrap, is_kept in ((shown, True), (ServerWrap(), False)):  # the second is the control
        with anyio.fail_after(HANG_GUARD_S):
            async with client_of(person, server, *wrap.front("rootsd")[2:-1]) as client:
                assert await server.is_open(client, folder) is is_kept


def test_they_are_twelve_servers() -> None:
    assert len(set(OF_OTHERS) - {"server-filesystem {roots}", UNLIMITED[2]}) == 12
