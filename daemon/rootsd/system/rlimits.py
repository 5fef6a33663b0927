"""Raise the limit on open files: setrlimit(2), RLIMIT_NOFILE.

A shell's usual soft limit of 1,024 is for programs that use select(2), which we do not.
"""

from __future__ import annotations

import resource


def raise_descriptor_limit(wanted: int) -> int:
    """Let this process have `wanted` descriptors, as far as its hard limit goes, and never fewer
    than before; how many it may have then."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft == resource.RLIM_INFINITY or soft >= wanted:
        return wanted if soft == resource.RLIM_INFINITY else soft
    raised = wanted if hard == resource.RLIM_INFINITY else min(wanted, hard)
    try:
        resource.setrlimit(resource.RLIMIT_NOFILE, (raised, hard))
    except (OSError, ValueError):  # macOS has a limit of its own below an infinite one
        return soft
    return raised
