"""The parts of daily work that lie outside the wall: keys, agents, docker, and stored passwords.

A program inside meets them when it pushes, signs, or starts a container. Each part is closed by
default, and one option opens it. Where a part is closed, the start names the option. Programs that
let a file or a variable choose their message get a *hint*: inside, ssh, gpg, and docker
name the option themselves when they fail.

This looks at the disk and changes nothing.
"""

from __future__ import annotations

import os
import shlex
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import suppress
from itertools import chain
from types import MappingProxyType
from typing import NamedTuple

import rootsd
from rootsd.core.errors import RootsdError
from rootsd.core.mount_plan import ViewEntry, ViewEntryKind
from rootsd.core.paths import contains
from rootsd.core.wall import PushPolicy
from rootsd.places.runtime_dir import home_folder
from rootsd.wall.session.options import Opening
from rootsd.wall.session.push_relay import socket_inside
from rootsd.wall.view.default_view import entry_for
from rootsd.wall.view.program_folder import program_folder

_SSH_FILES = ("config", "config.d", "known_hosts", "known_hosts2", "allowed_signers")
_GPG_FILES = ("gpg.conf", "common.conf", "pubring.kbx", "pubring.gpg", "public-keys.d")
_TRUST = b"trustdb.gpg"
_MAX_TRUST_BYTES = 1 << 20
_FULL_AGENT, _LIMITED_AGENT = b"S.gpg-agent", b"S.gpg-agent.extra"
_KEY_STORE = b"S.keyboxd"
_DOCKER_SOCKET = b"/var/run/docker.sock"
_UNIX = b"unix://"
_DOCKER_HINT = b"unix:///outside-the-wall/try:rootsd-confine--docker"
_GPG_HINT = b"agent-program /outside-the-wall/try:rootsd-confine--gpg\n"
# ssh runs the command, which prints, and takes no more settings from here.
_SSH_HINT = b"""\
Match exec "test -S /$SSH_AUTH_SOCK || echo 'rootsd: your ssh keys and known hosts are outside \
the wall; try: rootsd confine --ssh-agent' >&2; false"
"""
_Z_BASE_32 = b"ybndrfg8ejkmcpqxot1uwisza345h769"
_HASHED_BYTES = 15  # of SHA-1, as GnuPG takes them: 24 letters


class DailyWork(NamedTuple):
    """What the view has for daily work, or for one part of it, and what it lacks.

    `hints` are entries that any other entry may replace. `closed` names what the user has and the
    program has not, each with the option that opens it.
    """

    entries: tuple[ViewEntry, ...] = ()
    hints: tuple[ViewEntry, ...] = ()
    variables: Mapping[bytes, bytes] = MappingProxyType({})
    stays_open: tuple[str, ...] = ()
    closed: tuple[str, ...] = ()


def _no_place(_home: bytes) -> bytes:
    return b""


class _Part(NamedTuple):
    """A part. A person can also show its `place` by name, if it has one."""

    flag: Opening
    name: str
    is_outside: Callable[[bytes], bool]
    open: Callable[[bytes], DailyWork]
    hint: Callable[[bytes], DailyWork]
    place: Callable[[bytes], bytes] = _no_place


# Files below the home folder in which git and other programs store passwords.
_STORED = {
    ".git-credentials": "passwords of git",
    ".config/git/credentials": "passwords of git",
    ".netrc": "passwords of git and curl",
}


def daily_work(
    flags: frozenset[Opening],
    home: bytes,
    named: Iterable[bytes],
    push: PushPolicy = PushPolicy.OFF,
) -> DailyWork:
    """Return the parts that `flags` open, hints for the others, and the names of these.

    `named` are the paths that a person shows by themselves. `push` says what git may do at the
    origins of the roots. Raises RootsdError if a part that a flag names is not there.
    """
    parts: list[DailyWork] = []
    closed: list[str] = []
    shown = tuple(named)
    beyond = "" if push is PushPolicy.OFF else ", except at the origins of the roots"
    for part in _PARTS:
        if part.flag in flags:
            parts.append(part.open(home))
        elif part.is_outside(home) and not _is_in(shown, part.place(home)):
            parts.append(part.hint(home))
            which = beyond if part.flag is Opening.SSH_AGENT else ""
            closed.append(f"{part.name}{which} ({part.flag.value})")
    has_passwords = Opening.GH in flags
    for file, name in _STORED.items():
        path = home + b"/" + file.encode()
        if _is_in(shown, path):
            has_passwords = True
        elif os.path.exists(path):
            closed.append(f"{name}{beyond} (--read ~/{file})")
    if push is not PushPolicy.OFF:
        parts.append(_push(flags, push, has_passwords=has_passwords))
    return DailyWork(
        tuple(chain.from_iterable(part.entries for part in parts)),
        tuple(chain.from_iterable(part.hints for part in parts)),
        {name: value for part in parts for name, value in part.variables.items()},
        tuple(chain.from_iterable(part.stays_open for part in parts)),
        tuple(closed),
    )


def _is_in(shown: Iterable[bytes], path: bytes) -> bool:
    return bool(path) and os.path.exists(path) and any(contains(each, path) for each in shown)


def _push(flags: frozenset[Opening], push: PushPolicy, *, has_passwords: bool) -> DailyWork:
    """Let git inside start the relay's client in place of ssh, and to get a password.

    The helpers of the person's own settings cannot work inside, except if the person shows what
    they read.
    """
    script = os.path.join(os.path.dirname(rootsd.__file__), "wall", "session", "git_inside.py")
    client = shlex.join((sys.executable, "-I", "-S", script, os.fsdecode(socket_inside())))
    helpers = [f"!{client} credential"] if has_passwords else ["", f"!{client} credential"]
    first = int(os.environ.get("GIT_CONFIG_COUNT") or 0)
    variables = {"GIT_CONFIG_COUNT": f"{first + len(helpers)}"}
    for number, helper in enumerate(helpers, first):
        variables[f"GIT_CONFIG_KEY_{number}"] = "credential.helper"
        variables[f"GIT_CONFIG_VALUE_{number}"] = helper
    asks = "" if push is PushPolicy.ALLOW else " after a question"
    sentence = f"with your passwords and tokens{asks} (--push off forbids it)"
    if Opening.SSH_AGENT not in flags:
        variables |= {"GIT_SSH_COMMAND": f"{client} ssh", "GIT_SSH_VARIANT": "ssh"}
        sentence = f"with your ssh keys, and {sentence}"
    encoded = {os.fsencode(name): os.fsencode(text) for name, text in variables.items()}
    return DailyWork(
        variables=encoded, stays_open=(f"git reaches the origins of the roots {sentence}",)
    )


def explain_missing(program: str) -> RootsdError:
    """Return the error for a program that is not found inside, with the option that shows it."""
    import shutil  # noqa: PLC0415 - only a program that is not found needs it

    found = shutil.which(program)
    if found is None:
        return RootsdError(f"{program} is not installed", f"command -v {program}")
    folder = program_folder(os.path.abspath(found), os.fsdecode(home_folder()))
    return RootsdError(
        f"{program} or its interpreter is outside the wall: {found}",
        f"--read {shlex.quote(folder)}",
    )


def _has_ssh(home: bytes) -> bool:
    return os.path.isdir(home + b"/.ssh") or os.path.exists(os.environb.get(b"SSH_AUTH_SOCK", b""))


def _open_ssh(home: bytes) -> DailyWork:
    socket = os.environb.get(b"SSH_AUTH_SOCK", b"")
    if not os.path.exists(socket):
        raise RootsdError("--ssh-agent: SSH_AUTH_SOCK names no socket", "eval $(ssh-agent)")
    folder = home + b"/.ssh/"
    names = [name.encode() for name in _SSH_FILES]
    with suppress(OSError):
        # A public key tells ssh and git which key of the agent to use.
        names += sorted(name for name in os.listdir(folder) if name.endswith(b".pub"))
    # A link on the way to the socket need not exist inside.
    real = os.path.realpath(socket)
    entries = (
        ViewEntry(real, ViewEntryKind.SOCKET, "--ssh-agent"),
        *_existing((folder + name for name in names), "--ssh-agent"),
    )
    sentence = "--ssh-agent: the program can use your ssh keys while it runs"
    return DailyWork(entries, (), {b"SSH_AUTH_SOCK": real}, (sentence,))


def _hint_ssh(home: bytes) -> DailyWork:
    return DailyWork(hints=(_hint_file(home + b"/.ssh/config", _SSH_HINT),))


def _gpg_home(home: bytes) -> bytes:
    return os.environb.get(b"GNUPGHOME") or home + b"/.gnupg"


def _has_gpg(home: bytes) -> bool:
    return os.path.isdir(_gpg_home(home) + b"/private-keys-v1.d")


def _open_gpg(home: bytes) -> DailyWork:
    """Show the agent where gpg looks for it inside, and the public keys.

    The agent's limited socket signs and decrypts, but exports and deletes no key.
    """
    folder = _gpg_home(home)
    inside = _gpg_socket_folder(home)
    places = (inside, folder)
    agent = _first_existing(_LIMITED_AGENT, places) or _first_existing(_FULL_AGENT, places)
    if agent is None:
        raise RootsdError("--gpg: there is no gpg-agent", "gpgconf --launch gpg-agent")
    sockets = [ViewEntry(inside + b"/" + _FULL_AGENT, ViewEntryKind.SOCKET, "--gpg", agent)]
    if (store := _first_existing(_KEY_STORE, places)) is not None:
        sockets.append(ViewEntry(inside + b"/" + _KEY_STORE, ViewEntryKind.SOCKET, "--gpg", store))
    entries = [
        *sockets,
        *_existing((folder + b"/" + name.encode() for name in _GPG_FILES), "--gpg"),
    ]
    with suppress(OSError), open(folder + b"/" + _TRUST, "rb") as file:
        # gpg fails if it cannot write this one.
        trust = file.read(_MAX_TRUST_BYTES)
        entries.append(_private_file(folder + b"/" + _TRUST, trust, "--gpg"))
    does = "sign and decrypt with your keys"
    if agent.endswith(_FULL_AGENT):
        does = "use, export, and delete your keys"
    sentence = f"--gpg: the program can {does} while it runs"
    return DailyWork(tuple(entries), stays_open=(sentence,))


def _hint_gpg(home: bytes) -> DailyWork:
    return DailyWork(hints=(_hint_file(_gpg_home(home) + b"/gpg.conf", _GPG_HINT),))


def _gpg_socket_folder(home: bytes) -> bytes:
    """Return the folder of gpg's sockets inside, where /run/user/UID always exists.

    A home folder of gpg that is not the usual one has a folder named after its hash. Source:
    common/homedir.c in GnuPG.
    """
    folder = b"/run/user/%d/gnupg" % os.geteuid()
    own = os.path.abspath(_gpg_home(home))
    if own == home + b"/.gnupg":
        return folder

    import hashlib  # noqa: PLC0415  # it loads OpenSSL, and hardly any start needs it

    number = int.from_bytes(hashlib.sha1(own, usedforsecurity=False).digest()[:_HASHED_BYTES])
    letters = range(_HASHED_BYTES * 8 - 5, -1, -5)
    return folder + b"/d." + bytes(_Z_BASE_32[number >> shift & 31] for shift in letters)


def _gh_logins(home: bytes) -> bytes:
    folder = os.environb.get(b"GH_CONFIG_DIR") or home + b"/.config/gh"
    return folder + b"/hosts.yml"


def _has_gh(home: bytes) -> bool:
    return os.path.exists(_gh_logins(home))


def _open_gh(home: bytes) -> DailyWork:
    if not _has_gh(home):
        raise RootsdError("--gh: gh has no login", "gh auth login")
    folder = os.path.dirname(_gh_logins(home))
    sentence = "--gh: the program has your token of gh, and all that the token can do"
    return DailyWork((ViewEntry(folder, ViewEntryKind.READ, "--gh"),), stays_open=(sentence,))


def _has_docker(home: bytes) -> bool:
    return _docker_socket(home) is not None


def _open_docker(home: bytes) -> DailyWork:
    socket = _docker_socket(home)
    if socket is None:
        raise RootsdError("--docker: there is no socket of docker", "docker info")
    entry = ViewEntry(socket, ViewEntryKind.SOCKET, "--docker")
    sentence = "--docker: a container can read and change every file of this machine"
    return DailyWork((entry,), (), {b"DOCKER_HOST": _UNIX + socket}, (sentence,))


def _hint_docker(_home: bytes) -> DailyWork:
    return DailyWork(variables={b"DOCKER_HOST": _DOCKER_HINT})


def _docker_socket(home: bytes) -> bytes | None:
    host = os.environb.get(b"DOCKER_HOST", b"")
    if host:
        paths = [host.removeprefix(_UNIX)] if host.startswith(_UNIX) else []
    else:
        runtime = b"/run/user/%d/docker.sock" % os.geteuid()
        paths = [_DOCKER_SOCKET, runtime, home + b"/.docker/run/docker.sock"]
    return next((os.path.realpath(path) for path in paths if os.path.exists(path)), None)


def _first_existing(name: bytes, folders: Iterable[bytes]) -> bytes | None:
    paths = (folder + b"/" + name for folder in folders)
    return next((os.path.realpath(path) for path in paths if os.path.exists(path)), None)


def _hint_file(path: bytes, content: bytes) -> ViewEntry:
    return _private_file(path, content, "a hint: it names an option")


def _private_file(path: bytes, content: bytes, reason: str) -> ViewEntry:
    return ViewEntry(path, ViewEntryKind.PRIVATE_FILE, reason, content=content)


def _existing(paths: Iterable[bytes], reason: str) -> Iterator[ViewEntry]:
    for path in paths:
        yield from entry_for(path, ViewEntryKind.READ, reason)


_PARTS = (
    _Part(Opening.SSH_AGENT, "ssh keys", _has_ssh, _open_ssh, _hint_ssh),
    _Part(Opening.GPG, "gpg keys", _has_gpg, _open_gpg, _hint_gpg),
    _Part(Opening.GH, "the token of gh", _has_gh, _open_gh, lambda _: DailyWork(), _gh_logins),
    _Part(Opening.DOCKER, "docker", _has_docker, _open_docker, _hint_docker),
)
