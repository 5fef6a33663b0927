"""How a run of the command line talks: what the global flags said."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(slots=True)
class Flags:
    """What the global flags say; filled in while the words are parsed, wherever they stand."""

    json: bool = False
    quiet: bool = False
    verbose: bool = False
    no_color: bool = False
    no_input: bool = False
