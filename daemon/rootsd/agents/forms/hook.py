"""How an agent asks before each call of a tool, and what it understands as an answer."""

from __future__ import annotations

TYPE_CHECKING = False  # see `rootsd.agents.forms`
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any


class HookDialect:
    """The words of one agent.

    * `events`: the names of the events before a tool runs.
    * `decision` and `reasons`: the keys in its answer. `inside` is the key of an object around
      them, which then has the name of the event, too.
    * `project`: the variable with the folder in which the session began. Without it, nothing is
      allowed: the working directory of the call may be another one.
    * `readers` and `writers`: tool -> the keys of its input that hold a path or a list of paths.
    * `searchers`: tools among `readers` that search below a path, and the key of their pattern.
      Without a path, they search the working directory.
    * `patchers`: tools whose input is a patch with paths in it, and the key of the patch.
    * `asks`: the decision with which it asks the person, if it has one.
    * `moves`: the events that say where the agent works, each with a pattern of tools, or "".
    * `worktrees`: the events with which it asks to make a worktree, and to delete one.
    * `can_be_strict`: whether the agent can refuse calls whose hook fails.
    """

    def __init__(  # noqa: PLR0913 - a record without typing
        self,
        *,
        events: tuple[str, ...],
        decision: str,
        reasons: tuple[str, ...],
        inside: str = "",
        project: str = "",
        readers: Mapping[str, tuple[str, ...]] | None = None,
        writers: Mapping[str, tuple[str, ...]] | None = None,
        searchers: Mapping[str, str] | None = None,
        patchers: Mapping[str, str] | None = None,
        asks: str = "",
        moves: Mapping[str, str] | None = None,
        worktrees: tuple[str, ...] = (),
        can_be_strict: bool = False,
    ) -> None:
        self.events = events
        self.decision = decision
        self.reasons = reasons
        self.inside = inside
        self.project = project
        self.readers = readers or {}
        self.writers = writers or {}
        self.searchers = searchers or {}
        self.patchers = patchers or {}
        self.asks = asks
        self.moves = moves or {}
        self.worktrees = worktrees
        self.can_be_strict = can_be_strict

    def opens_files(self, tool: str) -> bool:
        """Return whether a tool may open the files that its input names."""
        return tool in self.readers or tool in self.writers or tool in self.patchers

    def answer(self, decision: str, reason: str) -> dict[str, Any]:
        """Return the answer with a decision and its reason."""
        said = {self.decision: decision, **dict.fromkeys(self.reasons, reason)}
        if self.inside:
            return {self.inside: {"hookEventName": self.events[0], **said}}
        return said
