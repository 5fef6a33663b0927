"""A small MCP server for tests of `rootsd run`. It starts at once.

It asks for roots after the handshake and after each change, as server-filesystem does, and allows
the paths in them. After a change it reports the number of roots. It has one tool, whose argument
says what to do:

    echo            return the arguments
    allowed PATH    say whether PATH lies in a root
    reads PATH      do the same as `allowed`, with the text that tools of the protocol return
    started         return its process, its arguments, two variables, and its working directory
    process         return its process, with the text that tools of the protocol return
    big N           return N letters
    exit N          exit with that status, without an answer
    hang            never answer
    flood N         send N notifications, then the answer
    spawn           start a process that would outlive it; return its pid
    ask             ask for roots first; return its process, the number of calls, and the roots
    babble METHOD   never answer; send messages with that method forever, and read nothing

Run: python -I -S scripted_server.py [--deaf] [--once] [--picky] [--stubborn] [WORD…]
--deaf: never ask for roots. --once: ask in the first call of `allowed` or `reads`, and keep the
answer. --picky: exit if the last WORD is not a root. --stubborn: ignore the end of input and
SIGTERM.
"""

from __future__ import annotations

import json
import os
import signal
import sys

TYPE_CHECKING = False  # to import typing and subprocess would take a third of its start
if TYPE_CHECKING:
    from typing import Any

PATHS: list[str] = []
ASKING: list[Any] = []  # the calls that wait for roots, of all calls of `ask`


def write(**message: Any) -> None:  # noqa: ANN401
    sys.stdout.write(json.dumps({"jsonrpc": "2.0", **message}) + "\n")
    sys.stdout.flush()


def answer(id_: Any, result: Any) -> None:  # noqa: ANN401
    write(id=id_, result=result)


def call(id_: Any, name: str, value: Any) -> None:  # noqa: ANN401, C901, PLR0912 # one branch per tool
    if name == "echo":
        answer(id_, value)
    elif name in ("allowed", "reads") and "--once" in sys.argv and not ASKING:
        ASKING.append((id_, name, value))
        write(id="once", method="roots/list")
    elif name == "allowed":
        answer(id_, any(value == path or value.startswith(path + "/") for path in PATHS))
    elif name == "reads":
        is_allowed = any(value["path"].startswith(path + "/") for path in PATHS)
        answer(id_, {"content": [{"type": "text", "text": "hello" if is_allowed else "no"}]})
    elif name == "started":
        told = {
            "pid": os.getpid(), "words": sys.argv[1:], "roots": os.environ.get("ROOTS"),
            "folder": os.getcwd(), "pwd": os.environ.get("PWD"),
        }  # fmt: skip
        answer(id_, told)
    elif name == "process":
        answer(id_, {"content": [{"type": "text", "text": str(os.getpid())}]})
    elif name == "big":
        answer(id_, "x" * value)
    elif name == "exit":
        sys.stderr.write("bye\n")
        os._exit(value)
    elif name == "flood":
        for number in range(value):
            write(method="notifications/message", params={"data": number, "pad": "x" * 2000})
        answer(id_, {})
    elif name == "ask":
        ASKING.append(id_)
        write(id=f"ask-{len(ASKING)}", method="roots/list")
    elif name == "babble":
        line = json.dumps({"jsonrpc": "2.0", "id": 5, "method": value}) + "\n"
        while True:
            sys.stdout.write(line * 1000)
    elif name == "spawn":
        words = [sys.executable, "-ISc", "import signal; signal.pause()"]
        answer(id_, os.posix_spawn(sys.executable, words, os.environ))


def take_roots(id_: Any, roots: Any) -> None:  # noqa: ANN401
    paths = [root["uri"].removeprefix("file://") for root in roots]
    if str(id_).startswith("ask-"):
        told = {"pid": os.getpid(), "count": len(ASKING), "paths": paths}
        answer(ASKING[int(id_.removeprefix("ask-")) - 1], told)
        return
    had_some = bool(PATHS)
    PATHS[:] = paths
    if id_ == "once":
        call(*ASKING[0])
    elif had_some:  # the first ones are no news
        write(method="notifications/message", params={"data": len(PATHS)})


def handle(message: dict[str, Any]) -> None:
    method, params = message.get("method"), message.get("params") or {}
    if method == "initialize":
        result = {
            "protocolVersion": "2025-11-25",
            "capabilities": {"tools": {"listChanged": True}},
        }
        answer(message["id"], {**result, "serverInfo": {"name": "scripted", "version": "1"}})
    elif method in ("notifications/initialized", "notifications/roots/list_changed"):
        if "--deaf" not in sys.argv and "--once" not in sys.argv:
            write(id=0, method="roots/list")
    elif method is None:
        take_roots(message["id"], message["result"]["roots"])
    elif method == "tools/list":
        answer(message["id"], {"tools": []})  # the SDK lists them after a call of an unknown one
    elif method == "tools/call":
        call(message["id"], params["name"], params.get("arguments"))
    elif "id" in message and method is not None:
        answer(message["id"], {})


def main() -> None:
    if "--picky" in sys.argv and "no-approved-roots" in sys.argv[-1]:
        sys.exit(4)
    if "--stubborn" in sys.argv:
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
    for line in sys.stdin:
        handle(json.loads(line))
    while "--stubborn" in sys.argv:
        signal.pause()


if __name__ == "__main__":
    main()
