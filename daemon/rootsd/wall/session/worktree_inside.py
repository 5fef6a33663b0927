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
from collections.abc import Iterator, Sequence
from contextlib import suppress

_MADE, _DONE = b"made", b"done"
_MAY_REMOVE, _REMOVE = b"may remove ", b"remove "
_MAX_ANSWER = 1 << 16
_TIMEOUT_S = 15.0
_GITLINK = b"160000"
_WITH_VALUE = ("-C", "-c", "--git-dir", "--work-tree")
_ALONE = ("--git-dir=", "--work-tree=", "--no-pager", "-P", "--no-optional-locks")


def main(address: str, *words: str) -> int:
    """Run git, and return its exit status."""
    before, folder, verb, after = _parts(words)
    if verb == "remove" and (removed := _root_to_remove(before, folder, after)) is not None:
        return _remove(address, *removed)
    made: list[tuple[socket.socket, bytes]] = []
    refused: list[tuple[socket.socket, bytes]] = []
    for path in _new_folders(folder, after) if verb == "add" else ():
        client = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        answer = _ask(client, address, path)
        (made if answer == _MADE else refused).append((client, answer))
    if not made and not refused:
        os.execvp("git", ["git", *words])  # noqa: S606, S607 - the caller's own
    pid = os.spawnvp(os.P_NOWAIT, "git", ["git", *words])  # noqa: S606
    signal.signal(signal.SIGTERM, lambda number, _: os.kill(pid, number))
    status = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
    if status and not made:
        _say(*(answer for _, answer in refused))
    for client, _ in made:
        with suppress(OSError):
            client.send(_DONE)
            _say(client.recv(_MAX_ANSWER))
    return status if status >= 0 else 128 - status


def _parts(words: Sequence[str]) -> tuple[Sequence[str], bytes, str, Sequence[str]]:
    """Return the words before `worktree VERB`, the folder where git runs it, VERB, and the rest.

    VERB is empty if this is another command, or has options in front that are not known here.
    """
    folder, at = b".", 0
    words = (*words, "", "")  # an option may lack its value
    while words[at] != "worktree":
        if words[at] == "-C":
            folder = os.path.join(folder, os.fsencode(words[at + 1]))
        if words[at] in _WITH_VALUE:
            at += 2
        elif words[at].startswith(_ALONE):
            at += 1
        else:
            break
    else:
        with suppress(OSError):  # the folder is gone, and git says so
            return words[:at], os.path.realpath(folder), words[at + 1], words[at + 2 : -2]
    return (), b"", "", ()


def _new_folders(folder: bytes, words: Sequence[str]) -> Iterator[bytes]:
    """Yield the words that are paths of new folders, where nobody inside can make one."""
    for word in words:
        path = os.path.abspath(os.path.join(folder, os.fsencode(word)))
        above = os.path.dirname(path)
        is_new = not os.path.lexists(path) and os.path.isdir(above)
        if not word.startswith("-") and is_new and not os.access(above, os.W_OK):
            yield path


def _root_to_remove(
    before: Sequence[str], folder: bytes, words: Sequence[str]
) -> tuple[bytes, bytes] | None:
    """Return the worktree that git would remove now, and the main one, if the former is a root.

    Git itself says what is wrong with any other command, and stops then.
    """
    name, force = _name_and_force(words)
    if not name:
        return None
    listing = _output_of(*before, "worktree", "list", "--porcelain").split(b"\n\n")
    listed = {
        lines[0].partition(b" ")[2]: lines for lines in (each.split(b"\n") for each in listing)
    }
    ends = [each for each in listed if (b"/" + each).endswith(b"/" + name)]
    path = ends[0] if len(ends) == 1 else os.path.realpath(os.path.join(folder, name))
    main, *others = listed
    if path not in others or not os.path.ismount(path):
        return None
    is_locked = any(line.split(b" ")[0] == b"locked" for line in listed[path])
    if force < is_locked * 2 or not (force or _is_clean(before, path)):
        return None
    return path, main


def _name_and_force(words: Sequence[str]) -> tuple[bytes, int]:
    """Return the one name after `git worktree remove`, and how often it has `--force`.

    The name is empty if there is no such name, or git would stop at an option.
    """
    names, force = list[str](), 0
    for at, word in enumerate(words):
        if word == "--":
            names += words[at + 1 :]
            break
        if word == "-" or not word.startswith("-"):
            names.append(word)
        elif word == "--no-force":
            force = 0
        elif "--force".startswith(word):
            force += 1
        elif word.rstrip("f") == "-":
            force += len(word) - 1
        else:
            return b"", 0
    return os.fsencode(names[0]) if len(names) == 1 else b"", force


def _is_clean(before: Sequence[str], worktree: bytes) -> bool:
    """Return whether git with the options `before` removes a worktree without `--force`."""
    own = (b"--git-dir=" + worktree + b"/.git", b"--work-tree=" + worktree)

    def ask(*words: str) -> bytes:
        return _output_of(*before, "-C", worktree, *own, *words)

    modules = ask("rev-parse", "--path-format=absolute", "--git-path", "modules").rstrip(b"\n")
    return (
        bool(modules)
        and not os.path.isdir(modules)
        and not any(line.startswith(_GITLINK) for line in ask("ls-files", "-s").splitlines())
        and not ask("status", "--porcelain", "--ignore-submodules=none")
    )


def _output_of(*words: str | bytes) -> bytes:
    """Return what git prints, or a question mark if it fails."""
    read, write = os.pipe()
    actions = (
        (os.POSIX_SPAWN_DUP2, write, 1),
        (os.POSIX_SPAWN_OPEN, 2, os.devnull, os.O_WRONLY, 0),
    )
    pid = os.posix_spawnp("git", ("git", *words), os.environb, file_actions=actions)
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


def _say(*answers: bytes) -> None:
    for answer in filter(None, answers):
        os.write(2, b"rootsd: " + answer + b"\n")


if __name__ == "__main__":
    if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
        signal.signal(signal.SIGINT, signal.SIG_DFL)  # as git itself, and what it starts
    try:
        sys.exit(main(*sys.argv[1:]))
    except FileNotFoundError:
        _say(b"git was not found")
        sys.exit(127)
