"""Build hook: write the man page, from the definitions of the command line, into wheel and sdist.

The page is not in the repository, so it always matches `--help`.
"""

from __future__ import annotations

import sys
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

PAGE = "rootsd.1"


class WriteManual(BuildHookInterface):  # type: ignore[type-arg]  # hatchling finds it by its base
    """Adds share/man/man1/rootsd.1 to a wheel, and man/rootsd.1 to a source archive."""

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Before the build, write the page and add it to the archive."""
        del version
        sys.path.insert(0, str(Path(self.root, "daemon")))
        from rootsd.cli.man_page import render_man_page  # noqa: PLC0415 - of the tree that is built

        self._folder = TemporaryDirectory()
        page = Path(self._folder.name, PAGE)
        page.write_text(render_man_page(), encoding="utf-8")
        if self.target_name == "wheel":
            build_data["shared_data"][str(page)] = f"share/man/man1/{PAGE}"
        else:
            build_data["force_include"][str(page)] = f"man/{PAGE}"

    def finalize(self, version: str, build_data: dict[str, Any], artifact_path: str) -> None:
        """After the build, remove the page."""
        del version, build_data, artifact_path
        self._folder.cleanup()
