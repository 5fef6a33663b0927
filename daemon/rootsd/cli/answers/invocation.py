"""One run of the command line: its flags, the daemon, the stored state, and its output.

Each verb gets an `Invocation`. It imports the daemon's client, the store and the terminal code
only when they are used, because start-up time counts for every command.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from contextlib import suppress
from functools import cached_property
from typing import TYPE_CHECKING, Any

from msgspec import Struct, field

from rootsd.cli.text.render import Flags, Output
from rootsd.core.errors import Busy, DaemonUnreachable, RootsdError
from rootsd.core.paths import text_of

if TYPE_CHECKING:
    from rootsd.control.offline import OfflineQuery
    from rootsd.places.daemon_folders import Places
    from rootsd.wire.request import ControlRequest
    from rootsd.wire.scans import ScanProgressItem


class Invocation(Struct, dict=True):
    """One run of the command line; `command` holds the words of the verb, e.g. `parent add`."""

    flags: Flags = field(default_factory=Flags)
    command: str = "status"
    arguments: tuple[str, ...] = ()
    """The arguments of the verb, as typed."""
    words: Sequence[str] = ()
    """All arguments of `rootsd`, as typed."""
    has_called: bool = False
    """Whether the daemon has answered."""

    @cached_property
    def places(self) -> Places:
        """The folders of configuration, state, and logs: from this shell's environment, and for
        variables that it does not set, from the last start of the daemon."""
        from rootsd.places import daemon_folders as places
        from rootsd.service import start_record

        return places.find_places(start_record.recorded_places())

    @property
    def config_to_edit(self) -> bytes:
        """The configuration file. Raises PlacesMismatch if the daemon reads another one."""
        from rootsd.service import start_record

        start_record.ensure_same_places()
        return self.places.config_file

    @property
    def cwd(self) -> str:
        """The working directory, for relative references. Raises RootsdError if it is gone."""
        try:
            return text_of(os.getcwdb())
        except FileNotFoundError as error:
            raise RootsdError("the working directory is gone", "cd") from error

    @property
    def output(self) -> Output:
        """Standard output and standard error, as the flags request."""
        return Output(self.flags, self.command, self._configured_pager)

    def _configured_pager(self) -> str:
        from rootsd.config.configuration import read_config

        try:
            return read_config(self.places.config_file).ui.pager
        except RootsdError:  # `rootsd status` says that the file is invalid
            return ""

    def call(
        self,
        request: ControlRequest,
        on_progress: Callable[[ScanProgressItem], None] | None = None,
    ) -> dict[str, Any]:
        """Send `request` and return the daemon's response. Raises RootsdError."""
        from rootsd.cli.answers import control_client

        prompt_policy = (
            control_client.PromptPolicy.FORBIDDEN
            if self.flags.no_input
            else control_client.PromptPolicy.ALLOWED
        )
        call = control_client.call_verbose if self.flags.verbose else control_client.call
        response = call(request, on_progress, prompt_policy)
        self.has_called = True
        return response

    def status_if_running(self) -> dict[str, Any] | None:
        """Return the status of the daemon, or None if it does not answer. Raises RootsdError."""
        from rootsd.wire.daemon import StatusQuery

        try:
            return self.call(StatusQuery())
        except DaemonUnreachable:
            return None

    def announce(self, words: str) -> None:
        """Have the daemon log a command that decides nothing. Without a daemon, do nothing."""
        from rootsd.wire.daemon import AnnounceRequest

        with suppress(RootsdError):
            self.call(AnnounceRequest(words))

    def scan(self, parent: str | None = None) -> dict[str, Any]:
        """Have the daemon scan; on a terminal, show a line of progress."""
        from rootsd.cli.text.terminal import ProgressLine
        from rootsd.wire.scans import ScanRequest

        with ProgressLine.for_flags(self.flags) as line:
            return self.call(ScanRequest(parent), line.show)


def call_or_read_store(invocation: Invocation, query: OfflineQuery) -> dict[str, Any]:
    """Return the daemon's response; if no daemon runs, read the store and add a warning.

    Raises DaemonUnreachable if there is no store or another process holds it, and the other
    errors of `call`.
    """
    try:
        return invocation.call(query)
    except DaemonUnreachable:
        from rootsd.control import offline

        if not offline.has_store(invocation.places):
            raise
        try:
            return offline.answer_offline(invocation.places, query)
        except Busy:
            # A daemon holds the store, and is just starting or stopping.
            pass
        raise
