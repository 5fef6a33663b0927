"""The daemon is loaded without what it does not use, and whoever wants that gets it."""

from __future__ import annotations

import hashlib

import pytest

from support.subjects import run_python

LEAN = "from rootsd.system.lean import leave_out_the_unused; leave_out_the_unused()"
DAEMON = "import rootsd.daemon.main, anyio; anyio.connect_unix"
UNUSED = "unused = {'_ssl', '_hashlib', 'watchdog.observers.api', '_bz2', '_lzma'}"
SHOW = f"import sys; {UNUSED}; print(sorted(unused & sys.modules.keys()))"
TLS = "import ssl; print(type(ssl.create_default_context()) is ssl.SSLContext)"


def _told(*lines: str) -> str:
    told, complaints = run_python((), "\n".join(lines))
    assert complaints == ""
    return told.strip()


@pytest.mark.needs("linux")
def test_the_daemon_is_loaded_without_it() -> None:
    assert _told(LEAN, DAEMON, SHOW) == "[]"


@pytest.mark.needs("linux")
def test_loaded_as_ever_it_would_be_there() -> None:
    assert _told(DAEMON, SHOW) == (
        "['_bz2', '_hashlib', '_lzma', '_ssl', 'watchdog.observers.api']"
    )


@pytest.mark.parametrize("name", ["md5", "sha1", "sha256", "sha512", "sha3_256", "blake2b"])
def test_hashes_are_the_same(name: str) -> None:
    digest = hashlib.new(name, b"roots", usedforsecurity=False).hexdigest()
    program = f"import hashlib; print(hashlib.new({name!r}, b'roots').hexdigest())"
    assert _told(LEAN, program) == digest


def test_who_asks_for_tls_has_it_loaded_then() -> None:
    assert _told(LEAN, DAEMON, TLS) == "True"
    assert _told(LEAN, "import anyio.streams.tls as it", "print(it.ssl.HAS_TLSv1_3)") == "True"


@pytest.mark.needs("linux")
def test_who_asks_for_an_observer_has_it_loaded_then() -> None:
    wanted = "from watchdog.observers import Observer; print(Observer.__name__)"
    assert _told(LEAN, DAEMON, wanted) == "InotifyObserver"
    assert _told(LEAN, "import watchdog.observers.polling as it", "print('it')") == "it"


def test_who_compresses_has_it_loaded_then() -> None:
    assert _told(LEAN, DAEMON, "import bz2, lzma; print(len(lzma.compress(b'')) > 0)") == "True"


def test_where_it_is_loaded_already_it_stays() -> None:
    kept = "import ssl, hashlib; before = ssl.SSLContext, hashlib.sha256"
    same = "print((ssl.SSLContext, hashlib.sha256) == before, 'asyncio' in sys.modules)"
    assert _told(kept, LEAN, "import sys", same) == "True False"


def test_a_python_without_hashes_of_its_own_keeps_those_of_openssl() -> None:
    lacks = "import sys, importlib.util as u; find = u.find_spec"
    hide = "u.find_spec = lambda name: None if name == '_sha1' else find(name)"
    program = (lacks, hide, LEAN, "import hashlib; print('_hashlib' in sys.modules)")
    assert _told(*program) == "True"
