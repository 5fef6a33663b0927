"""Words about the programs behind the wall, for `rootsd status` and `rootsd sessions`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from rootsd.cli.text.phrases import pluralize
from rootsd.core.labels import safe_text
from rootsd.core.wall import WallEngine

_PARTS = (("read_only", "read-only"), ("masked", "masked"), ("waiting", "more after a restart"))


def describe_program(item: Mapping[str, Any]) -> str:
    """Return `claude, pid 41` or, before the program runs, `claude, starting`."""
    pid = f"pid {item['pid']}" if item["pid"] else "starting"
    return f"{safe_text(item['name'])}, {pid}"


def describe_roots(item: Mapping[str, Any]) -> str:
    """Return the number of roots that the program reaches, such as `12 roots (2 read-only)`."""
    parts = [f"{item[key]} {word}" for key, word in _PARTS if item[key]]
    return pluralize(item["roots"], "root") + (f" ({', '.join(parts)})" if parts else "")


def describe_engine(item: Mapping[str, Any]) -> str:
    """Return the mechanisms that enforce the wall, such as `namespaces + Landlock 7`."""
    landlock = f"Landlock {item['landlock']}" if item["landlock"] else "no Landlock"
    return (
        f"static {landlock}" if item["engine"] == WallEngine.STATIC else f"namespaces + {landlock}"
    )


def describe_network(item: Mapping[str, Any]) -> str:
    """Return whether the program may use the network."""
    return "network" if item["network"] else "no network"
