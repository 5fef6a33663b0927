"""The interfaces of the package can be imported without the SDK."""

from __future__ import annotations

import subprocess
import sys


def test_the_source_can_be_named_without_loading_the_sdk() -> None:
    check = "import sys, rootsd.mcp.source; sys.exit('mcp' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", check], check=False).returncode == 0
