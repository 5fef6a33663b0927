"""Keep unused standard modules out of the daemon (to be deleted).

asyncio and anyio load OpenSSL for TLS, and hashlib for hashes that Python has as well: 5 MB, where
all sockets are Unix sockets. asyncio and hashlib are loaded as where Python was built without it.
The module `ssl`, which anyio imports for its names, is put off, and so is watchdog's package of
observers, 0.4 MB of which a reader of inotify's events needs none: who asks for more than is
there has them loaded then. What shutil loads to pack archives, which nobody does here, is 0.4 MB.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from importlib import import_module
from importlib.util import find_spec, module_from_spec
from types import ModuleType
from typing import cast

_TLS, _HASHES = "ssl", "_hashlib"
# What anyio imports by name, for type hints.
_NAME = "SSLContext"
_OBSERVERS = "watchdog.observers"
_COMPRESSORS = ("bz2", "lzma")
# Python's own, all of which hashlib looks for; a build may leave some out.
_SHA2 = ("_sha2",) if sys.version_info >= (3, 12) else ("_sha256", "_sha512")
_OWN_HASHES = ("_md5", "_sha1", *_SHA2, "_sha3", "_blake2")


def leave_out_the_unused() -> None:
    """To be called before anything loads them; what is loaded stays as it is."""
    with _as_if_missing(_TLS) as is_missing:
        if is_missing:
            import_module("asyncio")
    if is_missing and (tls := _put_off(_TLS)):
        setattr(tls, _NAME, type(_NAME, (), {}))
    if sys.platform == "linux" and _OBSERVERS not in sys.modules:
        _put_off(_OBSERVERS)
    with ExitStack() as stack:
        if all(stack.enter_context(_as_if_missing(name)) for name in _COMPRESSORS):
            import_module("shutil")
    if all(map(find_spec, _OWN_HASHES)):
        with _as_if_missing(_HASHES) as is_missing:
            if is_missing:
                import_module("hashlib")
                import_module("hmac")


@contextmanager
def _as_if_missing(name: str) -> Iterator[bool]:
    """To import `name` fails meanwhile; False where it is loaded already, and nothing is done."""
    known = cast("dict[str, ModuleType | None]", sys.modules)
    if name in known:
        yield False
        return
    known[name] = None
    try:
        yield True
    finally:
        del known[name]


def _put_off(name: str) -> ModuleType | None:
    """The module `name`, empty; None if there is none. What is in a package can be imported."""
    spec = find_spec(name)
    if spec is None or spec.loader is None:
        return None
    loader, module = spec.loader, module_from_spec(spec)
    is_package = spec.submodule_search_locations is not None

    def load(attribute: str) -> object:
        is_inside = is_package and find_spec(f"{name}.{attribute}") is not None
        if attribute.startswith("__") or is_inside:
            raise AttributeError(attribute)
        del module.__getattr__
        loader.exec_module(module)
        return getattr(module, attribute)

    module.__getattr__ = load  # type: ignore[method-assign]
    sys.modules[name] = module
    return module
