"""The focus: the tag that MCP sessions without a scope of their own are narrowed to.

It is set for the sessions that begin from then on, or for those that run, too. So what holds for
one session follows from the focus as it was when that began, and as it is.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Focus:
    """`tag` holds for sessions that begin now, None for no tag. `number` counts the changes;
    sessions that began before change `swept` follow `swept_tag`, whatever held at their start."""

    tag: str | None = None
    number: int = 0
    swept: int = 0
    swept_tag: str | None = None

    def changed(self, tag: str | None) -> Focus:
        """This focus on `tag`; sessions that run are left as they are."""
        return Focus(tag, self.number + 1, self.swept, self.swept_tag)

    def swept_to(self, tag: str | None) -> Focus:
        """This focus on `tag`, for all sessions."""
        return Focus(tag, self.number + 1, self.number + 1, tag)

    def tag_for(self, start: Focus) -> str | None:
        """The tag that a session is narrowed to that began when the focus was `start`."""
        return self.swept_tag if self.swept > start.number else start.tag


NO_FOCUS = Focus()
