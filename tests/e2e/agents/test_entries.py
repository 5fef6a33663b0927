"""How real clients start a server: what rootsd predicts from an entry is what they do."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Self

import pytest
from msgspec.structs import replace

from rootsd.agents.forms.place import Platform
from rootsd.connect.base import ClientEnvironment, McpClient
from rootsd.connect.launch import Launch, launch_of
from rootsd.connect.servers import ServerId, list_servers
from support.agent_programs import PROGRAMS, AgentProgram, Servers
from support.agent_world import AgentWorld
from support.client_home import client_named
from support.polling import until
from support.scripted_model import Shell

pytestmark = pytest.mark.needs("user-namespaces", "npm")
CLIENTS = {
    "claude": ("claude-code", ".claude.json"),
    "codex": ("codex", ".codex/config.toml"),
    "gemini": ("gemini", ".gemini/settings.json"),
    "copilot": ("copilot", ".copilot/mcp-config.json"),
    "opencode": ("opencode", ".config/opencode/opencode.json"),
    "qwen": ("qwen", ".qwen/settings.json"),
    "cline": ("cline", ".cline/data/settings/cline_mcp_settings.json"),
}
# Each is the value of an argument and of a variable.
TEXTS = (
    "${DIR}/x", "$DIR/x", "$$DIR", "${DIR:-/else}", "${NO:-/else}", "${EMPTY:-/else}",
    "[${EMPTY}]", "{env:DIR}/x", "[{env:EMPTY}]", "${env:DIR}", "${userHome}", "${NO-/else}",
    "${workspaceFolder}", "%DIR%", "~/x",
)  # fmt: skip
# Their schemas refuse an entry with this member, or all of the file.
WITHOUT_ENV_FILE = ("opencode",)
FOLDERS = {"folder_braces": "${DIR}", "folder_bare": "$DIR", "folder_curly": "{env:DIR}"}


# A client replaces these by nothing, or by a variable that another shell may set.
NOT_KNOWN = {
    "claude": {"${userHome}", "${workspaceFolder}"},
    "gemini": {
        "${userHome}", "${workspaceFolder}", "${env:DIR}", "${NO-/else}", "{env:DIR}/x",
        "[{env:EMPTY}]",
    },
    "copilot": {"${userHome}", "${workspaceFolder}"},
    "qwen": {"${userHome}", "${workspaceFolder}"},
}  # fmt: skip
RECORDER = """\
#!/usr/bin/python3
import json, os, sys
variables = {name: text for name, text in os.environ.items() if name.startswith("X_")}
started = {"words": sys.argv[2:], "variables": variables, "folder": os.getcwd()}
with open(f"OUT/{sys.argv[1]}.new", "w") as file:
    json.dump(started, file)
os.rename(f"OUT/{sys.argv[1]}.new", f"OUT/{sys.argv[1]}")
for line in sys.stdin:
    message = json.loads(line)
    if "id" not in message or "method" not in message:
        continue
    server = {"protocolVersion": "2025-06-18", "capabilities": {"tools": {}},
              "serverInfo": {"name": "recorder", "version": "1"}}
    answers = {"initialize": server, "tools/list": {"tools": []}}
    answer = {"result": answers.get(message["method"], {})}
    print(json.dumps({"jsonrpc": "2.0", "id": message["id"], **answer}), flush=True)
"""


class LoneWorld(AgentWorld):
    """A world without a daemon."""

    def __enter__(self) -> Self:
        self._at_end.enter_context(self.user)
        return self

    def variables(self, packages: str = "") -> dict[str, str]:
        """Return the environment with the variables that the entries name."""
        return {**super().variables(packages), "DIR": str(self.folder / "data"), "EMPTY": ""}


class Entries:
    """A program whose settings get more servers. `launches` says how each is started."""

    def __init__(self, program: AgentProgram, world: LoneWorld) -> None:
        self._program, self._world = program, world
        self.launches: dict[str, Launch] = {}

    def __getattr__(self, name: str) -> object:
        return getattr(self._program, name)

    def configure(self, home: Path, servers: Servers, model: str) -> None:
        """Write the settings, and predict how each server is started."""
        self._program.configure(home, servers, model)
        name, place = CLIENTS[self._program.name]
        client = client_named(name)
        text = (home / place).read_text()
        found = {key: entry(client, *value) for key, value in self._wanted(home).items()}
        for key, value in found.items():
            text = client.facts.language.insert(text, client.facts.keys, key, value)[0]
        (home / place).write_text(text)
        variables = {
            **self._world.variables(self._program.packages), **self._program.environment(model)
        }  # fmt: skip
        environment = ClientEnvironment(home, variables, Platform.LINUX)
        listed = list_servers(
            client.facts.form, {ServerId(key): each for key, each in found.items()}
        )
        for server in listed:
            assert server.obstacle == ""
            launch = launch_of(server, client.facts.reading, environment)
            self.launches[server.server.name] = launch

    def _wanted(self, home: Path) -> dict[str, tuple[list[str], Mapping[str, str]]]:
        program, data = str(home / "recorder"), str(self._world.folder / "data")
        texts = [text for text in TEXTS if text not in NOT_KNOWN.get(self._program.name, ())]
        variables = {f"X_{number}": text for number, text in enumerate(texts)}
        wanted: dict[str, tuple[list[str], Mapping[str, str]]] = {
            "texts": ([program, "texts", *texts], variables)
        }
        programs = {
            "braces": "${HOME}/recorder", "bare": "$HOME/recorder", "curly": "{env:HOME}/recorder",
            "relative": "./recorder",
        }  # fmt: skip
        wanted |= {name: ([each, name], {}) for name, each in programs.items()}
        wanted["line"] = ([f"{program} line a"], {})
        folders = {
            "whole": data,
            "tilde": "~/sub",
            "folder_braces": "${DIR}",
            "folder_bare": "$DIR",
        }
        folders |= {"folder_curly": "{env:DIR}", "sub": "sub"}
        wanted |= {name: ([program, name], {"cwd": each}) for name, each in folders.items()}
        if self._program.name not in WITHOUT_ENV_FILE:
            wanted["file"] = ([program, "file"], {"envFile": str(home / "env")})
        return wanted


def entry(client: McpClient, words: list[str], members: Mapping[str, str]) -> dict[str, Any]:
    """Return an entry. Members whose names begin with X_ are variables of the server."""
    form = replace(client.facts.form, more={})  # a required server must start
    variables = {name: text for name, text in members.items() if name.startswith("X_")}
    made = form.entry(words, {}, variables)
    inner = made
    for key in form.command_keys(made):
        inner = inner[key]
    inner |= {name: text for name, text in members.items() if name not in variables}
    return made


def predicted(launch: Launch, recorder: Path, session: Path) -> dict[str, Any] | None:
    """Return what the recorder notes, or None if the client cannot start it."""
    if launch.obstacle or Path(session, launch.words[0]).resolve() != recorder.resolve():
        return None
    variables = {name: text for name, text in launch.variables.items() if name.startswith("X_")}
    folder = launch.folder or str(session)
    return {"words": list(launch.words[2:]), "variables": variables, "folder": folder}


@pytest.mark.parametrize("name", CLIENTS)
def test_a_client_starts_a_server_as_rootsd_predicts(name: str, tmp_path: Path) -> None:
    with LoneWorld(tmp_path, ["api"]) as world:
        out, session, recorder = tmp_path / "out", world.parent / "api", world.home / "recorder"
        for folder in (out, tmp_path / "data", world.home / "sub", session / "sub"):
            folder.mkdir()
        recorder.write_text(RECORDER.replace("OUT", str(out)))
        recorder.chmod(0o755)
        (session / "recorder").symlink_to(recorder)
        (world.home / "env").write_text("X_FROM_FILE=1\n")
        program = Entries(PROGRAMS[name], world)

        def expected() -> dict[str, dict[str, Any]]:
            return {
                key: found
                for key, launch in program.launches.items()
                if not launch.unknown
                and (found := predicted(launch, recorder, session)) is not None
            }

        def wait() -> None:
            until(lambda: expected().keys() <= started(out).keys())

        world.play(program, [Shell("true", before=wait)], {}, session)  # type: ignore[arg-type]
    unknown = {key for key, launch in program.launches.items() if launch.unknown}
    noted = {key: found for key, found in started(out).items() if key not in unknown}
    assert noted == expected()
    # Only what another shell may fill, or what is about the session, is not known.
    assert unknown <= {"sub", "curly", *FOLDERS}


def started(out: Path) -> dict[str, dict[str, Any]]:
    """Return what each started server noted."""
    return {each.name: json.loads(each.read_text()) for each in out.iterdir() if not each.suffix}
