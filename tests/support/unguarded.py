"""A daemon that lets everybody decide: tests give orders from below all sorts of MCP hosts."""

from __future__ import annotations

from pathlib import Path

NO_GUARD = '[approval]\nguard = "off"\n'


def set_guard(rootsd_dir: Path, guard: str = "off") -> None:
    """Configure the daemon of this folder, whose store is not made yet, so."""
    folder = rootsd_dir / "config"
    folder.mkdir(parents=True, exist_ok=True)
    file = folder / "config.toml"
    file.write_text(NO_GUARD.replace("off", guard) + (file.read_text() if file.exists() else ""))
