"""Loads what speaks MCP without the parts of the SDK that a server on a socket has no use for.

The packages `mcp` and `mcp.server` import all they offer: the client, the server for HTTP, and
what these stand on. Here both are put off: the modules in them can be imported as ever, and who
asks a package itself for a name has it loaded whole then. uvicorn, which is optional to what
imports it, is as if it were not installed. That spares 16 MB, and a third of the time.
"""

from __future__ import annotations

import sys
from importlib import import_module
from importlib.util import find_spec, module_from_spec
from types import ModuleType
from typing import cast

_PACKAGES = ("mcp", "mcp.server")
_OPTIONAL = "uvicorn"


def load_lean(module: str) -> ModuleType:
    """Import `module`, which imports modules of the SDK. Raises ImportError."""
    for name in _PACKAGES:
        if name not in sys.modules:
            _put_off(name)
    known = cast("dict[str, ModuleType | None]", sys.modules)
    known_before = known.setdefault(_OPTIONAL, None)
    try:
        return import_module(module)
    finally:
        if known_before is None:
            known.pop(_OPTIONAL, None)


def _put_off(package: str) -> None:
    spec = find_spec(package)
    if spec is None or spec.loader is None:
        raise ModuleNotFoundError(f"there is no {package}", name=package)
    loader, module = spec.loader, module_from_spec(spec)

    def load(attribute: str) -> object:
        is_inside = find_spec(f"{package}.{attribute}") is not None
        if attribute.startswith("__") or is_inside:
            raise AttributeError(attribute)
        del module.__getattr__
        loader.exec_module(module)
        return getattr(module, attribute)

    module.__getattr__ = load  # type: ignore[method-assign]
    sys.modules[package] = module
