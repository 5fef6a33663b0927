"""The files that version 0.1.0 made: see `support.record_0_1_0`."""

from __future__ import annotations

import json
import shutil
import tarfile
from pathlib import Path
from typing import Any

FILES = Path(__file__).parent / "release_0_1_0"
RECORDED_HOME = "/tmp/rootsd-0.1.0/home"
STORE_VERSION = 3
COMMAND = "/home/ann/.local/bin/rootsd"


def unpack_state(folder: Path) -> None:
    """Put the state folder of 0.1.0 at `folder`, which does not exist yet."""
    unpacked = folder.parent / "unpacked"
    with tarfile.open(FILES / "state.tar.gz") as archive:
        # With modes as they are, which the store checks. The argument `filter` is too new.
        archive.extraction_filter = lambda member, _: member
        archive.extractall(unpacked)  # noqa: S202 - our own archive
    (unpacked / "state").rename(folder)


def copy_home(folder: Path) -> None:
    """Put the configurations of clients at `folder`, with entries for `COMMAND`."""
    shutil.copytree(FILES / "home", folder, dirs_exist_ok=True)


def printed_decisions() -> dict[str, Any]:
    """Return what the commands of 0.1.0 printed about the decisions in its state folder."""
    found: dict[str, Any] = json.loads((FILES / "decisions.json").read_text())
    return found


def unit_texts() -> dict[str, str]:
    """Return the service files by name."""
    found: dict[str, str] = json.loads((FILES / "units.json").read_text())
    return found


def recorded(name: str, side: str) -> list[bytes]:
    """Return the lines that one side, `proxy` or `daemon`, sent in the recording `name`."""
    messages = map(json.loads, (FILES / f"{name}.jsonl").read_text().splitlines())
    return [json.dumps(each[side]).encode() + b"\n" for each in messages if side in each]
