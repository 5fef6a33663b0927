"""The command line's side of the control socket: one typed request, one answer."""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Callable, Mapping
from typing import Any, cast

from rootsd.core.errors import DaemonUnreachable
from rootsd.host import rpc
from rootsd.wire.control import Progress, Request, ScanOrder, encode

PATIENCE = 60.0  # seconds between two lines of the daemon; a scan may take as long as it takes

ProgressSink = Callable[[Progress], None]


def call(request: Request, on_progress: ProgressSink | None = None) -> dict[str, Any]:
    """The daemon's answer; `on_progress` gets each notice of a scan.

    Raises DaemonUnreachable where no daemon answers, rpc.DaemonError with its objection.
    """
    method, params = encode(request)
    with rpc.connect_control() as channel:
        channel.settimeout(None if isinstance(request, ScanOrder) else PATIENCE)
        return rpc.ask(channel, method, params, _notices(on_progress))


def call_aloud(request: Request, on_progress: ProgressSink | None = None) -> dict[str, Any]:
    """`call`, telling on stderr what was asked and how long the answer took."""
    started = time.monotonic()
    answer = call(request, on_progress)
    took = (time.monotonic() - started) * 1000
    method, params = encode(request)
    sys.stderr.write(f"asked the daemon: {method} {json.dumps(params)} ({took:.1f} ms)\n")
    return answer


def is_running() -> bool:
    """Whether a daemon takes connections."""
    try:
        rpc.connect_control().close()
    except DaemonUnreachable:
        return False
    return True


def _notices(sink: ProgressSink | None) -> Callable[[Mapping[str, Any]], None]:
    def take(params: Mapping[str, Any]) -> None:
        if sink is not None:
            sink(cast("Progress", params))

    return take
