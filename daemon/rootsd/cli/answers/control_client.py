"""Send one typed request over the control socket and return the response."""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Callable, Mapping
from enum import Enum, auto
from typing import TYPE_CHECKING, Any, cast

from rootsd.core.errors import DaemonUnreachable
from rootsd.link import rpc
from rootsd.wire.request import WORKING_INTERVAL_S, ControlRequest, encode_request

if TYPE_CHECKING:
    from rootsd.wire.scans import ScanProgressItem

# Seconds between two lines from the daemon. A busy machine may delay each.
RESPONSE_TIMEOUT_S = 4 * WORKING_INTERVAL_S

ProgressCallback = Callable[["ScanProgressItem"], None]


class PromptPolicy(Enum):
    """Whether to ask a person for the challenge word, if the daemon requires one."""

    ALLOWED = auto()
    FORBIDDEN = auto()


def call(
    request: ControlRequest,
    on_progress: ProgressCallback | None = None,
    prompt_policy: PromptPolicy = PromptPolicy.ALLOWED,
) -> dict[str, Any]:
    """Send `request` and return the daemon's response.

    Pass each progress notification of a scan to `on_progress`. Raises DaemonUnreachable if no
    daemon answers, and rpc.DaemonError with an error response.
    """
    method, params = encode_request(request)
    with rpc.connect_control() as channel:
        channel.settimeout(RESPONSE_TIMEOUT_S)
        try:
            return rpc.ask(channel, method, params, _progress_handler(on_progress))
        except rpc.DaemonError as error:
            if error.challenge is None or prompt_policy is PromptPolicy.FORBIDDEN:
                raise
            from rootsd.cli.text import terminal
            from rootsd.wire.guard import CHALLENGE_ANSWER

            typed = terminal.typed_word()
            if typed is None:
                raise
        # The word is valid only on the connection that the daemon sent the challenge on.
        return rpc.ask(
            channel, method, {**params, CHALLENGE_ANSWER: typed}, _progress_handler(on_progress)
        )


def call_verbose(
    request: ControlRequest,
    on_progress: ProgressCallback | None = None,
    prompt_policy: PromptPolicy = PromptPolicy.ALLOWED,
) -> dict[str, Any]:
    """Do the same as `call`, and print the request and its duration on stderr."""
    started = time.monotonic()
    answer = call(request, on_progress, prompt_policy)
    took = (time.monotonic() - started) * 1000
    method, params = encode_request(request)
    sys.stderr.write(f"sent to the daemon: {method} {json.dumps(params)} ({took:.1f} ms)\n")
    return answer


def is_running() -> bool:
    """Return whether a daemon accepts connections."""
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
