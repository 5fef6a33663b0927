"""A client of ACP that starts one session and sends one prompt. Run it as a program.

    acp_driver.py PLAN COMMAND...

PLAN is JSON: the folders `api`, `secret`, and perhaps `late`, the `servers` of the session, the
`prompt`, and the file `result`. The client allows whatever the agent asks for, and serves files.
First it asks for a session in `secret`, then for one in `api`. If there is a folder `late`, and
the agent can, it resumes this with `late`, until somebody has approved that. `result` becomes JSON
with the answers, with what the agent asked for, and with the files that the client served.
"""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

# In these, an agent asks, or needs not ask. In others, a second model decides, or nobody does.
MODES = frozenset(("default", "full-access", "agent-full-access"))
PROFILE = "permission-profile:"  # of Codex behind the wall, which asks
# The first session of a daemon on a busy machine. A person would try again.
BUSY = "rootsd does not answer"
SERVED = {"fs": {"readTextFile": True, "writeTextFile": True}, "terminal": False}


class Driver:
    """The client's side of one agent."""

    def __init__(self, words: list[str]) -> None:
        self._agent = subprocess.Popen(
            words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )
        self._ids = 0
        self.served: list[str] = []
        self.asked: list[str] = []

    def call(self, method: str, **params: object) -> dict[str, Any]:
        """Return the answer to a request, and answer those of the agent meanwhile.

        Send it again if the daemon was too busy to answer.
        """
        self._ids += 1
        self._send({"id": self._ids, "method": method, "params": params})
        assert self._agent.stdout is not None
        for line in self._agent.stdout:
            message: dict[str, Any] = json.loads(line)
            if "method" not in message and message["id"] == self._ids:
                return self.call(method, **params) if BUSY in str(message) else message
            if "method" in message and "id" in message:
                self._send({"id": message["id"], **self._answer(message)})
        raise AssertionError("the agent has ended")

    def end(self) -> None:
        """Tell the agent that nothing more comes, and wait for its end."""
        self._agent.communicate()

    def _answer(self, message: dict[str, Any]) -> dict[str, Any]:
        if message["method"] == "session/request_permission":
            self.asked.append(message["params"]["toolCall"].get("title", ""))
            options = message["params"]["options"]
            chosen = next(each for each in options if each["kind"].startswith("allow"))
            outcome = {"outcome": "selected", "optionId": chosen["optionId"]}
            return {"result": {"outcome": outcome}}
        if message["method"] in ("fs/read_text_file", "fs/write_text_file"):
            return self._serve(message["method"], message["params"])
        return {"error": {"code": -32601, "message": "unknown"}}

    def _serve(self, method: str, params: dict[str, Any]) -> dict[str, Any]:
        path = Path(params["path"])
        self.served.append(str(path))
        if method == "fs/write_text_file":
            path.write_text(params["content"])
            return {"result": {}}
        if not path.exists():
            return {"error": {"code": -32002, "message": "Resource not found"}}
        return {"result": {"content": path.read_text()}}

    def _send(self, message: dict[str, Any]) -> None:
        assert self._agent.stdin is not None
        self._agent.stdin.write(json.dumps({"jsonrpc": "2.0", **message}) + "\n")
        self._agent.stdin.flush()


def main(plan: str, *words: str) -> None:
    """Do what the module says."""
    given = json.loads(plan)
    driver = Driver([*words])
    begun = driver.call("initialize", protocolVersion=1, clientCapabilities=SERVED)
    found: dict[str, Any] = {"served": driver.served, "asked": driver.asked}
    found["refused"] = driver.call("session/new", cwd=given["secret"], mcpServers=[])
    setup = {"cwd": given["api"], "mcpServers": given["servers"]}
    session = driver.call("session/new", **setup)
    found["session"] = session
    if "result" in session:
        name = session["result"]["sessionId"]
        can = begun["result"]["agentCapabilities"].get("sessionCapabilities") or {}
        if "late" in given and {"resume", "additionalDirectories"} <= can.keys():
            again = {"sessionId": name, **setup, "additionalDirectories": [given["late"]]}
            answer = found["early"] = driver.call("session/resume", **again)
            while f"rootsd approve {given['late']}" in str(answer):
                answer = driver.call("session/resume", **again)
            found["resumed"] = answer
        modes = session["result"].get("modes") or {}
        asks = modes.get("currentModeId", "").startswith(PROFILE)
        offered = () if asks else (each["id"] for each in modes.get("availableModes", ()))
        for mode in MODES.intersection(offered):
            driver.call("session/set_mode", sessionId=name, modeId=mode)
        text = [{"type": "text", "text": given["prompt"]}]
        found["stopped"] = driver.call("session/prompt", sessionId=name, prompt=text)
    Path(given["result"]).write_text(json.dumps(found))
    driver.end()


if __name__ == "__main__":
    main(*sys.argv[1:])
