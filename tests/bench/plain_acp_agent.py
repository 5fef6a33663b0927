"""An agent of ACP that answers every request at once, and repeats the text of a prompt."""

from __future__ import annotations

import json
import sys


def main() -> None:
    """Answer until nothing more comes."""
    for line in sys.stdin.buffer:
        message = json.loads(line)
        if message["method"] == "session/prompt":
            text = {"text": message["params"]["text"]}
            _send({"method": "session/update", "params": text})
        _send({"id": message["id"], "result": {"sessionId": "s"}})


def _send(message: dict[str, object]) -> None:
    sys.stdout.buffer.write(json.dumps({"jsonrpc": "2.0", **message}).encode() + b"\n")
    sys.stdout.buffer.flush()


if __name__ == "__main__":
    main()
