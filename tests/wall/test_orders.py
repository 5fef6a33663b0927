"""The messages between a warden and its owner. The codec of records is tested in tests/core."""

from __future__ import annotations

import pytest

from rootsd.core.mount_plan import RemovalReason, RemovedRoot
from rootsd.core.record import BadRecord, from_line, to_line
from rootsd.wall.kernel.orders import (
    AppliedChange,
    ChangeNews,
    FailedRoot,
    PauseNews,
    PauseState,
    RootNews,
    WardenOrder,
    WardenReport,
    decode_news,
)


@pytest.mark.parametrize(
    "news",
    [
        WardenReport(3, 2, 1, 1, AppliedChange((FailedRoot(b"/a", "why"),), ("7 cat",))),
        PauseNews(PauseState.STOPPED, "why", "rootsd up"),
        RootNews((RemovedRoot(b"/a", "a", RemovalReason.DENIED),), (b"/b",)),
        ChangeNews(("a/.envrc",)),
    ],
)
def test_an_owner_tells_each_kind_of_news_from_the_others(
    news: WardenReport | PauseNews | RootNews | ChangeNews,
) -> None:
    assert decode_news(to_line(news)) == news


@pytest.mark.parametrize(
    "line",
    [
        b"", b"[]", b"{", b"[" * 100_000, b'{"number": 1, "kind": "mount", "roots": []}',
        b'{"number": 1}', b'{"kind": "set"}',
        b'{"number": 1, "kind": "set", "roots": [{"path": "/a"}]}',
        b'{"number": 1, "kind": "remove", "paths": ["/a/../b"]}',
    ],
)  # fmt: skip
def test_any_other_line_is_no_order(line: bytes) -> None:
    with pytest.raises(BadRecord):
        from_line(WardenOrder, line)
