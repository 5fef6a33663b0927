"""Follow the symbolic links on a path one by one, as the kernel does.

os.path.realpath tells only where a path ends. `walk_links` also tells which links and which
folders are on the way there. It reads every part of the path, so a mount that does not respond
blocks it. `rootsd.disk.hung_mounts` has its own walk, because it asks before each step.

Standard library only, because the lean programs import this module. Source: path_resolution(7).
"""

from __future__ import annotations

import errno
import os

TYPE_CHECKING = False  # to import typing would take a seventh of the time of `rootsd check`
if TYPE_CHECKING:
    from collections.abc import Iterator

MAX_LINKS = 40
"""The kernel gives up on a path with more links."""
MAX_PATH_BYTES = 4096
"""The kernel takes no longer path."""


def walk_links(path: bytes) -> Iterator[tuple[bytes, bytes | None]]:
    """Yield each part of an absolute path as it is looked up, and its target if it is a link.

    A part is an absolute path in which only the last name may be a link. The target is None for
    everything else, even for what does not exist: after that, the rest follows from the text.
    Raises OSError (ELOOP) for more than MAX_LINKS links.
    """
    here, links = b"/", 0
    left = path.split(b"/")[::-1]
    while left:
        name = left.pop()
        if name in (b"", b"."):
            continue
        if name == b"..":
            here = os.path.dirname(here)
            yield here, None
            continue
        there = os.path.join(here, name)
        target = _target(there)
        yield there, target
        if target is None:
            here = there
            continue
        links += 1
        if links > MAX_LINKS:
            raise OSError(errno.ELOOP, os.strerror(errno.ELOOP), path)
        left += target.split(b"/")[::-1]
        here = b"/" if target.startswith(b"/") else here


def real_path(path: bytes) -> bytes:
    """Return the real path of an absolute path, which anybody may have written.

    What does not exist stays as it is. Raises OSError for too many links, and for a path longer
    than any folder can have: without that limit, a text of a megabyte would take minutes.
    """
    here = b"/"
    for there, target in walk_links(path):
        if len(there) > MAX_PATH_BYTES:
            raise OSError(
                errno.ENAMETOOLONG, os.strerror(errno.ENAMETOOLONG), path[:MAX_PATH_BYTES]
            )
        if target is None:
            here = there
        elif target.startswith(b"/"):
            here = b"/"  # where a link to / ends
    return here


def final_path(path: bytes) -> bytes:
    """Return the real path of an absolute path, or the path itself if the kernel refuses it.

    Unlike os.path.realpath, it takes a link that may not be read, such as /proc/1/root.
    """
    try:
        return real_path(path)
    except OSError:
        return path


def _target(path: bytes) -> bytes | None:
    try:
        return os.readlink(path)
    except (OSError, ValueError):
        return None
