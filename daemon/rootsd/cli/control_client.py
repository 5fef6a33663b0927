"""Send one typed request over the control socket and return the response."""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Callable, Mapping
from enum import Enum, auto
from typing import Any, cast

from rootsd.cli import terminal
from rootsd.core.errors import DaemonUnreachable
from rootsd.system.ipc import rpc
from rootsd.wire.daemon import ScanProgressItem, ScanRequest
from rootsd.wire.guard import CHALLENGE_ANSWER
from rootsd.wire.request import ControlRequest, encode_request

RESPONSE_TIMEOUT_S = (
    60.0  # seconds between two lines of the daemon; a scan may take as long as it takes
)

ProgressCallback = Callable[[ScanProgressItem], None]


class PromptPolicy(Enum):
    """Whether a person may be asked to type a word, where the daemon wants one."""

    ALLOWED = auto()
    FORBIDDEN = auto()


def call(
    request: ControlRequest,
    on_progress: ProgressCallback | None = None,
    asking: PromptPolicy = PromptPolicy.ALLOWED,
) -> dict[str, Any]:
    """The daemon's answer; `on_progress` gets each notice of a scan.

    Raises DaemonUnreachable where no daemon answers, rpc.DaemonError with its objection.
    """
    method, params = encode_request(request)
    with rpc.connect_control() as channel:
        channel.settimeout(None if isinstance(request, ScanRequest) else RESPONSE_TIMEOUT_S)
        try:
            return rpc.ask(channel, method, params, _progress_handler(on_progress))
        except rpc.DaemonError as error:
            if error.challenge is None or asking is PromptPolicy.FORBIDDEN:
                raise
            typed = terminal.typed_word()
            if typed is None:
                raise
        # On the same connection: the word counts for it alone.
        return rpc.ask(
            channel, method, {**params, CHALLENGE_ANSWER: typed}, _progress_handler(on_progress)
        )


def call_verbose(
    request: ControlRequest,
    on_progress: ProgressCallback | None = None,
    asking: PromptPolicy = PromptPolicy.ALLOWED,
) -> dict[str, Any]:
    """`call`, telling on stderr what was asked and how long the answer took."""
    started = time.monotonic()
    answer = call(request, on_progress, asking)
    took = (time.monotonic() - started) * 1000
    method, params = encode_request(request)
    sys.stderr.write(f"asked the daemon: {method} {json.dumps(params)} ({took:.1f} ms)\n")
    return answer


def is_running() -> bool:
    """Whether a daemon takes connections."""
    try:
        rpc.connect_control().close()
    except DaemonUnreachable:
        return False
    return True


def _progress_handler(sink: ProgressCallback | None) -> Callable[[Mapping[str, Any]], None]:
    def take(params: Mapping[str, Any]) -> None:
        if sink is not None:
            sink(cast("ScanProgressItem", params))

    return take
