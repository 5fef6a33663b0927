"""Control request about the last upgrade of rootsd."""

from __future__ import annotations

from typing import ClassVar, TypedDict

from rootsd.wire.request import ControlRequest


class WiderWorkspace(TypedDict):
    """A root whose workspace has more roots."""

    name: str
    """The name of the root."""
    also: list[str]
    """The names of the first other roots."""
    count: int
    """The number of all other roots."""


class RenamedRoot(TypedDict):
    """A root with another name than the stored one, because two stored names look the same."""

    stored: str
    """The stored name."""
    name: str
    """The name that clients and people see."""


class UpgradeItem(TypedDict):
    """The last upgrade of the store."""

    at: str
    """The time of the upgrade, in RFC 3339."""
    from_release: str | None
    """The release that wrote the store before, or null if it was no release."""
    from_version: int
    """The version of the database before."""
    to_version: int
    """The version of the database now."""
    backup: str | None
    """The path of the database from before, for a return; null if the file is gone."""
    kept: dict[str, int]
    """The number of decisions by kind."""
    lapsed: int
    """The approvals and rules that lapsed then, because the store was not the latest one."""
    waiting_worktrees: list[str]
    """The worktrees that the older version published, and that wait now."""
    renamed: list[RenamedRoot]
    """The roots with another name than the stored one."""
    focus: str | None
    """The tag of the focus, or null if there is none."""
    with_colon: list[str]
    """The first roots with a colon in their path."""
    wider_workspaces: list[WiderWorkspace]
    """The first roots whose workspace has more roots."""
    is_new: bool
    """Whether no person has seen the summary yet."""


class UpgradeResult(TypedDict):
    """The last upgrade."""

    revision: int
    """A number that grows with each change of the published set."""
    upgrade: UpgradeItem | None
    """The last upgrade, or null if there was none."""
    warnings: list[str]
    """What a person should know, one sentence each."""


class UpgradeQuery(ControlRequest, frozen=True):
    """Ask for the last upgrade."""

    method: ClassVar[str] = "upgrade"
    result: ClassVar[type] = UpgradeResult

    is_look: bool = False
    """Whether a person sees the answer. Then the upgrade is no longer new."""
