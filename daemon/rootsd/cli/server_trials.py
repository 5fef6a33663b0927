"""Choose which servers of a client to wrap with `rootsd run`, by trying each one.

A server that works behind the wall is wrapped with it. For one that works only without it, a
person is asked, unless the machine's policy requires the wall. Any other server is left alone and
named.
"""

from __future__ import annotations

from enum import Enum
from pathlib import Path

from msgspec import Struct
from msgspec.structs import replace

from rootsd.cli.questions import Questions
from rootsd.connect.base import ClientEnvironment, McpClient
from rootsd.connect.servers import ServerEntry
from rootsd.connect.trial import ServerBroken, try_server
from rootsd.connect.wiring import ClientWiring, WiringWish
from rootsd.connect.wraps import ServerWrap, WrapMode
from rootsd.core.labels import safe_label


class WallChoice(Enum):
    """Whether servers are wrapped with the wall."""

    IF_IT_WORKS = "if it works"
    NEVER = "never"
    REQUIRED = "the machine's policy requires it"


class ServerTrials(Struct, frozen=True):
    """Tries the servers of clients. `wall` says whether to try them behind the wall."""

    questions: Questions
    environment: ClientEnvironment
    wall: WallChoice

    def add_to(
        self, wish: WiringWish, client: McpClient, wiring: ClientWiring, warnings: list[str]
    ) -> WiringWish:
        """Return `wish` with the servers to wrap; `warnings` gets a sentence for each other."""
        wraps = dict(wish.wraps)
        for server in wiring.state().servers:
            if server.server in wraps:
                continue
            mode, why = self._mode(wish, server, client.facts.name)
            if mode is not None:
                wraps[server.server] = ServerWrap(mode)
            else:
                warnings.append(_not_wrapped(client, server, why))
        warnings += [
            _not_wrapped(client, server, server.obstacle)
            for server in wiring.project_file_servers()
        ]
        return replace(wish, wraps=wraps)

    def _mode(
        self, wish: WiringWish, server: ServerEntry, client: str
    ) -> tuple[WrapMode | None, str]:
        """Return how to wrap a server, or None and why not."""
        if server.obstacle:
            return None, server.obstacle
        best = WrapMode.OPEN if self.wall is WallChoice.NEVER else WrapMode.CONFINED
        if self.questions.dry_run:
            return best, ""
        problem = self._try(wish, server, best)
        if problem is None:
            return best, ""
        if self.wall is WallChoice.REQUIRED:
            return None, f"it does not work behind the wall, which the policy requires: {problem}"
        open_problem = problem if best is WrapMode.OPEN else self._try(wish, server, WrapMode.OPEN)
        if open_problem is not None:
            return None, f"it does not work under rootsd run: {open_problem}"
        why = f"it does not work behind the wall: {problem}"
        question = f"{_shown(server)} is not wrapped yet: {why}. Wrap it without the wall?"
        if self.questions.agrees_to_decide(question):
            return WrapMode.OPEN, ""
        return None, f"{why} (try: rootsd connect {client} --wrap --no-confine)"

    def _try(self, wish: WiringWish, server: ServerEntry, mode: WrapMode) -> str | None:
        """Return why a server does not work in this mode, or None."""
        wall = " behind the wall" if mode is WrapMode.CONFINED else ""
        self.questions.output.message(f"Trying {_shown(server)}{wall}.")
        folder = Path(server.server.project) if server.server.project else self.environment.home
        variables = {**self.environment.variables, **(server.variables or {})}
        try:
            try_server((*ServerWrap(mode).front(wish.rootsd), *server.words), variables, folder)
        except ServerBroken as error:
            return str(error)
        return None


def _shown(server: ServerEntry) -> str:
    return safe_label(server.server.label, limit=None)


def _not_wrapped(client: McpClient, server: ServerEntry, why: str) -> str:
    return f"{client.facts.title}: {_shown(server)} is not wrapped: {why}"
