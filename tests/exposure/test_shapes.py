"""Settings may have any shape: only what is understood counts."""

from __future__ import annotations

import json
import tempfile
from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st

from support.exposed_home import ExposedHome

FILES = (
    ".claude/settings.json", ".claude.json", ".gemini/settings.json",
    ".gemini/trustedFolders.json", ".qwen/settings.json", ".copilot/settings.json",
    ".copilot/config.json", ".codex/hooks.json", ".config/opencode/opencode.json",
    ".cursor/cli-config.json", ".cursor/mcp.json", "src/p/.claude/settings.json",
    "src/p/.mcp.json", "src/p/opencode.json", "src/p/.qwen/settings.json",
    "src/p/.cursor/permissions.json", "src/p/.cursor/cli.json",
)  # fmt: skip
KEYS = st.sampled_from(
    (
        "permissions", "allow", "deny", "additionalDirectories", "defaultMode", "sandbox",
        "enabled", "filesystem", "hooks", "PreToolUse", "command", "type", "args", "env", "url",
        "projects", "hasTrustDialogAccepted", "mcpServers", "tools", "allowed", "approvalMode",
        "context", "includeDirectories", "security", "folderTrust", "trustedFolders",
        "userPolicy", "x", "~", "deniedPaths", "permission", "bash", "external_directory",
        "mcp", "hooksConfig", "*", "/", "agent", "build", "enabledMcpjsonServers",
        "enableAllProjectMcpServers", "terminalAllowlist", "defaultPermissionMode", "p",
    )
)  # fmt: skip
PLAIN = st.none() | st.booleans() | st.integers() | st.sampled_from(
    ("", "~", "/", "~/", "//", "Read(", "Bash()", "a\0b", "\ud800", "ask", "allow", "npx", "*")
)  # fmt: skip
VALUES = st.recursive(
    PLAIN,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(KEYS, inner, max_size=4),
    max_leaves=12,
)


@given(st.dictionaries(st.sampled_from(FILES), VALUES))
def test_settings_of_any_shape_are_read(settings: dict[str, object]) -> None:
    with tempfile.TemporaryDirectory() as top:
        home = ExposedHome(Path(top))
        home.repository("p")
        for file, content in settings.items():
            home.write(file, json.dumps(content))
        json.dumps(home.measure())
