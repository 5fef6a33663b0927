"""The known coding agents, with the names of their processes and the variables that they set.

The guard asks about every program that it does not know as a person's (`core.known_programs`). An
agent in this list is refused instead, and by its name.

This module is data. A comment at each entry names the source: the agent's source code if it is
open, or else observations of its processes. docs/AGENTS.md lists the agents for users, and the
configuration can add more. Editors are not in this list, because people type in their terminals.
"""

from __future__ import annotations

from collections.abc import Iterable

from msgspec import Struct


class Agent(Struct, frozen=True):
    """A coding agent.

    * `names`: the names of its programs, or of the script that an interpreter runs.
    * `packages`: parts of the path of that script.
    * `markers`: environment variables that it sets for its commands, as `NAME` or `NAME=value`.
    * `hints`: the same, but a person's terminal may also have these variables.
    """

    label: str
    names: frozenset[str] = frozenset()
    packages: tuple[str, ...] = ()
    markers: frozenset[str] = frozenset()
    hints: frozenset[str] = frozenset()


KNOWN_AGENTS = (
    Agent(
        "Claude Code",
        # npm installs the program as claude.exe on every system.
        frozenset({"claude", "claude.exe"}),
        ("@anthropic-ai/claude-code/",),
        # Its documentation of the Bash tool's environment, from 2.1.172 on.
        markers=frozenset({"CLAUDE_CODE_CHILD_SESSION"}),
        # Editor extensions also set it, in terminals that people use.
        hints=frozenset({"CLAUDECODE"}),
    ),
    Agent(
        "Codex CLI",
        frozenset({"codex", "codex-exec"}),
        ("@openai/codex/",),
        # openai/codex: codex-rs/core/src/spawn.rs, unified_exec/process_manager.rs, and
        # codex-rs/protocol/src/shell_environment.rs
        markers=frozenset(
            {"CODEX_SANDBOX", "CODEX_SANDBOX_NETWORK_DISABLED", "CODEX_THREAD_ID", "CODEX_CI"}
            | {"CODEX_SESSION_ID", "CODEX_TOOL_CALL_ID"}
        ),
    ),
    Agent(
        "Gemini CLI",
        frozenset({"gemini"}),
        ("@google/gemini-cli/",),
        # google-gemini/gemini-cli: packages/core/src/services/shellExecutionService.ts
        markers=frozenset({"GEMINI_CLI"}),
    ),
    Agent(
        "Cursor agent",
        frozenset({"cursor-agent"}),
        ("/cursor-agent/",),
        # vercel/vercel: packages/detect-agent/src/index.ts
        markers=frozenset({"CURSOR_AGENT"}),
    ),
    Agent(
        "opencode",
        frozenset({"opencode"}),
        ("/opencode-ai/",),
        # sst/opencode: packages/opencode/src/index.ts; forks of it keep the variable
        markers=frozenset({"OPENCODE=1"}),
    ),
    Agent(
        "Goose",
        frozenset({"goose", "goosed"}),
        # block/goose: crates/goose-mcp/src/developer/shell.rs
        markers=frozenset({"GOOSE_TERMINAL", "AGENT=goose"}),
    ),
    # Aider-AI/aider, aider/run_cmd.py: it sets nothing.
    Agent("Aider", frozenset({"aider"}), ("/aider/",)),
    # ascorbic/am-i-vibing: its table of providers
    Agent(
        "Amp",
        frozenset({"amp"}),
        ("@sourcegraph/amp/",),
        markers=frozenset({"AGENT=amp", "AMP_CURRENT_THREAD_ID"}),
    ),
    Agent(
        "Copilot CLI",
        frozenset({"copilot"}),
        ("@github/copilot/",),
        # Observed in its commands, but not in every version: dynatrace-oss/dtctl issue 288.
        markers=frozenset({"COPILOT_CLI", "COPILOT_AGENT_SESSION_ID"}),
        # microsoft/vscode, toolTerminalCreator.ts: also in terminals that people use.
        hints=frozenset({"COPILOT_AGENT"}),
    ),
    Agent(
        "Crush",
        frozenset({"crush"}),
        ("@charmland/crush/",),
        # charmbracelet/crush: internal/shell/shell.go
        markers=frozenset({"CRUSH=1", "AGENT=crush", "AI_AGENT=crush"}),
    ),
    Agent(
        "Qwen Code",
        frozenset({"qwen"}),
        ("@qwen-code/qwen-code/",),
        # QwenLM/qwen-code: packages/core/src/services/shellExecutionService.ts
        markers=frozenset({"QWEN_CODE"}),
    ),
    Agent(
        "Cline",
        frozenset({"cline"}),
        ("/node_modules/cline/",),
        # Observed in the commands of its command-line program, version 3.0.65.
        markers=frozenset({"CLINE_CONNECTOR_CLI_LAUNCH"}),
        # cline/cline: VscodeTerminalRegistry.ts, also in terminals that people use.
        hints=frozenset({"CLINE_ACTIVE"}),
    ),
    # badlogic/pi-mono: packages/coding-agent/src/cli.ts
    Agent(
        "pi",
        frozenset({"pi"}),
        ("/pi-coding-agent/",),
        markers=frozenset({"PI_CODING_AGENT"}),
    ),
    # continuedev/continue: extensions/cli/package.json; it sets nothing.
    Agent("Continue", frozenset({"cn"}), ("@continuedev/cli/",)),
    # Closed source. Its variable is in phpstan/phpstan-src, AgentDetector.php, and in
    # vercel/vercel, packages/detect-agent.
    Agent(
        "Auggie", frozenset({"auggie"}), ("@augmentcode/auggie/",), frozenset({"AUGMENT_AGENT"})
    ),
    # Closed source; no variable is known.
    Agent("Droid", frozenset({"droid"})),
    Agent("Kiro CLI", frozenset({"kiro-cli", "kiro-cli-chat"})),
    # Known by their names only.
    Agent("Antigravity CLI", frozenset({"agy"})),
    Agent("Devin CLI", frozenset({"devin"})),
    Agent("Hermes Agent", frozenset({"hermes"})),
    Agent("Junie CLI", frozenset({"junie"})),
    Agent("Kimi CLI", frozenset({"kimi"})),
    Agent("OpenClaw", frozenset({"openclaw"})),
    # Tools ask agents to set this variable (vercel/vercel: packages/detect-agent). Crush, Pi, and
    # Claude Code set it. A terminal with a built-in agent may also set it for people.
    Agent("an agent that says so", hints=frozenset({"AI_AGENT"})),
)


def further_agents(names: tuple[str, ...], markers: tuple[str, ...]) -> tuple[Agent, ...]:
    """Return the agents that the configuration adds to the known ones."""
    named = tuple(Agent(name, frozenset({name})) for name in names)
    marked = tuple(
        Agent(f"an agent that sets {marker}", markers=frozenset({marker})) for marker in markers
    )
    return (*named, *marked)


def markers_of(agents: Iterable[Agent]) -> frozenset[str]:
    """Return all markers and hints of these agents, which to look for in an environment."""
    return frozenset(marker for agent in agents for marker in agent.markers | agent.hints)
