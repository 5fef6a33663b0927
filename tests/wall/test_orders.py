"""The messages between a warden and its owner."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rootsd.core.access import Access
from rootsd.core.mount_plan import ConfinedRoot, FolderIdentity
from rootsd.core.record import BadRecord, from_json, from_line, to_line
from rootsd.wall.kernel.orders import (
    AppliedChange,
    FailedRoot,
    OrderKind,
    PauseNews,
    PauseState,
    WardenOrder,
    WardenReport,
    decode_news,
)

_NAME = st.binary(min_size=1, max_size=8).filter(
    lambda raw: not {0, 0x2F} & set(raw) and raw not in (b".", b"..")
)
PATHS = st.lists(_NAME, min_size=1, max_size=3).map(lambda names: b"/" + b"/".join(names))
IDENTITIES = st.builds(
    FolderIdentity,
    st.integers(0, 2**64),
    st.integers(0, 2**32),
    st.none() | st.binary(max_size=12),
    st.none() | st.integers(0, 2**63),
)
ROOTS = st.builds(
    ConfinedRoot,
    PATHS,
    st.sampled_from(Access),
    st.none() | IDENTITIES,
    st.frozensets(PATHS, max_size=3),
    st.none() | PATHS,
    st.text(max_size=9),
    st.booleans(),
    st.none() | IDENTITIES,
    st.text(max_size=9),
)


DENIED = st.none() | st.frozensets(PATHS, max_size=3)


@given(
    st.integers(),
    st.sampled_from(OrderKind),
    st.lists(ROOTS, max_size=2),
    st.lists(PATHS, max_size=2),
    DENIED,
)
def test_an_order_is_encoded_and_decoded(
    number: int,
    kind: OrderKind,
    roots: list[ConfinedRoot],
    paths: list[bytes],
    denied: frozenset[bytes] | None,
) -> None:
    order = WardenOrder(number, kind, tuple(roots), tuple(paths), denied=denied)
    assert from_line(WardenOrder, to_line(order)) == order


@given(PATHS, st.text(max_size=9))
def test_a_report_is_encoded_and_decoded(path: bytes, text: str) -> None:
    report = WardenReport(3, 2, 1, 1, AppliedChange((FailedRoot(path, text),), (text,)))
    assert decode_news(to_line(report)) == report


@given(st.sampled_from(PauseState), st.text(max_size=9))
def test_news_about_the_programs_are_no_report(state: PauseState, text: str) -> None:
    news = PauseNews(state, text, "rootsd up")
    assert decode_news(to_line(news)) == news


@pytest.mark.parametrize(
    "line",
    [
        b"", b"[]", b"{", b"[" * 100_000, b'{"number": 1, "kind": "mount", "roots": []}',
        b'{"number": 1}', b'{"kind": "set"}',
        b'{"number": 1, "kind": "set", "roots": [{"path": "/a"}]}',
        b'{"number": 1, "kind": "remove", "paths": ["a"]}',
        b'{"number": 1, "kind": "remove", "paths": ["/a/../b"]}',
        b'{"number": 1, "kind": "remove", "paths": [7]}',
    ],
)  # fmt: skip
def test_any_other_line_is_rejected(line: bytes) -> None:
    with pytest.raises(BadRecord):
        from_line(WardenOrder, line)


@pytest.mark.parametrize(
    "changes",
    [
        {"access": "all"}, {"denied": "x"}, {"denied": ["x"]}, {"identity": 7},
        {"identity": {"inode": 1, "owner": 1, "handle": "x", "born_ns": None, "device": None}},
        {"identity": {"inode": 1, "owner": 1, "handle": None, "born_ns": None, "device": "x"}},
        {"shared_git": 1},
        {"path": "/a\0"}, {"git_access": 1}, {"shared_git_identity": 7},
    ],
)  # fmt: skip
def test_a_root_that_is_not_described_correctly_is_refused(changes: dict[str, object]) -> None:
    with pytest.raises(BadRecord):
        from_json(ConfinedRoot, {"path": "/a", "access": "read", **changes})
