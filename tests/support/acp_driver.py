"""A client of ACP that starts one session and sends one prompt. Run it as a program.

    acp_driver.py RESULT FOLDER UNAPPROVED PROMPT COMMAND...

It allows whatever the agent asks for, and serves no files. RESULT becomes JSON: what the agent
answers to a session in the folder UNAPPROVED, what it gets for one in FOLDER, and how it stops.
"""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

# In these, an agent asks, or needs not ask. In others, a second model decides, or nobody does.
MODES = frozenset(("default", "full-access", "agent-full-access"))


class Driver:
    """The client's side of one agent."""

    def __init__(self, words: list[str]) -> None:
        self._agent = subprocess.Popen(
            words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )
        self._ids = 0

    def call(self, method: str, **params: object) -> dict[str, Any]:
        """Return the answer to a request, and answer those of the agent meanwhile."""
        self._ids += 1
        self._send({"id": self._ids, "method": method, "params": params})
        assert self._agent.stdout is not None
        for line in self._agent.stdout:
            message: dict[str, Any] = json.loads(line)
            if "method" not in message and message["id"] == self._ids:
                return message
            if "method" in message and "id" in message:
                self._send({"id": message["id"], **self._answer(message)})
        raise AssertionError("the agent has ended")

    def end(self) -> None:
        """Tell the agent that nothing more comes, and wait for its end."""
        self._agent.communicate()

    def _answer(self, message: dict[str, Any]) -> dict[str, Any]:
        if message["method"] == "session/request_permission":
            options = message["params"]["options"]
            chosen = next(each for each in options if each["kind"].startswith("allow"))
            outcome = {"outcome": "selected", "optionId": chosen["optionId"]}
            return {"result": {"outcome": outcome}}
        return {"error": {"code": -32601, "message": "unknown"}}

    def _send(self, message: dict[str, Any]) -> None:
        assert self._agent.stdin is not None
        self._agent.stdin.write(json.dumps({"jsonrpc": "2.0", **message}) + "\n")
        self._agent.stdin.flush()


def main(result: str, folder: str, unapproved: str, prompt: str, *words: str) -> None:
    """Do what the module says."""
    driver = Driver([*words])
    begun = driver.call("initialize", protocolVersion=1, clientCapabilities={})
    found: dict[str, Any] = {"capabilities": begun["result"]["agentCapabilities"]}
    found["refused"] = driver.call("session/new", cwd=unapproved, mcpServers=[])
    session = driver.call("session/new", cwd=folder, mcpServers=[])
    found["session"] = session
    text = [{"type": "text", "text": prompt}]
    if "result" in session:
        name = session["result"]["sessionId"]
        modes = (session["result"].get("modes") or {}).get("availableModes", ())
        for mode in MODES.intersection(each["id"] for each in modes):
            driver.call("session/set_mode", sessionId=name, modeId=mode)
        found["stopped"] = driver.call("session/prompt", sessionId=name, prompt=text)
    Path(result).write_text(json.dumps(found))
    driver.end()


if __name__ == "__main__":
    main(*sys.argv[1:])
