"""The scripts for shells, which are shipped as files: completion, and shell functions.

Shells print them at each start, so this module imports nothing but `os` and `sys`.
"""

from __future__ import annotations

import os
import sys

SHELLS = ("bash", "zsh", "fish")
# The shells search for these names of the completion scripts.
FILES = {
    "completion": {
        "bash": "completions/rootsd.bash",
        "zsh": "completions/_rootsd",
        "fish": "completions/rootsd.fish",
    },
    "shell-init": {shell: f"shell/rootsd.{shell}" for shell in SHELLS},
}


def shipped_folder() -> str:
    """Return the folder that contains `systemd`, `launchd`, `completions`, and `shell`."""
    package = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
    packaged = os.path.join(package, "share")
    in_checkout = os.path.dirname(os.path.dirname(package))
    return packaged if os.path.isdir(packaged) else in_checkout


def script(verb: str, shell: str) -> str:
    """Return the script that `rootsd VERB SHELL` prints, as it is shipped."""
    with open(os.path.join(shipped_folder(), FILES[verb][shell]), encoding="utf-8") as stream:
        return stream.read()


def main(verb: str, shell: str) -> int:
    """Print a script, and return the exit status."""
    sys.stdout.write(script(verb, shell))
    return 0
