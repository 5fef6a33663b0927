"""Turn off the guard of a test's daemon, so that tests may give orders below any MCP host."""

from __future__ import annotations

from pathlib import Path

NO_GUARD = '[approval]\nguard = "off"\n'


def configure_guard(rootsd_dir: Path, guard: str = "off") -> None:
    """Set the guard in the configuration of this folder, before its store exists."""
    folder = rootsd_dir / "config"
    folder.mkdir(parents=True, exist_ok=True)
    file = folder / "config.toml"
    file.write_text(NO_GUARD.replace("off", guard) + (file.read_text() if file.exists() else ""))
