"""Run a program on another machine through ssh, and explain the failures of ssh.

ssh joins the words of a command with spaces, and the login shell of the user on the other machine
parses the result. That may be any shell. `remote_line` makes a line that sh, bash, zsh, fish, csh,
and tcsh all parse into the same words, whatever the words contain.

ssh exits with 255 if it fails itself, and otherwise with the status of the remote program. Its own
messages go into a file (`-E`), so that they do not mix with those of the remote program.
"""

from __future__ import annotations

import os
import re
import shlex
import subprocess
import sys
from collections.abc import Sequence
from enum import Enum, auto
from tempfile import NamedTemporaryFile

from rootsd.core.errors import DaemonUnreachable, RootsdError
from rootsd.core.labels import safe_label
from rootsd.wire.request import BadRequest

# Neither an option of ssh nor a word that a ProxyCommand in its configuration could expand.
_HOST = re.compile(r"(ssh://)?([A-Za-z0-9_][A-Za-z0-9_.@+-]*@)?[A-Za-z0-9_\[][A-Za-z0-9_.:\[\]-]*")
# A non-interactive login often lacks the folders in which pipx, uv, and Homebrew install programs.
_PATH = 'PATH="$PATH:$HOME/.local/bin:/usr/local/bin:/opt/homebrew/bin"'
# Between single quotes, each shell means these characters literally. csh expands ! there, and
# fish removes some backslashes.
_QUOTABLE = re.compile(r"[ -~]*")
_UNQUOTABLE = frozenset("'\\!")
_PLAIN = re.compile(r"[A-Za-z0-9/._-]+")
_OPTIONS = (
    # A configured command, forwarded ports, or a forwarded agent have no use here.
    *("-a", "-x", "-o", "ClearAllForwardings=yes", "-o", "RemoteCommand=none"),
    # Otherwise, ssh says goodbye after each command on a terminal.
    *("-o", "LogLevel=ERROR"),
)
_SSH_FAILED = 255
_NOT_FOUND = 127
_SIGNAL_BASE = 128  # shells add the number of the signal that ended a command to this
_MAX_LOG_BYTES = 1 << 16
# Pieces of the messages of OpenSSH.
_LOST = "the connection was lost, so the command may or may not have run"
_REASONS = {
    "HOST IDENTIFICATION HAS CHANGED": (
        "its host key has changed; ask the person who manages it before you go on"
    ),
    "Host key verification failed": "ssh does not know its host key",
    "Permission denied": "it refused your keys",
    "Too many authentication failures": "it refused your keys",
    "Could not resolve hostname": "no machine with this name was found",
    "Connection refused": "no ssh server answers there",
    "Connection timed out": "it does not answer",
    "No route to host": "it cannot be reached",
    "Network is unreachable": "it cannot be reached",
    "closed by remote host": _LOST,
    "not responding": _LOST,
    "Broken pipe": _LOST,
}


class RemoteTerminal(Enum):
    """Whether the remote program gets a terminal of its own, connected to this one."""

    PSEUDO = auto()
    NONE = auto()

    @classmethod
    def like_this_one(cls) -> RemoteTerminal:
        """Return PSEUDO if all standard streams of this process are terminals.

        A pseudo-terminal has a single output, so nothing else would keep the two streams apart.
        """
        streams = (sys.stdin, sys.stdout, sys.stderr)
        return cls.PSEUDO if all(stream.isatty() for stream in streams) else cls.NONE


class Prompts(Enum):
    """Whether ssh may ask for passwords and about host keys."""

    ALLOWED = auto()
    FORBIDDEN = auto()


class HostUnreachable(DaemonUnreachable):
    """rootsd on the other machine could not be started through ssh."""


def check_host(host: str) -> str:
    """Return `host`. Raises BadRequest if it is not a host, `USER@HOST`, or `ssh://` address."""
    if _HOST.fullmatch(host) is None:
        shown = safe_label(host, limit=None)
        raise BadRequest(f"{shown} is not a host: expected HOST or USER@HOST", "man ssh")
    return host


def remote_line(words: Sequence[str]) -> str:
    """Return the line that makes any login shell run these words as one command."""
    if all(_QUOTABLE.fullmatch(word) and _UNQUOTABLE.isdisjoint(word) for word in words):
        quoted = (word if _PLAIN.fullmatch(word) else f"'{word}'" for word in words)
        return f'sh -c \'{_PATH}; exec "$0" "$@"\' {" ".join(quoted)}'
    # No shell changes the octal numbers of the bytes. sh turns them into the line that it runs.
    octal = "".join(f"\\0{byte:03o}" for byte in os.fsencode(shlex.join(words)))
    return f'sh -c \'{_PATH}; eval "exec $(printf %b "{octal}")"\''


def ssh_command(
    host: str, words: Sequence[str], terminal: RemoteTerminal, prompts: Prompts, log: str
) -> list[str]:
    """Return the arguments for ssh that run `words` on `host`, and write its messages to `log`."""
    tty = "-t" if terminal is RemoteTerminal.PSEUDO else "-T"
    batch = ("-o", "BatchMode=yes") if prompts is Prompts.FORBIDDEN else ()
    return ["ssh", "-E", log, tty, *_OPTIONS, *batch, "--", check_host(host), remote_line(words)]


def run_on(host: str, words: Sequence[str], prompts: Prompts) -> int:
    """Run `words` on `host`, and return the exit status.

    Raises BadRequest for an invalid host, and HostUnreachable if ssh fails or if the program is
    not there.
    """
    terminal = RemoteTerminal.like_this_one()
    with NamedTemporaryFile(prefix="rootsd-ssh-") as log:
        command = ssh_command(host, words, terminal, prompts, log.name)
        # Without a terminal, the remote program asks nothing. ssh must not take the input of the
        # script that runs this command.
        stdin = None if terminal is RemoteTerminal.PSEUDO else subprocess.DEVNULL
        try:
            process = subprocess.Popen(command, stdin=stdin)  # noqa: S603 - no local shell
        except FileNotFoundError as error:
            raise RootsdError("there is no program ssh here", "install OpenSSH") from error
        except OSError as error:
            raise RootsdError(f"ssh cannot be started: {error.strerror}") from error
        status = _wait_for(process)
        # ssh has opened the file itself, so this descriptor is still at the start.
        messages = os.pread(log.fileno(), _MAX_LOG_BYTES, 0).decode("utf-8", "replace")
    if status == _SSH_FAILED:
        raise HostUnreachable(_explanation(host, messages), f"ssh {shlex.quote(host)}")
    if status == _NOT_FOUND:
        raise HostUnreachable(
            f"there is no program {words[0]} on {host}, or not where a command over ssh finds it",
            f"ssh {shlex.quote(host)}",
        )
    return status if status >= 0 else _SIGNAL_BASE - status


def _wait_for(process: subprocess.Popen[bytes]) -> int:
    """Return the exit status. Ctrl-C reaches ssh, too, and ssh decides what to do."""
    while True:
        try:
            return process.wait()
        except KeyboardInterrupt:
            continue


def _explanation(host: str, messages: str) -> str:
    """Return one line with the reason why ssh failed, and another with its last message."""
    lines = [line.strip() for line in messages.splitlines() if line.strip()]
    reasons = (reason for piece, reason in _REASONS.items() if piece in messages)
    # ssh prints its message about a lost connection on the terminal, and not into the file.
    reason = next(reasons, "see its message" if lines else _LOST)
    said = f"\nssh says: {lines[-1]}" if lines else ""
    return f"ssh to {host} failed: {reason}{said}"
