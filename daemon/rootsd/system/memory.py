"""Keep garbage collection from pausing the process for long.

What is loaded once, the MCP SDK's 30 MB above all, lives as long as the daemon, and to look
through it takes 70 ms each time. What comes and goes is mostly freed by its count of references.
"""

from __future__ import annotations

import gc

# Objects that are new, collections of the young, collections of the middle-aged before the next.
_THRESHOLDS = (5_000, 20, 50)


def freeze_loaded_objects() -> None:
    """Never look again at what exists now. Only where nothing of it is to be collected later: a
    cycle that is spared stays for good."""
    gc.freeze()
    gc.set_threshold(*_THRESHOLDS)
