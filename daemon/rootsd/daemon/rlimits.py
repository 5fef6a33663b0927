"""Raise the limit on open files: setrlimit(2), RLIMIT_NOFILE.

The usual soft limit of 1,024 exists for programs that use select(2). rootsd does not use it.
"""

from __future__ import annotations

import resource


def raise_descriptor_limit(wanted: int) -> int:
    """Raise the limit to `wanted` descriptors or the hard limit, and return the new limit.

    Never lowers the limit.
    """
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft == resource.RLIM_INFINITY or soft >= wanted:
        return wanted if soft == resource.RLIM_INFINITY else soft
    raised = wanted if hard == resource.RLIM_INFINITY else min(wanted, hard)
    try:
        resource.setrlimit(resource.RLIMIT_NOFILE, (raised, hard))
    except (OSError, ValueError):
        return soft  # macOS has a lower limit of its own, even if the hard limit is infinite
    return raised
