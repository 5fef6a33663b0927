"""The SDK is loaded without what only HTTP needs, and whoever wants that gets it."""

from __future__ import annotations

import pytest

from support.subjects import run_python

HEAVY = "heavy = {'cryptography', 'httpx2', 'mcp.client', 'mcp.server.mcpserver', 'uvicorn'}"
LEAN = "from rootsd.mcp.sdk import load_lean; load_lean('rootsd.mcp.connection')"
SHOW = "import sys; print(sorted(heavy & sys.modules.keys()))"


def _told(*lines: str) -> str:
    told, complaints = run_python((), "\n".join((HEAVY, *lines)))
    assert complaints == ""
    return told.strip()


def test_what_only_http_needs_is_not_loaded() -> None:
    assert _told(LEAN, SHOW) == "[]"


def test_loaded_as_ever_it_would_be() -> None:
    assert "cryptography" in _told("import rootsd.mcp.connection", SHOW)


@pytest.mark.parametrize(
    "wanted", ["from mcp import ClientSession as It", "from mcp.server import MCPServer as It"]
)
def test_what_a_package_offers_is_loaded_for_whoever_asks(wanted: str) -> None:
    assert _told(LEAN, wanted, "print(It.__name__)") == wanted.split()[3]


def test_what_a_package_lacks_is_an_error_that_names_it() -> None:
    program = (LEAN, "import mcp", "try: mcp.nothing", "except AttributeError as e: print(e)")
    assert "nothing" in _told(*program)


def test_modules_that_were_put_off_can_be_imported_later() -> None:
    assert _told(LEAN, "import uvicorn, mcp.client.stdio", "print('both')") == "both"


def test_what_is_not_there_is_an_import_error() -> None:
    program = (
        "import sys, importlib.util",
        "sys.path = [p for p in sys.path if 'site-' not in p]",
    )
    refused = ("try:", f"    {LEAN}", "except ImportError as e: print(e.name)")
    assert _told(*program, *refused) == "mcp"
