"""Know the callers of the control socket, and every program that uses MCP.

`CallerFinder` collects the facts that `core.guard` judges: the lineage of a caller, its terminals,
and the programs that have an MCP connection or started one that has. It remembers the latter,
because a process that connected may have ended, or have another parent, when a command arrives.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence

import anyio
from msgspec.structs import replace

from rootsd.control.process_view import ProcessView
from rootsd.core.guard import Caller, McpHosts, mcp_hosts_in, only_launches
from rootsd.core.processes import Lineage, LineageCompleteness, Process, ProgramSight
from rootsd.helper.processes import ProcessReport
from rootsd.processes.process_exit import ProcessHandle

_MAX_HOSTS = 4096
_MAX_INTRODUCED = 256
_LOOKUP_TIMEOUT_S = 2.0
_UNSEEN = Lineage(completeness=LineageCompleteness.UNAVAILABLE)
_LATE = Lineage(completeness=LineageCompleteness.LATE)


class CallerFinder:
    """Finds callers and remembers the programs that use MCP.

    `connected` returns the processes with an MCP connection. `markers` are the variables in an
    environment that are read, because they tell an agent.
    """

    def __init__(self, view: ProcessView, connected: Callable[[], Iterable[int]]) -> None:
        self._view = view
        self._connected = connected
        self.markers: Collection[str] = frozenset()
        self._introduced: dict[tuple[int, int], Process] = {}
        self._hosts: dict[tuple[int, int], Process] = {}
        self._are_all_hosts_known = True
        self._arrived = anyio.Event()
        self._seen = anyio.Event()

    @property
    def hosts(self) -> McpHosts:
        """The programs that use MCP, as far as they were seen."""
        return McpHosts(tuple(self._hosts.values()), self._are_all_hosts_known)

    async def find(self, peer: ProcessHandle) -> Caller:
        """Return the caller at the other end of a connection, and look at all MCP connections."""
        seen = await self._look_up((peer.pid,))
        # Check this after the lookup. If the process still lives, the facts are about it and not
        # about a later process with the same pid.
        gone = peer.has_gone()
        if seen is None:
            return Caller(_UNSEEN, gone)
        lineage = self._with_introduced(seen.lineages.get(peer.pid, Lineage()))
        return Caller(lineage, gone, seen.terminals)

    async def introduce(self, peer: ProcessHandle) -> None:
        """Remember what the caller is, because it is about to hide from all programs."""
        process = (await self.find(peer)).process
        if process is None or process.sight is ProgramSight.HIDDEN:
            return
        self._introduced[process.key] = process
        while len(self._introduced) > _MAX_INTRODUCED:
            del self._introduced[next(iter(self._introduced))]

    async def record_connection(self) -> None:
        """Wait until the programs that started a new MCP connection are known.

        A client gets its first answer after that, so every program that got an answer is known.
        The wait has a timeout, so that a slow lookup does not block a client.
        """
        seen = self._seen
        self._arrived.set()
        with anyio.move_on_after(_LOOKUP_TIMEOUT_S):
            await seen.wait()

    async def keep_recording_hosts(self, are_needed: Callable[[], bool]) -> None:
        """Look up the ancestors of each process that connects, for as long as the daemon runs.

        Later, the ancestors may have ended, and the process may have another parent. One lookup
        covers all connections that arrived during the lookup before it.
        """
        while True:
            await self._arrived.wait()
            seen = self._seen
            self._arrived, self._seen = anyio.Event(), anyio.Event()
            if are_needed():
                await self._look_up(())
            seen.set()

    def _with_introduced(self, lineage: Lineage) -> Lineage:
        """Return the lineage, with what was seen of a hidden caller before it hid."""
        if not lineage.processes or lineage.processes[0].sight is not ProgramSight.HIDDEN:
            return lineage
        caller, *above = lineage.processes
        known = self._introduced.get(caller.key)
        if known is None or known.name != caller.name:
            return lineage
        facts = dataclasses.replace(
            caller, program=known.program, sight=known.sight, markers=known.markers
        )
        return replace(lineage, processes=(facts, *above))

    async def _look_up(self, callers: Sequence[int]) -> ProcessReport | None:
        connected, hosts = set(self._connected()), {host.pid for host in self._hosts.values()}
        others = [*sorted(connected - hosts), *sorted(hosts)]
        report = await self._view.look_up(callers, others, self.markers)
        if report is None:
            return None
        lineages = report.lineages
        self._forget_ended(hosts, lineages)
        self._are_all_hosts_known = True
        using = set[tuple[int, int]]()
        for pid in connected:
            seen = lineages.get(pid, _LATE)
            found = [*mcp_hosts_in(seen.processes)]
            if not seen.is_complete and len(found) == len(seen.processes):
                # The program that started it may be in the part of the lineage that was not read.
                self._are_all_hosts_known &= pid in hosts
                continue
            using.update(host.key for host in found)
            for host in found:
                self._hosts.pop(host.key, None)
                self._hosts[host.key] = host
        if self._are_all_hosts_known:
            self._forget_unused_launchers(using)
        while len(self._hosts) > _MAX_HOSTS:
            del self._hosts[next(iter(self._hosts))]
        return report

    def _forget_unused_launchers(self, using: Collection[tuple[int, int]]) -> None:
        """Forget each shell and launcher below which no program uses MCP any more.

        It runs what it is told. If an agent told it to start a bridge, the agent stays a host.
        """
        for key, host in [*self._hosts.items()]:
            if key not in using and only_launches(host):
                del self._hosts[key]

    def _forget_ended(self, pids: Collection[int], lineages: Mapping[int, Lineage]) -> None:
        """Forget the hosts among `pids` that have ended.

        No living process has them as an ancestor any more. If the lookup was too late to read a
        host, keep it.
        """
        living = {seen.processes[0].key for seen in lineages.values() if seen.processes}
        found = {pid: lineages.get(pid, _LATE) for pid in pids}
        late = {pid for pid, seen in found.items() if not seen.processes and not seen.is_complete}
        for key in [*self._hosts]:
            if key[0] in pids and key not in living and key[0] not in late:
                del self._hosts[key]
