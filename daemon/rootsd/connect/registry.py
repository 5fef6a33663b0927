"""Find every client: each module in `rootsd.connect.clients` has a tuple `CLIENTS`."""

from __future__ import annotations

import pkgutil
from collections.abc import Mapping
from functools import cache
from importlib import import_module

from rootsd.connect import clients
from rootsd.connect.base import McpClient


@cache
def all_clients() -> Mapping[str, McpClient]:
    """Return the clients by name, in the order of the alphabet."""
    modules = [
        import_module(f"{clients.__name__}.{found.name}")
        for found in pkgutil.iter_modules(clients.__path__)
    ]
    found: list[McpClient] = [client for module in modules for client in module.CLIENTS]
    return {client.facts.name: client for client in sorted(found, key=lambda c: c.facts.name)}
