"""The ids that the proxy gives to its own messages. Pure."""

from __future__ import annotations

from itertools import count

_PREFIX = "rootsd-run-"


class OwnIds:
    """The ids for one purpose. `tag` distinguishes them from those of another proxy."""

    def __init__(self, tag: str, purpose: str) -> None:
        self._prefix = f"{_PREFIX}{tag}-{purpose}-"
        self._numbers = count(1)

    def new(self) -> str:
        """Return an id that was not used yet."""
        return f"{self._prefix}{next(self._numbers)}"

    def __contains__(self, id_: object) -> bool:
        return isinstance(id_, str) and id_.startswith(self._prefix)


def is_own(id_: object) -> bool:
    """Return whether an id is of this proxy, or of another one."""
    return isinstance(id_, str) and id_.startswith(_PREFIX)
