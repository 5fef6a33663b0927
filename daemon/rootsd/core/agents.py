"""The coding agents that are known, by the names of their processes and the marks they leave.

Data, checked against what each agent's source, documentation or other detectors say; the
configuration adds to it. An editor is never on this list: people type in its terminals.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Agent:
    """One agent.

    `names` are those of its programs, or of the script that an interpreter runs; `packages` are
    parts of that script's path. `markers` are environment variables, as `NAME` or `NAME=value`,
    that it sets for the commands it runs. `hints` are such that people's terminals may have, too.
    """

    label: str
    names: frozenset[str] = frozenset()
    packages: tuple[str, ...] = ()
    markers: frozenset[str] = frozenset()
    hints: frozenset[str] = frozenset()


KNOWN_AGENTS = (
    Agent(
        "Claude Code",
        frozenset({"claude"}),
        ("@anthropic-ai/claude-code/",),
        markers=frozenset({"CLAUDE_CODE_CHILD_SESSION"}),
        # Extensions of editors set it in their terminals.
        hints=frozenset({"CLAUDECODE"}),
    ),
    Agent(
        "Codex CLI",
        frozenset({"codex", "codex-exec"}),
        ("@openai/codex/",),
        markers=frozenset(
            {"CODEX_SANDBOX", "CODEX_SANDBOX_NETWORK_DISABLED", "CODEX_THREAD_ID", "CODEX_CI"}
        ),
    ),
    Agent(
        "Gemini CLI",
        frozenset({"gemini"}),
        ("@google/gemini-cli/",),
        markers=frozenset({"GEMINI_CLI"}),
    ),
    Agent(
        "Cursor agent",
        frozenset({"cursor-agent"}),
        ("/cursor-agent/",),
        markers=frozenset({"CURSOR_AGENT"}),
    ),
    Agent("opencode", frozenset({"opencode"}), ("/opencode-ai/",), frozenset({"OPENCODE=1"})),
    Agent("Goose", frozenset({"goose", "goosed"}), (), frozenset({"GOOSE_TERMINAL"})),
    Agent("Aider", frozenset({"aider"}), ("/aider/",)),
    Agent("Amp", frozenset({"amp"}), ("@sourcegraph/amp/",), frozenset({"AGENT=amp"})),
    Agent(
        "Copilot CLI", frozenset({"copilot"}), ("@github/copilot/",), frozenset({"COPILOT_CLI"})
    ),
    Agent("Crush", frozenset({"crush"}), ("@charmland/crush/",), frozenset({"CRUSH=1"})),
    Agent("Qwen Code", frozenset({"qwen"}), ("@qwen-code/qwen-code/",), frozenset({"QWEN_CODE"})),
    Agent("Droid", frozenset({"droid"})),
    Agent("Kiro CLI", frozenset({"kiro-cli", "kiro-cli-chat"})),
)


def further_agents(names: tuple[str, ...], markers: tuple[str, ...]) -> tuple[Agent, ...]:
    """Those that the configuration adds to the known ones."""
    named = tuple(Agent(name, frozenset({name})) for name in names)
    marked = tuple(
        Agent(f"an agent that sets {marker}", markers=frozenset({marker})) for marker in markers
    )
    return (*named, *marked)
