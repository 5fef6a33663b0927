"""Real agent programs: which packages they are, how each is configured, and how it is started.

Each program runs with an empty home, a dummy key, and a base address on loopback, where a
`ScriptedModel` answers. The packages are pinned by the locks below tests/e2e/agents. They are
installed on demand into a cache outside the checkout, because they take 1.6 GB.
"""

from __future__ import annotations

import fcntl
import hashlib
import json
import os
import shlex
import shutil
import stat
import subprocess
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Protocol

from support import node_packages

SOURCES = node_packages.TOP / "tests" / "e2e" / "agents"
PROMPT = "Do what the script says."
INSTALL_SECONDS = 900
_LOCKS = ("package.json", "package-lock.json", ".npmrc")
# npm runs these scripts for a user, too. They put the binary where the command's name leads.
_WITH_SCRIPT = ("@anthropic-ai/claude-code",)
# These packages bring their binary twice. That of the platform has no command by itself.
_COMMANDS = {
    "opencode": "opencode-linux-x64/bin/opencode",
    "bun": "@oven/bun-linux-x64/bin/bun",
}
_MODEL = "scripted-1"
_CALL_SECONDS = 130


@dataclass(frozen=True, slots=True)
class Server:
    """An MCP server as a client's configuration has it."""

    command: tuple[str, ...]
    environment: Mapping[str, str] = field(default_factory=dict)


Servers = Mapping[str, Server]


class AgentProgram(Protocol):
    """One agent program. `label` is its name in rootsd's list of agents, and `package` that of its
    npm package in the set `packages`."""

    name: str
    label: str
    speaks_mcp: bool
    packages: str
    package: str

    @property
    def sets(self) -> tuple[str, ...]:
        """The variables that its shell tool has, among those that rootsd knows it by."""

    def configure(self, home: Path, servers: Servers, model: str) -> None:
        """Write the settings into `home`: `servers`, and the address of the model."""

    def command(self, prompt: str) -> list[str]:
        """Return the words that run one prompt without asking anybody for permission."""

    def environment(self, model: str) -> dict[str, str]:
        """Return the variables that it needs besides."""


def version(program: AgentProgram) -> str:
    """Return the pinned version of `program`."""
    pinned = json.loads((SOURCES / program.packages / "package.json").read_text())
    found: str = pinned["dependencies"][program.package]
    return found


@cache
def installed(packages: str, among: Path = SOURCES) -> Path:
    """Install the set `packages` unless it is there, and return the folder of its programs.

    Its lock lies in the folder of that name in `among`.

    The cache lies in a folder of /var/tmp that belongs to this user, one for each lock. Raises
    `PermissionError` if somebody else owns that folder.
    """
    sources = [among / packages / name for name in _LOCKS]
    digest = hashlib.sha256(b"\0".join(source.read_bytes() for source in sources)).hexdigest()
    top = Path(f"/var/tmp/rootsd-tests-{os.geteuid()}")
    top.mkdir(mode=0o700, exist_ok=True)
    found = top.lstat()
    if not stat.S_ISDIR(found.st_mode) or found.st_uid != os.geteuid():
        raise PermissionError(f"{top} belongs to somebody else")
    folder = top / f"{packages}-{digest[:12]}"
    with (top / f"{packages}.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not (folder / "installed").exists():
            for old in top.glob(f"{packages}-*"):
                shutil.rmtree(old)
            _install(folder, sources)
            (folder / "installed").touch()
    return folder / "node_modules" / ".bin"


def _install(folder: Path, sources: list[Path]) -> None:
    folder.mkdir()
    for source in sources:
        shutil.copy(source, folder)
    cache_folder = folder / "cache"
    environment = {
        **os.environ, "HOME": str(folder), "npm_config_cache": str(cache_folder),
        "PATH": f"{node_packages.node().parent}:{os.environ['PATH']}",
    }  # fmt: skip
    quiet = ("--no-audit", "--no-fund", "--loglevel=error")
    scripts = [
        name for name in _WITH_SCRIPT if name in json.loads(sources[0].read_text())["dependencies"]
    ]
    # `npm ci` rejects a lock without the optional packages that were never published for some
    # platform. `npm install` takes the versions and the hashes of the lock all the same.
    steps = [["npm", "install", "--ignore-scripts", *quiet]]
    steps += [["npm", "rebuild", *scripts, *quiet]] if scripts else []
    for step in steps:
        subprocess.run(step, cwd=folder, check=True, timeout=INSTALL_SECONDS, env=environment)
    for command, program in _COMMANDS.items():
        if (folder / "node_modules" / program).exists():
            (folder / "node_modules" / ".bin" / command).symlink_to(f"../{program}")
    shutil.rmtree(cache_folder)


def _write(path: Path, value: object) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(value if isinstance(value, str) else json.dumps(value, indent=2))


def _plain(servers: Servers) -> dict[str, dict[str, object]]:
    """The entries of most clients: `command`, `args`, `env`."""
    return {
        name: {
            "command": server.command[0], "args": list(server.command[1:]),
            "env": dict(server.environment),
        }
        for name, server in servers.items()
    }  # fmt: skip


class ClaudeCode:
    name, label, speaks_mcp = "claude", "Claude Code", True
    packages, package = "five", "@anthropic-ai/claude-code"
    sets = ("CLAUDE_CODE_CHILD_SESSION",)

    def configure(self, home: Path, servers: Servers, model: str) -> None:
        entries = {name: {"type": "stdio", **entry} for name, entry in _plain(servers).items()}
        _write(home / ".claude.json", {"mcpServers": entries})

    def command(self, prompt: str) -> list[str]:
        words = ["claude", "-p", prompt, "--model", "claude-sonnet-4-5"]
        return [*words, "--dangerously-skip-permissions"]

    def environment(self, model: str) -> dict[str, str]:
        return {
            "ANTHROPIC_BASE_URL": model, "ANTHROPIC_API_KEY": "sk-ant-dummy",
            "DISABLE_AUTOUPDATER": "1", "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
            "BASH_DEFAULT_TIMEOUT_MS": "120000",
        }  # fmt: skip


class Codex:
    name, label, speaks_mcp = "codex", "Codex CLI", True
    packages, package = "five", "@openai/codex"
    sets = ("CODEX_CI", "CODEX_SESSION_ID", "CODEX_THREAD_ID", "CODEX_TOOL_CALL_ID")
    model = "gpt-5"

    def configure(self, home: Path, servers: Servers, model: str) -> None:
        lines = [
            f'model = "{self.model}"', 'model_provider = "scripted"', "[model_providers.scripted]",
            'name = "scripted"', f'base_url = "{model}/v1"', 'wire_api = "responses"',
            'env_key = "SCRIPTED_KEY"',
        ]  # fmt: skip
        for name, entry in _plain(servers).items():
            lines += [
                f"[mcp_servers.{name}]", f"command = {json.dumps(entry['command'])}",
                f"args = {json.dumps(entry['args'])}", f"tool_timeout_sec = {_CALL_SECONDS}",
                "required = true", f"[mcp_servers.{name}.env]",
            ]  # fmt: skip
            lines += [
                f"{key} = {json.dumps(value)}" for key, value in servers[name].environment.items()
            ]
        _write(home / ".codex" / "config.toml", "\n".join(lines) + "\n")

    def command(self, prompt: str) -> list[str]:
        freely = ["--skip-git-repo-check", "--dangerously-bypass-approvals-and-sandbox"]
        return ["codex", "exec", *freely, prompt]

    def environment(self, model: str) -> dict[str, str]:
        return {"SCRIPTED_KEY": "dummy"}


class PatchingCodex(Codex):
    """With a model that it knows, it offers its tool for patches, and hides those of servers."""

    model = "gpt-5.5"


class GeminiCli:
    name, label, speaks_mcp = "gemini", "Gemini CLI", True
    packages, package = "five", "@google/gemini-cli"
    sets = ("GEMINI_CLI",)

    def configure(self, home: Path, servers: Servers, model: str) -> None:
        _write(home / ".gemini" / "settings.json", {
            "security": {"auth": {"selectedType": "gemini-api-key"}},
            "mcpServers": _plain(servers),
            "privacy": {"usageStatisticsEnabled": False},
            "general": {"enableAutoUpdate": False},
        })  # fmt: skip

    def command(self, prompt: str) -> list[str]:
        return ["gemini", "-m", "gemini-2.5-pro", "-y", "--skip-trust", "-p", prompt]

    def environment(self, model: str) -> dict[str, str]:
        return {"GEMINI_API_KEY": "dummy", "GOOGLE_GEMINI_BASE_URL": model}


class CopilotCli:
    name, label, speaks_mcp = "copilot", "Copilot CLI", True
    packages, package = "five", "@github/copilot"
    sets = ("COPILOT_AGENT_SESSION_ID", "COPILOT_CLI")

    def configure(self, home: Path, servers: Servers, model: str) -> None:
        entries = {
            name: {"type": "local", "tools": ["*"], **entry}
            for name, entry in _plain(servers).items()
        }
        _write(home / ".copilot" / "mcp-config.json", {"mcpServers": entries})

    def command(self, prompt: str) -> list[str]:
        return ["copilot", "--allow-all-tools", "--allow-all-paths", "-p", prompt]

    def environment(self, model: str) -> dict[str, str]:
        return {
            "COPILOT_PROVIDER_BASE_URL": f"{model}/v1", "COPILOT_MODEL": "gpt-4.1",
            "COPILOT_PROVIDER_API_KEY": "dummy", "COPILOT_OFFLINE": "true",
            "COPILOT_AUTO_UPDATE": "false",
        }  # fmt: skip


class OpenCode:
    name, label, speaks_mcp = "opencode", "opencode", True
    packages, package = "five", "opencode-linux-x64"
    sets = ("OPENCODE",)

    def configure(self, home: Path, servers: Servers, model: str) -> None:
        entries = {
            name: {
                "type": "local", "command": list(server.command), "enabled": True,
                "environment": dict(server.environment), "timeout": _CALL_SECONDS * 1000,
            }
            for name, server in servers.items()
        }  # fmt: skip
        provider = {
            "npm": "@ai-sdk/openai-compatible", "name": "scripted",
            "models": {_MODEL: {"name": _MODEL, "tool_call": True}},
            "options": {"baseURL": f"{model}/v1", "apiKey": "dummy"},
        }  # fmt: skip
        _write(home / ".config" / "opencode" / "opencode.json", {
            "model": f"scripted/{_MODEL}", "provider": {"scripted": provider}, "mcp": entries,
            "autoupdate": False, "snapshot": False,
        })  # fmt: skip

    def command(self, prompt: str) -> list[str]:
        return ["opencode", "run", "--auto", prompt]

    def environment(self, model: str) -> dict[str, str]:
        return {"OPENCODE_DISABLE_AUTOUPDATE": "1", "OPENCODE_DISABLE_MODELS_FETCH": "1"}


class QwenCode:
    name, label, speaks_mcp = "qwen", "Qwen Code", True
    packages, package = "qwen", "@qwen-code/qwen-code"
    sets = ("QWEN_CODE",)

    def configure(self, home: Path, servers: Servers, model: str) -> None:
        _write(home / ".qwen" / "settings.json", {
            "mcpServers": _plain(servers),
            "privacy": {"usageStatisticsEnabled": False},
            "general": {"disableAutoUpdate": True},
        })  # fmt: skip
        self._model = model

    def command(self, prompt: str) -> list[str]:
        return [
            "qwen", "--auth-type", "openai", "--openai-api-key", "dummy",
            "--openai-base-url", f"{self._model}/v1", "-m", _MODEL, "-y", "-p", prompt,
        ]  # fmt: skip

    def environment(self, model: str) -> dict[str, str]:
        return {}


class Cline:
    """The package `cline` starts this program, and brings 340 more that are not used then."""

    name, label, speaks_mcp = "cline", "Cline", True
    packages, package = "cline", "@cline/cli-linux-x64"
    sets = ("CLINE_CONNECTOR_CLI_LAUNCH",)

    def configure(self, home: Path, servers: Servers, model: str) -> None:
        settings = home / ".cline" / "data" / "settings"
        # Without a timeout, it gives up on a server that needs more than three seconds to start.
        entries = {
            name: {"transport": {"type": "stdio", **entry}, "timeout": _CALL_SECONDS}
            for name, entry in _plain(servers).items()
        }
        _write(settings / "cline_mcp_settings.json", {"mcpServers": entries})
        self._model = model

    def command(self, prompt: str) -> list[str]:
        endpoint = ["-k", "dummy", "-m", _MODEL]
        auth = ["cline", "auth", "openai-compatible", *endpoint, "-b", f"{self._model}/v1"]
        run = ["cline", "-P", "openai-compatible", *endpoint, prompt]
        return ["sh", "-c", f'{shlex.join(auth)} && exec "$@"', "sh", *run]

    def environment(self, model: str) -> dict[str, str]:
        return {}


class Pi:
    """Speaks no MCP, so it is for the guard alone."""

    name, label, speaks_mcp = "pi", "pi", False
    packages, package = "pi", "@mariozechner/pi-coding-agent"
    sets = ("PI_CODING_AGENT",)

    def configure(self, home: Path, servers: Servers, model: str) -> None:
        entry = {
            "id": _MODEL, "name": _MODEL, "reasoning": False, "input": ["text"],
            "contextWindow": 100_000, "maxTokens": 4_000,
            "cost": {"input": 0, "output": 0, "cacheRead": 0, "cacheWrite": 0},
        }  # fmt: skip
        provider = {
            "baseUrl": f"{model}/v1", "api": "openai-completions", "apiKey": "dummy",
            "models": [entry],
        }  # fmt: skip
        _write(home / ".pi" / "agent" / "models.json", {"providers": {"scripted": provider}})

    def command(self, prompt: str) -> list[str]:
        return ["pi", "-p", "--provider", "scripted", "--model", _MODEL, prompt]

    def environment(self, model: str) -> dict[str, str]:
        return {"PI_OFFLINE": "1", "PI_SKIP_VERSION_CHECK": "1"}


# CI runs these in all tests, and the others that speak MCP in two: sessions, and `rootsd connect`.
# `make soak` runs all of them in all tests.
FIVE: tuple[AgentProgram, ...] = (ClaudeCode(), Codex(), GeminiCli(), CopilotCli(), OpenCode())
OTHERS: tuple[AgentProgram, ...] = (QwenCode(), Cline(), Pi())
PROGRAMS = {program.name: program for program in (*FIVE, *OTHERS)}
# The same, each with a tool that edits files.
EDITORS: dict[str, AgentProgram] = {**PROGRAMS, "codex": PatchingCodex()}
