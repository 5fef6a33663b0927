"""Fill the roots into a server's command line and environment, and name the server. Pure.

Some servers do not ask for roots. Their command can name the roots with these placeholders:

    {roots}         all roots: the word is repeated for each root; in an environment
                    variable they are joined by `:`
    {roots:SEP}     all roots, joined by SEP: one to three punctuation characters, such as `,`
    {roots:--flag}  all roots, each behind its own flag: `--flag A --flag B` (a whole word of the
                    command); `{roots:--flag=}` gives `--flag=A --flag=B`
    {root}          the first root; this is the one with the working directory, if there is one
    {root:NAME}     the root NAME

A server may also take its working directory for its workspace: those of MCP 2026-07-28 do so in
place of asking for roots. Clients start servers in `/`, in the home folder, or in a project that
nobody approved. So a server starts in its working directory only if a root contains it, and else
in the empty folder. It never starts in another root: programs such as npx and python run code that
they find in their working directory, and the client did not choose that project. A command that
names files of its working directory starts there in any case (`uses_working_directory`).

A joined value leaves out a root whose path contains the separator. The server would read two
folders there, and one of them could be any folder.

`server_name` names a server by its command. Arguments may hold secrets. So the name contains only
the program that a launcher such as npx starts, or that program's folder if its own name says
nothing (`index.js`).
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

from rootsd.core.launchers import launched_word
from rootsd.core.paths import contains, text_of
from rootsd.core.quick_tuple import NamedTuple

if TYPE_CHECKING:  # a start should not wait for the modules that it would load
    from rootsd.proxy.run.roots import RootFolder

NOT_IN_A_ROOT = b"/"
"""The working directory that stands for all that no root can contain."""

_PLACE = re.compile(r"\{roots(?::(?P<how>[^{}]*))?\}|\{root(?::(?P<name>[^{}]+))?\}")
_ALL = "{roots}"
_BETWEEN_PATHS = ":"  # as in PATH
_SEPARATOR = re.compile(r"[!\"#$%&'()*+,.:;<=>?@\[\\\]^_`|~ ]{1,3}")
_FLAG = re.compile(r"--?[A-Za-z0-9][A-Za-z0-9_.-]*=?")


class PlaceholderError(ValueError):
    """An error: a placeholder for roots cannot be used; the message says why."""


class LaunchSpec(NamedTuple):
    """The words of a command, and the variables to add to the environment.

    `folder` is the folder to start in; None for the working directory of this process.
    """

    words: tuple[str, ...]
    environment: Mapping[str, str]
    left_out: tuple[tuple[str, str], ...] = ()
    """The paths that no joined value contains, each with the separator in it."""
    folder: str | None = None
    replacements: int = 0
    """How often another folder came to the place of the session, if the command depends on it."""


class _Roots(NamedTuple):
    """The values of the placeholders. `empty_folder` replaces a root that does not exist."""

    paths: tuple[str, ...]
    known: Mapping[str, str]
    empty_folder: str
    left_out: dict[tuple[str, str], None]

    def joined(self, separator: str) -> str:
        """Return all paths joined, without those that a reader would split."""
        kept = [path for path in self.paths if _is_whole(path, separator)]
        self.left_out.update(((path, separator), None) for path in self.paths if path not in kept)
        return separator.join(kept or [self.empty_folder])

    def fill(self, text: str, every: str | None) -> str:
        """Return `text` with its placeholders replaced. `{roots}` becomes `every`, or all paths
        joined.
        """

        def path_for(place: re.Match[str]) -> str:
            if not place[0].startswith("{roots"):
                name = place["name"]
                return self.paths[0] if name is None else self.known.get(name, self.empty_folder)
            if place["how"] is None and every is not None:
                return every
            return self.joined(place["how"] or _BETWEEN_PATHS)

        return _PLACE.sub(path_for, text)


class ServerCommand:
    """A command whose words and environment variables may name roots.

    A root that does not exist becomes `empty_folder`, because a server without any folder may
    serve everything. `here` is the working directory if the server may start there only in a root,
    else None. Raises PlaceholderError.
    """

    def __init__(
        self,
        words: Sequence[str],
        environment: Iterable[tuple[str, str]],
        empty_folder: str,
        here: bytes | None = None,
    ) -> None:
        self._words = tuple(words)
        self._environment = tuple(environment)
        self._empty_folder = empty_folder
        self._start = self._here = self._place = here
        self._replacements = 0
        for word in self._words:
            _check(word, may_be_flag=_flag_of(word) is not None)
        for _, value in self._environment:
            _check(value, may_be_flag=False)
        values = [value for _, value in self._environment]
        self.names_roots = any(_PLACE.search(text) for text in (*self._words, *values))
        """Whether the words or variables depend on the roots."""

    @property
    def needs_roots(self) -> bool:
        """Whether the server cannot start before the roots are known."""
        return self.names_roots or self._here not in (None, NOT_IN_A_ROOT)

    def move_to(self, place: bytes | None) -> None:
        """Let later servers start at `place`, where the session works now.

        The same place again means that another folder is there. Servers start in it if they
        started in the working directory because that was in a root.
        """
        self._replacements += place == self._place
        self._place = place
        if self._start not in (None, NOT_IN_A_ROOT):
            self._here = place

    def launch(self, folders: Sequence[RootFolder]) -> LaunchSpec:
        """Return the command for these roots."""
        paths = tuple(folder.text for folder in folders) or (self._empty_folder,)
        known = {folder.name: folder.text for folder in folders}
        roots = _Roots(paths, known, self._empty_folder, {})
        words = tuple(word for typed in self._words for word in _expanded(typed, roots))
        environment = {name: roots.fill(value, None) for name, value in self._environment}
        return LaunchSpec(
            words,
            environment,
            tuple(roots.left_out),
            self._folder_in(folders),
            self._replacements if self.needs_roots else 0,
        )

    def _folder_in(self, folders: Sequence[RootFolder]) -> str | None:
        here = self._here
        if here is None:
            return None
        if not any(contains(folder.path, here) for folder in folders):
            return self._empty_folder
        return None if here == self._start else text_of(here)


def _expanded(word: str, roots: _Roots) -> Iterator[str]:
    """Yield the words for one typed word."""
    flag = _flag_of(word)
    for path in roots.paths if flag is not None or _ALL in word else roots.paths[:1]:
        if flag is None:
            yield roots.fill(word, path)
        elif flag.endswith("="):
            yield flag + path
        else:
            yield flag
            yield path


def _flag_of(word: str) -> str | None:
    """Return the flag of a `{roots:--flag}` word; None for all other words."""
    place = _PLACE.fullmatch(word)
    how = place["how"] if place else None
    return how if how is not None and _FLAG.fullmatch(how) else None


def _check(text: str, *, may_be_flag: bool) -> None:
    for place in _PLACE.finditer(text):
        how = place["how"]
        if how is None or may_be_flag or _SEPARATOR.fullmatch(how):
            continue
        if _FLAG.fullmatch(how):
            raise PlaceholderError(f"{place[0]!a} must be a whole argument of the server")
        raise PlaceholderError(
            f"{place[0]!a}: put a separator such as , or a flag such as --allow after the colon"
        )


def _is_whole(path: str, separator: str) -> bool:
    """Whether a split at `separator`, from either end, keeps `path` in one piece."""
    return (path + separator).find(separator) == len(path) and not (separator + path).rfind(
        separator
    )


# Programs that run what the project in their working directory says, with the verbs for that.
_PROJECT_RUNNERS = {
    "bun": {"run", "start"}, "cargo": {"run"}, "deno": {"run", "task"}, "dotnet": {"run"},
    "go": {"run"}, "hatch": {"run"}, "npm": {"run", "run-script", "start"}, "pdm": {"run"},
    "pipenv": {"run"}, "pixi": {"run"}, "pnpm": {"run", "start"}, "poetry": {"run"},
    "rye": {"run"}, "uv": {"run"}, "yarn": {"run", "start"},
}  # fmt: skip
_PROJECT_FILES = (
    "Cargo.toml", "Pipfile", "deno.json", "go.mod", "package.json", "pixi.toml", "pyproject.toml",
)  # fmt: skip


def uses_working_directory(words: Sequence[str], exists: Callable[[str], bool]) -> bool:
    """Return whether a command names files of its working directory, as `node out/index.js` does.

    `exists` says whether there is something at a path relative to it.
    """
    if any(map(exists, _relative_files(words))):
        return True
    verbs = _PROJECT_RUNNERS.get(_base(words[0]), ())
    verb = next((word for word in words[1:] if not word.startswith("-")), None)
    return verb in verbs and any(map(exists, _PROJECT_FILES))


def _relative_files(words: Sequence[str]) -> Iterator[str]:
    """Yield what may be a relative path in a command; a plain word such as `serve` is none."""
    for before, word in zip(("", *words), words, strict=False):
        value = word.partition("=")[2] if word.startswith("-") else word
        if before == "-m" and _base(words[0]).startswith("python"):
            module = value.replace(".", "/")
            yield from (f"{module}.py", f"{module}/__init__.py", f"{module}/__main__.py")
        elif not value.startswith("/") and _PLACE.search(value) is None:
            last = value.rpartition("/")[2]
            if last.strip(".") and ("/" in value or "." in last.strip(".")):
                yield value


_GENERIC_NAMES = frozenset(
    {"__main__", "cli", "index", "main", "server"}
)  # with any file extension
_BUILD_FOLDERS = frozenset({"bin", "build", "dist", "lib", "out", "src"})


def server_name(words: Sequence[str]) -> str:
    """Return the display name of the server that `words` start, such as `run: mcp-server-git`."""
    return f"run: {program_name(words)}"


def program_name(words: Sequence[str]) -> str:
    """Return the name of the program that `words` start, also by a launcher such as npx."""
    number = launched_word(words)
    named = words[number]
    return named if number and named.startswith("@") else _base(named)


def _base(word: str) -> str:
    """Return the last part of a path that means something: `server` for `server/dist/index.js`."""
    *folders, last = word.rstrip("/").split("/")
    stem, has_ending, _ = last.partition(".")
    if has_ending and stem in _GENERIC_NAMES:
        last = next(
            (each for each in reversed(folders) if each and each not in _BUILD_FOLDERS), last
        )
    return last or word
