"""Choose which servers of a client to wrap with `rootsd run`, by trying each one.

A server that works behind the wall is wrapped with it. For one that works only without it, a
person is asked, unless the machine's policy requires the wall. Any other server is left alone and
named.

An entry may name files that the server could not reach behind the wall, or folders to which a
person limited the server. These are named first. A person shows each one to the server, by a key
or by an option. Otherwise the server is left alone.
"""

from __future__ import annotations

import os
import shlex
from collections.abc import Mapping, Sequence
from enum import Enum
from pathlib import Path

from msgspec import Struct, field
from msgspec.structs import replace

from rootsd.cli.answers.questions import Questions
from rootsd.cli.text.phrases import shorten_home, shown_path
from rootsd.connect.base import ClientEnvironment, McpClient
from rootsd.connect.client_files import ClientFiles, Wiring
from rootsd.connect.launch import Launch, launch_of
from rootsd.connect.named_paths import (
    NeedKind,
    PathNeed,
    ReachableFiles,
    is_covered,
    is_environment,
    own_state,
    path_needs,
)
from rootsd.connect.servers import ServerEntry
from rootsd.connect.trial import ServerBroken, try_server
from rootsd.connect.wraps import EVERY_ROOT, PathUse, ServerWrap, ShownPath, WrapMode
from rootsd.core.labels import safe_label

_KEYS = {"r": PathUse.READ, "w": PathUse.WRITE, "k": PathUse.KEEP}


class WallChoice(Enum):
    """Whether servers are wrapped with the wall."""

    IF_IT_WORKS = "if it works"
    NEVER = "never"
    REQUIRED = "the machine's policy requires it"


class NotWrapped(Exception):
    """A server that stays as it is. The message is a clause that says why."""


class ServerTrials(Struct, frozen=True):
    """Tries the servers of clients.

    * `wall`: whether to try them behind the wall, which has the files `reachable`.
    * `shown`: the paths that a person shows to the servers that name them.
    """

    questions: Questions
    environment: ClientEnvironment
    wall: WallChoice
    reachable: ReachableFiles
    shown: tuple[ShownPath, ...] = ()

    def add_to(
        self, wish: Wiring, client: McpClient, files: ClientFiles, warnings: list[str]
    ) -> Wiring:
        """Return `wish` with the servers to wrap; `warnings` gets a sentence for each other."""
        wraps = dict(wish.wraps)
        for server in files.state().servers:
            if server.server in wraps:
                continue
            try:
                trial = _Trial(self, client, server, wish.rootsd)
                wraps[server.server] = trial.wrap()
                warnings += trial.notes
            except NotWrapped as reason:
                warnings.append(f"{client.facts.title}: {_shown(server)} is not wrapped: {reason}")
        warnings += [
            f"{client.facts.title}: {_shown(server)} is not wrapped: {server.obstacle}"
            for server in files.project_file_servers()
        ]
        return replace(wish, wraps=wraps)


class _Trial(Struct):
    """The trial of one server. `notes` has sentences about a server that is wrapped."""

    trials: ServerTrials
    client: McpClient
    server: ServerEntry
    rootsd: str
    notes: list[str] = field(default_factory=list)

    def wrap(self) -> ServerWrap:
        """Return how to wrap the server. Raises NotWrapped."""
        if self.server.obstacle:
            raise NotWrapped(self.server.obstacle)
        environment = self.trials.environment
        launch = launch_of(self.server, self.client.facts.reading, environment)
        if launch.obstacle:
            raise NotWrapped(f"{self.client.facts.title} {launch.obstacle}")
        if launch.is_shell:
            raise NotWrapped("its command needs a shell")
        scope = EVERY_ROOT if launch.folder else ()
        plain = ServerWrap(WrapMode.OPEN, scope=scope, program=launch.program)
        is_open = self.trials.wall is WallChoice.NEVER
        shown = self._decided(self._needs(launch))
        best = plain if is_open else self._confined(launch, plain, shown)
        if launch.unknown and not self.trials.questions.dry_run:
            self._note(
                f"is wrapped without a trial, because rootsd does not know what"
                f" {self.client.facts.title} puts in place of {', '.join(launch.unknown)}"
            )
            return best
        return self._working(launch, best, plain)

    def _needs(self, launch: Launch) -> list[PathNeed]:
        """Return the paths that a person must decide about: without a wall, only the limits."""
        search = launch.variables.get("PATH") or self.trials.environment.variables.get("PATH", "")
        found = path_needs(launch, self.trials.reachable, search)
        if self.trials.wall is WallChoice.NEVER:
            return [each for each in found if each.kind is NeedKind.LIMIT]
        return found

    def _decided(self, needs: Sequence[PathNeed]) -> tuple[ShownPath, ...]:
        """Return what a person shows to the server. Raises NotWrapped."""
        decided: list[ShownPath] = []
        missing: list[PathNeed] = []
        for need in needs:
            given = [each for each in self.trials.shown if is_covered(need, [each])]
            if is_environment(need) and need.shown is not None and not given:
                given = [need.shown]
                self._note(f"gets its virtual environment: --read {_path(need.shown.path)}")
            elif not given and not missing:
                given = self._asked(need)
            decided += given
            missing += [] if given else [need]
        if missing:
            raise NotWrapped(self._explain(missing))
        return tuple(dict.fromkeys(decided))

    def _asked(self, need: PathNeed) -> list[ShownPath]:
        """Ask a person about one path."""
        if need.shown is None:
            return []
        place = _path(need.shown.path)
        key = self.trials.questions.chooses(
            f"{_shown(self.server)}: {_sentence([need])}. Let it (r)ead or (w)rite {place}, or"
            " (k)eep a copy of its own? Else it is not wrapped.",
            "".join(_KEYS),
        )
        if not key:
            return []
        reads_a_file = _KEYS[key] is PathUse.READ and os.path.isfile(need.path)
        return [ShownPath(_KEYS[key], need.path if reads_a_file else need.shown.path)]

    def _explain(self, missing: Sequence[PathNeed]) -> str:
        """Return why a server is not wrapped, with the command that wraps it."""
        shown = [
            each.shown or ShownPath(PathUse.READ, each.path)
            for each in missing
            if each.shown is not None or os.path.isfile(each.path)
        ]
        options = dict.fromkeys(f"{each.use.value} {_path(each.path)}" for each in shown)
        why = _sentence(missing)
        alone = [_path(each.path) for each in missing if _is_beside_others(each)]
        if alone:
            why += (
                f"; to change a file, it needs the folder, so move {' and '.join(alone)} into a"
                " folder of its own, or only let it read"
            )
        if len(shown) < len(missing):
            return why
        wall = " --no-confine" if self.trials.wall is WallChoice.NEVER else ""
        again = f"rootsd connect {self.client.facts.name} --wrap{wall} {' '.join(options)}"
        return f"{why} (try: {again})"

    def _confined(
        self, launch: Launch, plain: ServerWrap, shown: tuple[ShownPath, ...]
    ) -> ServerWrap:
        """Return the wrap with the wall. A server keeps the state that is its own."""
        state = [
            each
            for each in own_state(launch, self.trials.reachable)
            if not any(each.path == other.path for other in shown)
        ]
        for each in state:
            self._note(f"keeps a copy of its own state: --keep {_path(each.path)}")
        return replace(plain, mode=WrapMode.CONFINED, shown=(*shown, *state))

    def _working(self, launch: Launch, best: ServerWrap, plain: ServerWrap) -> ServerWrap:
        """Return `best` or `plain`, whichever works. Raises NotWrapped."""
        if self.trials.questions.dry_run:
            return best
        problem = self._try(launch, best)
        if problem is None:
            return best
        if self.trials.wall is WallChoice.REQUIRED:
            raise NotWrapped(
                f"it does not work behind the wall, which the policy requires: {problem}"
            )
        open_problem = problem if best.mode is WrapMode.OPEN else self._try(launch, plain)
        if open_problem is not None:
            raise NotWrapped(f"it does not work under rootsd run: {open_problem}")
        why = f"it does not work behind the wall: {problem}"
        question = f"{_shown(self.server)} is not wrapped yet: {why}. Wrap it without the wall?"
        if self.trials.questions.agrees_to_decide(question):
            return plain
        again = f"rootsd connect {self.client.facts.name} --wrap --no-confine"
        raise NotWrapped(f"{why} (try: {again})")

    def _try(self, launch: Launch, wrap: ServerWrap) -> str | None:
        """Return why a server does not work when it is wrapped so, or None."""
        wall = " behind the wall" if wrap.mode is WrapMode.CONFINED else ""
        self.trials.questions.output.message(f"Trying {_shown(self.server)}{wall}.")
        environment = self.trials.environment
        folder = launch.folder or self.server.server.project or environment.home
        variables: Mapping[str, str] = {**environment.variables, **launch.variables}
        try:
            try_server((*wrap.front(self.rootsd), *launch.words), variables, Path(folder))
        except ServerBroken as error:
            return str(error)
        return None

    def _note(self, text: str) -> None:
        self.notes.append(f"{self.client.facts.title}: {_shown(self.server)} {text}")


def _sentence(needs: Sequence[PathNeed]) -> str:
    """Return what the wall or the roots would change for a server."""
    limits = [_named(each) for each in needs if each.kind is NeedKind.LIMIT]
    others = [_named(each) for each in needs if each.kind is not NeedKind.LIMIT]
    parts = []
    if limits:
        parts.append(
            f"its command limits it to {' and '.join(limits)}, and a wrapped server can get the"
            " folders that you approve instead"
        )
    if others:
        parts.append(f"behind the wall, it could not reach {' and '.join(others)}")
    return ", and ".join(parts)


def _is_beside_others(need: PathNeed) -> bool:
    return need.shown is None and need.kind is NeedKind.DATA and not os.path.isdir(need.path)


def _named(need: PathNeed) -> str:
    shown = shown_path(need.path)
    return shown if need.kind is NeedKind.LIMIT else f"{shown} ({safe_label(need.origin)})"


def _path(path: str) -> str:
    """Return a path as a word to copy into a shell."""
    short = shorten_home(path)
    is_short = short != path and shlex.quote(short[1:]) == short[1:]
    return safe_label(short if is_short else shlex.quote(path), limit=None)


def _shown(server: ServerEntry) -> str:
    return safe_label(server.server.label, limit=None)
