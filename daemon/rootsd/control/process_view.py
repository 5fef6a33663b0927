"""See processes and their terminals through the helper process.

The confined daemon can neither read other processes nor write to a terminal.
"""

from __future__ import annotations

import logging
from collections.abc import Collection, Mapping, Sequence

from anyio import to_thread

from rootsd.core.errors import CallerRefused
from rootsd.core.processes import Process, ProcessChain
from rootsd.helper.client import Helper, NoAnswer
from rootsd.helper.processes import ProcessQuestion, ProcessReport, ask_processes
from rootsd.helper.terminals import ask_to_write_terminal
from rootsd.processes.terminals import TerminalWriteFailed

log = logging.getLogger(__name__)


class ProcessView:
    """Access to processes and their terminals."""

    def __init__(self, helper: Helper) -> None:
        self._helper = helper

    async def look_up(
        self, callers: Sequence[int], others: Sequence[int], markers: Collection[str]
    ) -> ProcessReport | None:
        """Read the processes `callers` with their terminals, then `others`, with their `markers`.

        If the helper does not answer, ask it once more, but only for the lineages of the callers,
        which are then marked as late: no other process can delay that question, and a new helper
        may have replaced the old one by then. Return None if no process could be read.
        """
        question = ProcessQuestion(tuple(callers), tuple(others), frozenset(markers))
        try:
            return await to_thread.run_sync(ask_processes, self._helper, question)
        except NoAnswer as error:
            log.warning("the lookup of a caller failed: %s", error)
        if not callers:
            return None
        try:
            question = ProcessQuestion(tuple(callers))
            return await to_thread.run_sync(ask_processes, self._helper, question)
        except NoAnswer as error:
            log.warning("the helper cannot look up callers: %s", error)
            return None

    async def ancestors(self, pids: Sequence[int]) -> Mapping[int, ProcessChain] | None:
        """Return the lineage of each process, without environments and terminals.

        Return None if the helper cannot read any process.
        """
        seen = await self.look_up((), pids, ())
        return (
            None if seen is None else {pid: line.processes for pid, line in seen.lineages.items()}
        )

    async def show(self, caller: Process, text: str) -> str:
        """Show text on the terminal of `caller` and return its name. Raises RootsdError."""
        try:
            return await to_thread.run_sync(ask_to_write_terminal, self._helper, caller, text)
        except TerminalWriteFailed as error:
            raise CallerRefused(str(error)) from error
