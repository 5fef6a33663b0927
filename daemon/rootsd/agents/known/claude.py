"""Claude Code. Its documentation of settings, and its files in use, version 2.1.330."""

from __future__ import annotations

from rootsd.agents.profile import AgentFolder, AgentProfile, CopiedFile, SandboxSwitch

PROFILE = AgentProfile(
    "Claude Code",
    folders=(
        AgentFolder(
            ".claude",
            # It replaces .claude.json by rename, in the home folder unless this is set.
            variable="CLAUDE_CONFIG_DIR",
            loads=(
                "settings.json", "settings.local.json", "remote-settings.json", "CLAUDE.md",
                "agents", "commands", "hooks", "keybindings.json", "local", "output-styles",
                "plugins", "rules", "skills", "statusline*", "workflows",
            ),
            copies=(
                CopiedFile(
                    ".claude.json",
                    by_project=(("projects",),),
                    without=("githubRepoPaths",),
                    beside=".claude.json",
                ),
            ),
            credentials=(".credentials.json", ".device-keys.json"),
            # With it, each command fails: "bwrap: Failed to make / slave".
            sandboxes=(SandboxSwitch("settings.json", ("sandbox", "enabled")),),
        ),
    ),
    variables={"DISABLE_AUTOUPDATER": "1"},
)  # fmt: skip
