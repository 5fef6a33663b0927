"""What can be told of sessions from what was written down."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from hypothesis import given, settings
from hypothesis import strategies as st

from rootsd.core.model import Access, PublishedRoot, PublishedSet
from rootsd.core.scope import FULL_SCOPE, Scope, apply_scope
from rootsd.mcp.sessions.history import read_history
from rootsd.wire.daemon import SentRootsItem
from support.accounts import Accounts
from support.publishing import root

API, WEB = root("/src/api"), root("/src/web", tags=("work",))
READ_ONLY = replace(API, access=Access.READ)


def changes(given: list[SentRootsItem]) -> list[tuple[int, list[str], list[str]]]:
    return [(each["roots"], each["gained"], each["lost"]) for each in given]


def test_a_session_is_told_from_its_beginning_to_its_end(tmp_path: Path) -> None:
    accounts = Accounts(tmp_path)
    with accounts.sessions.opened(10) as session:
        session.named("an editor")
        session.given(PublishedSet(1, (API,)))
        session.given(PublishedSet(2, (API, WEB)))
        session.given(PublishedSet(4, (READ_ONLY,)))
        session.end = "left"
    [item] = accounts.history()
    assert (item["client"], item["pid"], item["scope"], item["end"]) == (
        "an editor", 10, [], "left",
    )  # fmt: skip
    assert item["since"] < item["given"][0]["at"] < item["given"][2]["at"]
    assert changes(item["given"]) == [
        (1, ["api"], []),
        (2, ["web"], []),
        (1, ["api"], ["web"]),
    ]


def test_a_session_with_a_scope_is_told_only_of_what_it_was_given(tmp_path: Path) -> None:
    accounts = Accounts(tmp_path)
    with accounts.sessions.opened(10) as session:
        session.scoped(Scope(tags=frozenset({"work"})))
        for revision, roots in enumerate([(API,), (API, WEB), (READ_ONLY, WEB), ()], start=1):
            session.given(PublishedSet(revision, roots))
    [item] = accounts.history()
    assert item["scope"] == ["tag:work"]
    assert changes(item["given"]) == [(0, [], []), (1, ["web"], []), (0, [], ["web"])]


def test_a_session_that_a_new_focus_narrows_is_told_what_it_lost_and_got_back(
    tmp_path: Path,
) -> None:
    accounts = Accounts(tmp_path)
    with accounts.sessions.opened(10) as session:
        session.given(PublishedSet(1, (API, WEB)))
        session.scoped(Scope(tags=frozenset({"work"})))
        session.given(PublishedSet(2, (API, WEB)))
        session.scoped(Scope())
        session.given(PublishedSet(3, (API, WEB)))
    [item] = accounts.history()
    assert changes(item["given"]) == [
        (2, ["api", "web"], []),
        (1, [], ["api"]),
        (2, ["api"], []),
    ]


def test_what_a_relay_told_its_server_last_is_told_also_after_its_end(tmp_path: Path) -> None:
    accounts = Accounts(tmp_path)
    with accounts.sessions.opened(10) as session:
        session.given(PublishedSet(1, (API, WEB)))
        session.told(2, ("api", "web"))
        session.told(1, ("api",))
    [item] = accounts.history()
    assert item["told"] == {"roots": 1, "names": ["api"]}


def test_a_session_that_skips_sets_is_told_the_net_change(tmp_path: Path) -> None:
    accounts = Accounts(tmp_path)
    with accounts.sessions.opened(10) as one, accounts.sessions.opened(11) as other:
        one.given(PublishedSet(1, (API,)))
        for revision, roots in enumerate([(API, WEB), (WEB,), (READ_ONLY, WEB)], start=2):
            other.given(PublishedSet(revision, roots))
        one.given(other.last or PublishedSet(0, ()))
    assert changes(accounts.history()[0]["given"])[1] == (2, ["api", "web"], [])


def test_sessions_that_a_killed_daemon_had_are_over_and_its_revisions_mean_nothing(
    tmp_path: Path,
) -> None:
    accounts = Accounts(tmp_path)
    killed = accounts.sessions.opened(10)
    killed.__enter__().given(PublishedSet(9, (API,)))
    accounts.log.write_now()
    accounts.begin_daemon()
    with accounts.sessions.opened(11) as session:
        session.given(PublishedSet(1, (WEB,)))
        old, new = accounts.history()
    assert (old["end"], new["end"]) == ("the daemon ended", None)
    assert changes(new["given"]) == [(1, ["web"], [])]


def test_only_the_last_sessions_are_told(tmp_path: Path) -> None:
    accounts = Accounts(tmp_path)
    for pid in range(5):
        with accounts.sessions.opened(pid) as session:
            session.given(PublishedSet(1, (API,)))
    assert [item["pid"] for item in accounts.history(2)] == [3, 4]


def test_many_names_are_counted_and_a_hundred_told(tmp_path: Path) -> None:
    accounts = Accounts(tmp_path)
    with accounts.sessions.opened(1) as session:
        session.given(PublishedSet(1, tuple(root(f"/src/p{number:03}") for number in range(250))))
    [only] = accounts.history()[0]["given"]
    assert (len(only["gained"]), only["gained_count"], only["roots"]) == (100, 250, 250)


def test_what_is_still_there_of_a_generation_that_was_dropped_is_told(tmp_path: Path) -> None:
    accounts = Accounts(tmp_path, limit=300)
    with accounts.sessions.opened(1) as session:
        for revision in range(1, 30):
            session.given(PublishedSet(revision, (API, WEB) if revision % 2 else (WEB,)))
            accounts.log.write_now()
        [item] = accounts.history()
    assert item["pid"] == 1
    assert changes(item["given"])[-1] == (2, ["api"], [])


def test_damaged_lines_are_passed_over() -> None:
    bad = [b"", b"{", b"[]", b'{"at": 7}', b'{"at":"x","set":true}', b"\xff", b'{"session":"a"}']
    assert read_history(lambda: bad, 10) == []


ROOTS = st.sampled_from([API, READ_ONLY, WEB, root("/src/c"), root("/src/d", tags=("work",))])
SETS = st.lists(ROOTS, max_size=4, unique_by=lambda each: each.name).map(tuple)
STEPS = st.lists(st.tuples(SETS, st.booleans(), st.booleans()), max_size=8)
SCOPES = st.sampled_from([FULL_SCOPE, Scope(tags=frozenset({"work"}))])


@settings(max_examples=50)
@given(STEPS, SCOPES)
def test_the_changes_add_up_to_what_each_session_was_given(
    tmp_path_factory: object,
    steps: list[tuple[tuple[PublishedRoot, ...], bool, bool]],
    scope: Scope,
) -> None:
    folder = tmp_path_factory.mktemp("h")  # type: ignore[attr-defined]
    accounts = Accounts(folder)
    seen: list[set[str]] = [set(), set()]
    with accounts.sessions.opened(0) as one, accounts.sessions.opened(1) as other:
        one.scoped(scope)
        for revision, (roots, *reads) in enumerate(steps, start=1):
            for number, session in enumerate((one, other)):
                if reads[number]:
                    published = PublishedSet(revision, roots)
                    session.given(published)
                    seen[number] = {r.name for r in apply_scope(published, session.scope).roots}
    for item, names in zip(accounts.history(), seen, strict=True):
        told: set[str] = set()
        for each in item["given"]:
            told = (told | set(each["gained"])) - set(each["lost"])
            assert each["roots"] == len(told)
        assert told == names
