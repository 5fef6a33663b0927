"""The doctor's probe of a file system: by what can a folder there be told from another?"""

from __future__ import annotations

from collections.abc import Callable

from rootsd.core.diagnosis import Diagnosis, ok, warning
from rootsd.core.labels import safe_label
from rootsd.core.model import Identity
from rootsd.host.disk.identity import identify


def file_handles(path: bytes, look: Callable[[bytes], Identity] = identify) -> Diagnosis:
    """By what a folder below `path` is told from another that takes its place."""
    shown = safe_label(path, limit=None)
    try:
        found = look(path)
    except OSError as failure:
        return warning("identity", f"{shown}: {failure.strerror}", f"ls -ld {shown}")
    if found.handle is not None:
        return ok("identity", f"{shown} gives file handles")
    if found.born_ns is not None:
        return ok("identity", f"{shown} gives birth times, and no file handles")
    return warning(
        "identity",
        f"the file system of {shown} gives neither file handles nor birth times: a folder that "
        "is replaced may pass for the one that was approved",
        f"findmnt --target {shown}",
    )
