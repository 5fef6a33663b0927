"""Keeps OpenSSL out of the daemon, which speaks on Unix sockets only.

asyncio and anyio load it for TLS, and hashlib for hashes that Python has as well: 5 MB, for a key
or a certificate that nobody here will ever see. asyncio and hashlib are loaded as where Python was
built without OpenSSL, and the module `ssl`, which anyio imports for its names, is put off: who
asks it for more has it loaded then.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from importlib import import_module
from importlib.util import find_spec, module_from_spec
from types import ModuleType
from typing import cast

_TLS, _HASHES = "ssl", "_hashlib"
# What anyio imports by name, for type hints.
_NAME = "SSLContext"
# Python's own, all of which hashlib looks for; a build may leave some out.
_SHA2 = ("_sha2",) if sys.version_info >= (3, 12) else ("_sha256", "_sha512")
_OWN_HASHES = ("_md5", "_sha1", *_SHA2, "_sha3", "_blake2")


def do_without_openssl() -> None:
    """To be called before anything loads asyncio or hashlib; what is loaded stays as it is."""
    with _as_if_missing(_TLS) as is_missing:
        if is_missing:
            import_module("asyncio")
    if is_missing:
        _put_off(_TLS)
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


def _put_off(name: str) -> None:
    spec = find_spec(name)
    if spec is None or spec.loader is None:
        return
    loader, module = spec.loader, module_from_spec(spec)

    def load(attribute: str) -> object:
        if attribute.startswith("__"):
            raise AttributeError(attribute)
        del module.__getattr__
        loader.exec_module(module)
        return getattr(module, attribute)

    module.__getattr__ = load  # type: ignore[method-assign]
    setattr(module, _NAME, type(_NAME, (), {}))
    sys.modules[name] = module
