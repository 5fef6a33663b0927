"""Give an order as `rootsd approve`, `forget`, or `guard` does, in a fifth of the time.

    python -S lean_order.py approve NAME
    python -S lean_order.py forget NAME
    python -S lean_order.py guard MODE
    python -S lean_order.py allow PROGRAM...

The guard judges the process that sends an order, with its ancestors and its terminal, and not the
program's modules. So `make test` makes most attempts with this program, and `make check` all of
them with `rootsd`.
"""

from __future__ import annotations

import os
import sys
from typing import Any

from rootsd.link import rpc

REFUSED = 7


def main(verb: str, what: str, *more: str) -> int:
    """Send the order, and type the word of a challenge. Return the exit status of `rootsd`."""
    method, params = "decide", dict[str, Any](verb=verb, cwd="/", refs=[what])
    if verb == "guard":
        method, params = "set-guard", {"guard": what}
    if verb == "allow":
        method, params = "allow-programs", {"programs": [what, *more]}
    try:
        with rpc.connect_control() as channel:
            try:
                rpc.ask(channel, method, params)
            except rpc.DaemonError as error:
                if error.challenge is None:
                    raise
                with open(os.open("/dev/tty", os.O_RDWR), "rb", buffering=0) as terminal:
                    typed = terminal.readline().decode().strip()
                rpc.ask(channel, method, {**params, "typed": typed})
    except rpc.DaemonError as error:
        print(f"error: {error.message}\n  try: {error.remedy}")  # noqa: T201
        return REFUSED
    return 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
