"""One run of the command line: its flags, the daemon, the stored state, and its output.

What every command has at hand: the flags, the daemon, standard output.

Questions that the store can answer, too, where no daemon runs.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any

from rootsd.cli.render import Flags, Output
from rootsd.core.errors import RootsdError
from rootsd.core.paths import text_of
from rootsd.wire.daemon import ScanProgressItem
from rootsd.wire.request import ControlRequest

if TYPE_CHECKING:
    from rootsd.system.places import Places
from rootsd.core.errors import Busy, DaemonUnreachable

if TYPE_CHECKING:
    from rootsd.control.offline import OfflineQuery


@dataclass
class Invocation:
    """One run of the command line. `command` are the words of the verb, e.g. `parent add`."""

    flags: Flags = field(default_factory=Flags)
    command: str = "status"
    has_called: bool = False
    """Whether the daemon has answered."""

    @cached_property
    def places(self) -> Places:
        """Where configuration, state and logs lie: as this shell says, else as it was last."""
        from rootsd.service import start_record
        from rootsd.system import places

        return places.find_places(start_record.recorded_places())

    @property
    def config_to_edit(self) -> bytes:
        """The configuration file, where the daemon reads the same. Raises OtherPlaces."""
        from rootsd.service import start_record

        start_record.ensure_same_places()
        return self.places.config_file

    @property
    def cwd(self) -> str:
        """What relative references are relative to. Raises RootsdError where it is gone."""
        try:
            return text_of(os.getcwdb())
        except FileNotFoundError as error:
            raise RootsdError("the working directory is gone", "cd") from error

    @property
    def output(self) -> Output:
        """Standard output and standard error, as the flags want them."""
        return Output(self.flags, self.command)

    def call(
        self,
        request: ControlRequest,
        on_progress: Callable[[ScanProgressItem], None] | None = None,
    ) -> dict[str, Any]:
        """The daemon's answer to `request`. Raises RootsdError."""
        from rootsd.cli import control_client

        asking = (
            control_client.PromptPolicy.FORBIDDEN
            if self.flags.no_input
            else control_client.PromptPolicy.ALLOWED
        )
        ask = control_client.call_verbose if self.flags.verbose else control_client.call
        answer = ask(request, on_progress, asking)
        self.has_called = True
        return answer

    def scan(self, parent: str | None = None) -> dict[str, Any]:
        """Have the daemon scan, with a line of progress where a person looks on."""
        from rootsd.cli.terminal import ProgressLine
        from rootsd.wire.daemon import ScanRequest

        with ProgressLine.for_flags(self.flags) as line:
            return self.call(ScanRequest(parent), line.show)


def call_or_read_store(invocation: Invocation, question: OfflineQuery) -> dict[str, Any]:
    """The answer; one from the store comes with a warning that says so. Raises DaemonUnreachable
    where there is no store, or somebody else holds it, and what else `call` raises."""
    try:
        return invocation.call(question)
    except DaemonUnreachable:
        from rootsd.control import offline

        if not offline.has_store(invocation.places):
            raise
        try:
            return offline.answer_offline(invocation.places, question)
        except Busy:
            # A daemon that starts or ends right now, whom nobody can ask yet or any more.
            pass
        raise
