"""An MCP server that records the roots it gets: `python roots_recorder.py FILE`.

It asks its client for roots after the handshake and after each `list_changed`, and appends each
answer to FILE as a line of JSON. Its tool `await_root` answers when a root with a given name has
arrived, or after `PATIENCE_S`; `show_roots` answers at once. Standard library only.
"""

from __future__ import annotations

import json
import sys
import threading
from typing import Any

PATIENCE_S = 30
_ROOTS = "roots"


class Recorder:
    """The server. One lock orders the timer's and the client's actions."""

    def __init__(self, file: str) -> None:
        self._file = file
        self._lock = threading.Lock()
        self._names: list[str] = []
        self._waiting: dict[str, Any] = {}

    def take(self, message: dict[str, Any]) -> None:
        """Handle a message of the client."""
        with self._lock:
            match message.get("method"):
                case "initialize":
                    self._answer(message["id"], {
                        "protocolVersion": message["params"]["protocolVersion"],
                        "capabilities": {"tools": {}},
                        "serverInfo": {"name": "recorder", "version": "1"},
                    })  # fmt: skip
                case "notifications/initialized" | "notifications/roots/list_changed":
                    _send({"id": _ROOTS, "method": "roots/list"})
                case "tools/list":
                    self._answer(message["id"], {"tools": TOOLS})
                case "tools/call":
                    self._call(message["id"], message["params"])
                case None if message.get("id") == _ROOTS:
                    self._record(message.get("result", {}).get("roots", []))
                case method if method and "id" in message:
                    error = {"code": -32601, "message": "Method not found"}
                    _send({"id": message["id"], "error": error})

    def _call(self, number: object, params: dict[str, Any]) -> None:
        name = params.get("arguments", {}).get("name", "")
        if params["name"] == "show_roots" or name in self._names:
            self._answer(number, self._shown())
            return
        self._waiting[name] = number
        timer = threading.Timer(PATIENCE_S, self._give_up, [name])
        timer.daemon = True
        timer.start()

    def _give_up(self, name: str) -> None:
        with self._lock:
            if name in self._waiting:
                self._answer(self._waiting.pop(name), self._shown())

    def _record(self, roots: list[dict[str, str]]) -> None:
        self._names = [root["uri"].rpartition("/")[2] for root in roots]
        with open(self._file, "a") as record:
            record.write(json.dumps(self._names) + "\n")
        for name in self._waiting.keys() & set(self._names):
            self._answer(self._waiting.pop(name), self._shown())

    def _shown(self) -> dict[str, Any]:
        return {"content": [{"type": "text", "text": f"roots: {' '.join(self._names)}"}]}

    def _answer(self, number: object, result: dict[str, Any]) -> None:
        _send({"id": number, "result": result})


TOOLS = [
    {
        "name": "show_roots",
        "description": "Shows the roots.",
        "inputSchema": {"type": "object", "properties": {}},
    },
    {
        "name": "await_root",
        "description": "Waits for a root, and shows all.",
        "inputSchema": {
            "type": "object",
            "properties": {"name": {"type": "string"}},
            "required": ["name"],
        },
    },
]


def _send(message: dict[str, Any]) -> None:
    sys.stdout.write(json.dumps({"jsonrpc": "2.0", **message}) + "\n")
    sys.stdout.flush()


def main(file: str) -> None:
    """Serve on stdin and stdout until the client ends."""
    recorder = Recorder(file)
    for line in sys.stdin:
        recorder.take(json.loads(line))


if __name__ == "__main__":
    main(sys.argv[1])
