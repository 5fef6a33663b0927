"""Find the files that git outside runs or reads because its settings and hooks name them.

`named_by_git` asks git for its settings: only git knows what `includeIf` adds, and what the
settings of the user and the system are. It runs `git config --list`, which runs nothing that the
settings name. It takes git from a folder of the system, so never one from a root, and gives it no
variable that changes what it reads in a repository. An answer is kept until a file changes that
it came from.

Git may be missing, refuse the settings, or wait for a FIFO. Then the files of the repository are
read here, without what they include, and the answer says that it is not complete.

A command is a text for a shell. So each word in it that could be a path counts, also in quotes or
behind a variable. What those programs read or run themselves is not found.
"""

from __future__ import annotations

import os
import re
import shlex
from collections.abc import Iterable, Iterator
from contextlib import suppress
from typing import NamedTuple

from rootsd.core.paths import ancestors, contains
from rootsd.core.record import Text
from rootsd.disk.git_pointer import GIT
from rootsd.disk.git_settings import is_program, read_settings, worktree_setting
from rootsd.disk.links import final_path
from rootsd.disk.reader import CONFIG_CAP, read_small
from rootsd.wall.git.entries import git_directories_below, is_git_directory
from rootsd.wall.git.index import common_directory_of, own_directory
from rootsd.wall.git.system_git import GitSetting, ask_git, settings_in
from rootsd.wall.system_calls import closing, open_path

_QUESTION = ("config", "--list", "--includes", "--show-origin", "-z")
_VARIABLES = ("HOME", "XDG_CONFIG_HOME", "GIT_CONFIG_GLOBAL", "GIT_CONFIG_SYSTEM")
# The last names of settings that are one path: of hooks, of attributes, and of templates of hooks.
_PATHS = frozenset(("hookspath", "path", "attributesfile", "templatedir"))
_FOLDERS_OF_HOOKS = frozenset(("core.hookspath", "init.templatedir"))
_HOOKS = b"/hooks"
HOOK_NAMES = b"""
    applypatch-msg pre-applypatch post-applypatch pre-commit pre-merge-commit prepare-commit-msg
    commit-msg post-commit pre-rebase post-checkout post-merge pre-push pre-receive update
    proc-receive post-receive post-update reference-transaction push-to-checkout pre-auto-gc
    post-rewrite sendemail-validate fsmonitor-watchman post-index-change
""".split()
"""The hooks of git; see githooks(5)."""
_IN_A_WORD = re.compile(rb"""[\s'"`;&|()<>=,:]+""")
_PROGRAM = re.compile(rb"(^|[;&|({])\s*(?:git\s+)?[\w.+-]+(?![^\s;&|)}])")
_VARIABLE = re.compile(rb"\$\{?\w+\}?")
# What git itself replaces. A word such as HEAD or refs/heads/main hardly means the file.
_CHANGED = re.compile(
    rb"(refs|logs|objects|worktrees)/|[A-Z_]*HEAD$|[A-Z_]+MSG$|(index|packed-refs)$"
)
_MAX_HOOKS, _MAX_LINKS, _MAX_NAMES = 256, 8, 4096


class NamedFiles(NamedTuple):
    """Absolute paths that git outside runs or reads, whether they exist or not.

    `paths` are files or folders, and `words` count only if they are no folders. `checkouts` are
    the work trees of submodules whose settings were asked for, too. `is_complete` is false if git
    did not answer.
    """

    paths: tuple[Text, ...] = ()
    words: tuple[Text, ...] = ()
    checkouts: tuple[Text, ...] = ()
    is_complete: bool = True


class _Repository(NamedTuple):
    """A git directory, the one from which it takes its settings, and its work tree."""

    own: bytes
    common: bytes
    tree: bytes

    @property
    def files(self) -> tuple[bytes, ...]:
        """The files of its own settings."""
        return (self.common + b"/config", self.own + b"/config.worktree")

    def changes(self, path: bytes) -> bool:
        """Return whether git itself replaces this file, so it has to stay writable."""
        folders = (folder for folder in (self.own, self.common) if contains(folder, path))
        return any(_CHANGED.match(path[len(folder) + 1 :]) for folder in folders)


class _Answer(NamedTuple):
    """The settings, and the state of the files from which they came."""

    settings: tuple[GitSetting, ...]
    is_complete: bool
    came_from: dict[bytes, tuple[int, ...] | None]


_answers: dict[bytes, _Answer] = {}  # by git directory
_known: dict[bytes, NamedFiles] = {}  # by root


def named_by_git(place: bytes) -> NamedFiles:
    """Return what git's settings and hooks name, for the root at `place` and its submodules.

    What the settings of other roots name in this one is added, for those that were asked for
    before.
    """
    own = _own_names(place)
    _known[place] = own
    others = [each for root, each in _known.items() if root != place]
    return own._replace(
        paths=_with(place, own.paths, (each.paths for each in others)),
        words=_with(place, own.words, (each.words for each in others)),
    )


def names_some_in(place: bytes, other: bytes) -> bool:
    """Return whether what was found for the root at `place` names another root or a part of it."""
    names = _known.get(place, NamedFiles())
    return any(contains(other, path) for path in (*names.paths, *names.words))


def _with(
    place: bytes, own: tuple[bytes, ...], others: Iterable[tuple[bytes, ...]]
) -> tuple[bytes, ...]:
    """Return paths with those of other roots that lie in the root at `place`."""
    inside = {path for paths in others for path in paths if contains(place, path)}
    return (*own, *sorted(inside.difference(own)))


def _own_names(place: bytes) -> NamedFiles:
    main = _repository_at(place)
    answer = _answer_for(main)
    is_complete = answer.is_complete
    found = _Names()
    found.add(main, answer.settings)
    of_user = [each for each in answer.settings if each.file not in main.files]
    depends = any(each.key.startswith("includeif.") for each in of_user)
    checkouts = []
    for inner in _submodules(main):
        own = _read_own(inner)
        settings: Iterable[GitSetting] = (*own, *of_user)
        if depends or any(is_program(each.key) for each in own):
            answer = _answer_for(inner)
            settings, is_complete = answer.settings, is_complete and answer.is_complete
        if found.add(inner, settings):
            checkouts.append(inner.tree)
    is_complete = is_complete or not os.path.exists(main.own)
    return NamedFiles(*found.sorted(), tuple(checkouts), is_complete)


def named_by_own_settings(place: bytes) -> NamedFiles:
    """Return what the own settings of a repository name, without what they include."""
    found = _Names()
    main = _repository_at(place)
    found.add(main, _read_own(main))
    return NamedFiles(*found.sorted())


class _Names:
    """Collects the paths that settings and hooks name."""

    def __init__(self) -> None:
        self._paths = dict[bytes, None]()
        self._words = dict[bytes, None]()

    def sorted(self) -> tuple[tuple[bytes, ...], tuple[bytes, ...]]:
        """Return the paths and the words."""
        first = (tuple(sorted(each)[:_MAX_NAMES]) for each in (self._paths, self._words))
        return next(first), next(first)

    def add(self, where: _Repository, settings: Iterable[GitSetting]) -> bool:
        """Add what the settings and the hooks of a repository name.

        Return whether something of that is in its work tree now.
        """
        paths, words = dict[bytes, None](), dict[bytes, None]()
        folders = [where.common + _HOOKS]
        for file, key, value, _ in settings:
            above = (where.tree, where.own)
            if key.startswith("include"):
                paths.update(dict.fromkeys(_full_paths((os.path.dirname(file),), value)))
            elif key.rpartition(".")[2] in _PATHS:
                found = [*_full_paths(above, value.removeprefix(b":(optional)"))]
                paths.update(dict.fromkeys(found))
                if key in _FOLDERS_OF_HOOKS:
                    inner = b"" if key == "core.hookspath" else _HOOKS
                    folders += [path + inner for path in found]
            else:
                for word in _words_of(key, value):
                    words.update(
                        (path, None)
                        for path in _full_paths((where.tree,), word)
                        if ((is_program(key) and b"/" in word) or os.path.lexists(path))
                        and not where.changes(path)
                    )
        for folder in folders:
            paths.update(dict.fromkeys(_linked_from(folder)))
        self._paths.update(paths)
        self._words.update(words)
        inside = (path for path in (*paths, *words) if is_inside(where.tree, path))
        return any(os.path.lexists(path) for path in inside)


def _words_of(key: str, value: bytes) -> Iterator[bytes]:
    """Yield the words in the value of a setting that may be paths.

    A word without a slash is a path only in a command, and neither a program nor a verb of git.
    """
    is_command = is_program(key) and (not key.startswith("alias.") or value.startswith(b"!"))
    value = value.removeprefix(b"!")
    value = _PROGRAM.sub(rb"\1", value) if is_command else value
    parts = {value, *_IN_A_WORD.split(value)}
    waiting = [os.fsdecode(value)]
    while waiting:
        try:
            words = shlex.split(waiting.pop())
        except ValueError:
            continue
        parts.update(map(os.fsencode, words))
        waiting += [word for word in words if any(each.isspace() for each in word) and words[1:]]
    for word in parts:
        if b"/" in word or (is_command and word):
            yield word


def _full_paths(above: Iterable[bytes], path: bytes) -> Iterator[bytes]:
    """Yield the absolute paths that a path in a setting may mean, below these folders."""
    home = os.fsencode(os.environ.get("HOME", "~"))
    path = re.sub(rb"^\$(HOME\b|\{HOME\})", lambda _: home, path.split(b"\0")[0])
    path = os.path.expanduser(path)
    if path.startswith(b"/"):
        yield from {os.path.normpath(path), final_path(os.path.normpath(path))}
    path = _VARIABLE.sub(b"", path, count=1).lstrip(b"/")  # such as $PWD/tools/hook
    for folder in above if path else ():
        full = os.path.normpath(folder + b"/" + path)
        yield from {full, final_path(full)}


def _linked_from(folder: bytes) -> Iterator[bytes]:
    """Yield where a folder of hooks and the hooks in it lead, and all links on the way."""
    if final_path(folder) != folder:
        yield final_path(folder)
    with suppress(OSError), os.scandir(folder) as entries:
        for number, entry in enumerate(entries):
            if number == _MAX_HOOKS:
                return
            path = entry.path
            for _ in range(_MAX_LINKS):
                try:
                    path = os.path.normpath(os.path.join(os.path.dirname(path), os.readlink(path)))
                except OSError:
                    break
                yield from {path, final_path(path)}


# Git directories


def _repository_at(place: bytes) -> _Repository:
    """Return the repository of a root, or around it; one that does not exist if there is none."""
    with suppress(OSError), closing(open_path(place, os.O_DIRECTORY)) as root:
        if is_git_directory(root):
            return _Repository(place, common_directory_of(place), place)
    for tree in (place, *ancestors(place)):
        if (own := own_directory(tree)) is not None:
            return _Repository(own, common_directory_of(own), tree)
    return _Repository(place + b"/" + GIT, place + b"/" + GIT, place)


def _submodules(main: _Repository) -> Iterator[_Repository]:
    """Yield the repositories of submodules, which may have submodules themselves."""
    waiting = [main]
    while waiting:
        above = waiting.pop().common
        with suppress(OSError), closing(open_path(above, os.O_DIRECTORY)) as top:
            for folder in git_directories_below(top, b"modules"):
                own = above + b"/" + folder
                tree = worktree_setting(read_small(own + b"/config", CONFIG_CAP) or b"") or b"."
                inner = _Repository(own, own, os.path.normpath(os.path.join(own, tree)))
                waiting.append(inner)
                yield inner


# Settings


def _answer_for(where: _Repository) -> _Answer:
    known = _answers.get(where.own)
    if known is None or any(_state(file) != state for file, state in known.came_from.items()):
        known = _answers[where.own] = _ask(where)
    return known


def _ask(where: _Repository) -> _Answer:
    before = {file: _state(file) for file in where.files}  # a change meanwhile counts as later
    output = _run_git(where.own)
    if output is None:
        # A program inside cannot change these, so it cannot have git asked again and again.
        return _Answer((*_read_own(where),), is_complete=False, came_from=before)
    settings = [*settings_in(output, fields=2)]
    files = {where.own + b"/HEAD", *_files_of_user(), *(each.file for each in settings)}
    for each in settings:
        if each.key == "include.path" or each.key.startswith("includeif."):
            files.update(_full_paths((os.path.dirname(each.file),), each.value))
    after = {file: _state(file) for file in files}
    return _Answer((*settings,), is_complete=True, came_from={**after, **before})


def _run_git(git_directory: bytes) -> bytes | None:
    """Return what git answers about the settings of a git directory, or None."""
    variables = {each: os.environ[each] for each in _VARIABLES if each in os.environ}
    # With this variable, git does not care who owns the directory.
    return ask_git(_QUESTION, {**variables, "GIT_DIR": os.fsdecode(git_directory)})


def _read_own(where: _Repository) -> list[GitSetting]:
    """Return the settings in the files of a repository, without what they include."""
    return [
        GitSetting(file, key, value)
        for file in where.files
        for key, value in read_settings(read_small(final_path(file), CONFIG_CAP) or b"")
    ]


def _files_of_user() -> Iterator[bytes]:
    home = os.fsencode(os.environ.get("HOME", "/"))
    folder = os.fsencode(os.environ.get("XDG_CONFIG_HOME") or "")
    yield from (home + b"/.gitconfig", (folder or home + b"/.config") + b"/git/config")
    yield b"/etc/gitconfig"


def _state(file: bytes) -> tuple[int, ...] | None:
    """Return what changes with the content of a file; None if there is none."""
    try:
        found = os.stat(file)
    except (OSError, ValueError):
        return None
    return found.st_dev, found.st_ino, found.st_size, found.st_ctime_ns


def is_inside(place: bytes, path: bytes) -> bool:
    """Return whether a named path lies in a root, and is neither the root nor its `.git`."""
    return contains(place, path) and path not in (place, place + b"/" + GIT)
