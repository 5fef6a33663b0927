"""The scripts for shells, which are shipped as files: completion, and shell functions.

Shells print them at each start, so this module imports little.
"""

from __future__ import annotations

import os
import sys

from rootsd.config.wall_default import typed_agents
from rootsd.core.errors import RootsdError
from rootsd.processes.own_program import COMMAND_NAME

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
    """Print a script, and return the exit status.

    If nobody knows which agents start behind the wall, say so: they start outside now.
    """
    text = script(verb, shell)
    if verb == "shell-init":
        try:
            text += agents_line(shell)
        except RootsdError as error:
            sys.stderr.write(f"rootsd: {error.sentence}\n")
    sys.stdout.write(text)
    return 0


def agents_line(shell: str) -> str:
    """Return the last line of the shell functions, which names the agents; empty without agents.

    It has the path of this command: a project may change the PATH. Raises RootsdError.
    """
    if not (names := typed_agents()):
        return ""
    command = os.path.abspath(sys.argv[0])
    if os.path.basename(command) != COMMAND_NAME or not os.access(command, os.X_OK):
        from rootsd.processes.command_path import installed_command  # noqa: PLC0415 - slow

        command = str(installed_command())
    if shell == "fish":
        quoted = command.replace("\\", "\\\\").replace("'", "\\'")
        return f"__rootsd_behind_wall '{quoted}' {' '.join(names)}\n"
    quoted = command.replace("'", "'\\''")
    return f"_rootsd_behind_wall '{quoted}' {' '.join(names)}\n"
