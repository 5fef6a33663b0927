"""What every command has at hand: the flags, the daemon, standard output."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any

from rootsd.cli.manner import Flags
from rootsd.cli.render import Output
from rootsd.core.errors import RootsdError
from rootsd.core.paths import text_of
from rootsd.wire.request import Request
from rootsd.wire.scans import Progress

if TYPE_CHECKING:
    from rootsd.host.places import Places


@dataclass
class Session:
    """One run of the command line. `command` are the words of the verb, e.g. `parent add`."""

    flags: Flags = field(default_factory=Flags)
    command: str = "status"
    has_called: bool = False
    """Whether the daemon has answered."""

    @cached_property
    def places(self) -> Places:
        """Where configuration, state and logs lie: as this shell says, else as it was last."""
        from rootsd.host import places
        from rootsd.host.service import record

        return places.find_places(record.remembered_places())

    @property
    def config_to_edit(self) -> bytes:
        """The configuration file, where the daemon reads the same. Raises OtherPlaces."""
        from rootsd.host.service import record

        record.ensure_same_places()
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
        self, request: Request, on_progress: Callable[[Progress], None] | None = None
    ) -> dict[str, Any]:
        """The daemon's answer to `request`. Raises RootsdError."""
        from rootsd.cli import client

        asking = client.Asking.FORBIDDEN if self.flags.no_input else client.Asking.ALLOWED
        ask = client.call_aloud if self.flags.verbose else client.call
        answer = ask(request, on_progress, asking)
        self.has_called = True
        return answer

    def scan(self, parent: str | None = None) -> dict[str, Any]:
        """Have the daemon scan, with a line of progress where a person looks on."""
        from rootsd.cli.progress import ProgressLine
        from rootsd.wire.scans import ScanOrder

        with ProgressLine.for_flags(self.flags) as line:
            return self.call(ScanOrder(parent), line.show)
