"""Metadata hook: give the README of the package addresses instead of paths.

An index shows the README without the files beside it. Links lead to the tag of the same version.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

from hatchling.metadata.plugin.interface import MetadataHookInterface

RAW = "https://raw.githubusercontent.com"


def with_addresses(text: str, repository: str, version: str) -> str:
    """Return the README with all its paths replaced."""
    owner_and_name = repository.removeprefix("https://github.com")
    pages = f"{repository}/blob/v{version}/"
    files = f"{RAW}{owner_and_name}/v{version}/"
    text = re.sub(r"\]\((?!https?:|#)", f"]({pages}", text)
    return re.sub(r'(src|srcset)="(?!https?:)', rf'\1="{files}', text)


class WriteReadme(MetadataHookInterface):
    """Sets the description that an index shows."""

    def update(self, metadata: dict[str, Any]) -> None:
        """Read README.md and add it."""
        metadata["readme"] = {
            "content-type": "text/markdown",
            "text": with_addresses(
                Path(self.root, "README.md").read_text(encoding="utf-8"),
                metadata["urls"]["Repository"],
                metadata["version"],
            ),
        }
