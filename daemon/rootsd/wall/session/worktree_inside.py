"""What `git worktree add` and `remove` are inside, for worktrees beside their checkout.

    python -I -S worktree_inside.py SOCKET [WORD]...

This asks the warden for a new folder (`kernel.new_worktrees`), and then runs git with the same
words. Git cannot remove a root: it would fail, maybe after it has deleted a part. So this does
that together with the warden (`kernel.worktree_removal`). Without `--worktrees`, there is no
socket. This loads nothing of rootsd.
"""

import os
import signal
import socket
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from itertools import pairwise

_MADE, _DONE = b"made", b"done"
_MAY_REMOVE, _REMOVE = b"may remove ", b"remove "
_MAX_ANSWER = 1 << 16
_TIMEOUT_S = 15.0
_GITLINK = b"160000"


def main(address: str, *words: str) -> int:
    """Run git, and return its exit status."""
    if (removed := _root_to_remove(words)) is not None:
        return _remove(address, *removed)
    made: list[tuple[socket.socket, bytes]] = []
    refused: list[tuple[socket.socket, bytes]] = []
    for path in _new_folders(words):
        client = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        answer = _ask(client, address, path)
        (made if answer == _MADE else refused).append((client, answer))
    status = os.spawnvp(os.P_WAIT, "git", ["git", *words])  # noqa: S606 - the caller's own
    if status and not made:
        _say(*(answer for _, answer in refused))
    for client, _ in made:
        with suppress(OSError):
            client.send(_DONE)
            _say(client.recv(_MAX_ANSWER))
    return status if status >= 0 else 128 - status


def _new_folders(words: Sequence[str]) -> Iterator[bytes]:
    """Yield the words that are paths of new folders, where nobody inside can make one."""
    for path in _paths(words, "add"):
        above = os.path.dirname(path)
        is_new = not os.path.lexists(path) and os.path.isdir(above)
        if is_new and not os.access(above, os.W_OK):
            yield path


def _root_to_remove(words: Sequence[str]) -> tuple[bytes, bytes] | None:
    """Return the worktree that git would remove now, and the main one, if the former is a root.

    Git itself says what is wrong with any other command, and stops then.
    """
    named = [*_paths(words, "remove")]
    if len(named) != 1:
        return None
    at = [*pairwise(words)].index(("worktree", "remove"))
    name, *_ = (os.fsencode(each) for each in words[at + 2 :] if not each.startswith("-"))
    listing = _output_of(*words[:at], "worktree", "list", "--porcelain").split(b"\n\n")
    listed = {
        lines[0].partition(b" ")[2]: lines for lines in map(bytes.splitlines, listing) if lines
    }
    ends = [each for each in listed if (b"/" + each).endswith(b"/" + name)]
    path = ends[0] if len(ends) == 1 else os.path.realpath(named[0])
    main, *others = listed or [b""]
    if path not in others or not os.path.ismount(path):
        return None
    flags = [each for each in words[at + 2 :] if each.startswith("-")]
    force = sum(1 if each.startswith("--f") else each.count("f") for each in flags)
    is_locked = any(line.split(b" ")[0] == b"locked" for line in listed[path])
    if force < is_locked * 2 or not (force or _is_clean(path)):
        return None
    return path, main


def _is_clean(worktree: bytes) -> bool:
    """Return whether git removes a worktree without `--force`."""
    own = {b"GIT_DIR": worktree + b"/.git", b"GIT_WORK_TREE": worktree}

    def ask(*words: str) -> bytes:
        return _output_of("-C", worktree, *words, env={**os.environb, **own})

    modules = ask("rev-parse", "--path-format=absolute", "--git-path", "modules").rstrip(b"\n")
    return (
        bool(modules)
        and not os.path.isdir(modules)
        and not any(line.startswith(_GITLINK) for line in ask("ls-files", "-s").splitlines())
        and not ask("status", "--porcelain", "--ignore-submodules=none")
    )


def _output_of(*words: str | bytes, env: Mapping[bytes, bytes] = os.environb) -> bytes:
    """Return what git prints, or a question mark if it fails."""
    read, write = os.pipe()
    actions = (
        (os.POSIX_SPAWN_DUP2, write, 1),
        (os.POSIX_SPAWN_OPEN, 2, os.devnull, os.O_WRONLY, 0),
    )
    pid = os.posix_spawnp("git", ("git", *words), env, file_actions=actions)
    os.close(write)
    with open(read, "rb") as output:
        said = output.read()
    return b"?" if os.waitpid(pid, 0)[1] else said


def _remove(address: str, worktree: bytes, main: bytes) -> int:
    """Remove a root as git would, and return the exit status of git."""
    answer = _ask_once(address, _MAY_REMOVE + worktree)
    if answer == _DONE:
        _empty(worktree)
        answer = _ask_once(address, _REMOVE + worktree)
    if answer == _DONE:
        return 0
    import shlex  # noqa: PLC0415

    command = shlex.join(map(os.fsdecode, (b"git", b"-C", main, b"worktree", b"remove", worktree)))
    _say(answer + b"; outside: " + os.fsencode(command))
    return 128


def _ask(client: socket.socket, address: str, request: bytes) -> bytes:
    """Return what the warden answers, or why there is no answer."""
    client.settimeout(_TIMEOUT_S)
    try:
        client.connect(address)
        client.send(request)
        return client.recv(_MAX_ANSWER)
    except FileNotFoundError:
        return b"worktrees beside a checkout need rootsd confine --worktrees"
    except OSError as error:
        return b"the warden does not answer: " + str(error.strerror).encode()


def _ask_once(address: str, request: bytes) -> bytes:
    with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as client:
        return _ask(client, address, request)


def _empty(folder: bytes) -> None:
    """Remove what is in a folder, as far as programs can."""
    for _, folders, files, place in os.fwalk(folder, topdown=False):
        for name in (*folders, *files):
            with suppress(OSError):
                os.unlink(name, dir_fd=place)
            with suppress(OSError):
                os.rmdir(name, dir_fd=place)


def _paths(words: Sequence[str], verb: str) -> Iterator[bytes]:
    """Yield the words of `git worktree VERB` that may be paths."""
    pairs = [*pairwise(words)]
    if ("worktree", verb) not in pairs:  # only a part of a word, as of a message
        return
    at = pairs.index(("worktree", verb)) + 2
    try:
        folder = os.getcwdb()
    except OSError:  # it is gone, and git says so
        return
    for flag, value in pairs[:at]:
        if flag == "-C":
            folder = os.path.join(folder, os.fsencode(value))
    for word in words[at:]:
        if not word.startswith("-"):
            yield os.path.abspath(os.path.join(folder, os.fsencode(word)))


def _say(*answers: bytes) -> None:
    for answer in filter(None, answers):
        os.write(2, b"rootsd: " + answer + b"\n")


if __name__ == "__main__":
    if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
        signal.signal(signal.SIGINT, signal.SIG_DFL)  # as git itself, and what it starts
    sys.exit(main(*sys.argv[1:]))
