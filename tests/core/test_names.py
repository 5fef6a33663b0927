from __future__ import annotations

import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rootsd.core.names import project_id, propose
from rootsd.core.paths import text_of

parts = st.sampled_from([b"api", b"acme", b"beta", b"src", b"a", b"\xff", b"api-2"])
paths = st.lists(parts, min_size=1, max_size=5).map(lambda some: b"/" + b"/".join(some))
forests = st.sets(paths, max_size=12)
taken_names = st.sets(st.sampled_from(["api", "acme/api", "src/acme/api", "a", "a-2"]))


def _suffixes(path: bytes) -> list[str]:
    parts = path.strip(b"/").split(b"/")
    return [text_of(b"/".join(parts[-length:])) for length in range(1, len(parts) + 1)]


@given(forests, taken_names, st.randoms())
def test_names_are_unique_free_and_the_same_in_any_order(
    forest: set[bytes], taken: set[str], chance: random.Random
) -> None:
    shuffled = sorted(forest)
    chance.shuffle(shuffled)
    names = propose(shuffled, taken)
    assert names.keys() == forest
    assert len({*names.values()}) == len(forest)
    assert taken.isdisjoint(names.values())
    assert names == propose(sorted(forest), taken)


@given(forests, taken_names)
def test_each_name_is_the_shortest_suffix_that_no_other_path_has(
    forest: set[bytes], taken: set[str]
) -> None:
    for path, name in propose(forest, taken).items():
        others = {suffix for other in forest - {path} for suffix in _suffixes(other)}
        free = [suffix for suffix in _suffixes(path) if suffix not in others | taken]
        # Where a whole path is the end of another one, nothing is left but a number.
        assert name == free[0] if free else name.rpartition("-")[0] == _suffixes(path)[-1]


def test_the_folders_name_is_proposed_and_on_a_clash_what_tells_them_apart() -> None:
    names = propose([b"/s/acme/api", b"/s/beta/api", b"/s/tool", b"/s/acme/lib/x"], {"tool"})
    assert sorted(names.values()) == ["acme/api", "beta/api", "s/tool", "x"]


def test_a_path_that_has_no_free_suffix_gets_a_number() -> None:
    assert propose([b"/api"], {"api"}) == {b"/api": "api-2"}
    assert propose([b"/api"], {"api", "api-2", "api-3"}) == {b"/api": "api-4"}
    assert propose([b"https://api.example.com/v1/"]) == {b"https://api.example.com/v1/": "v1"}
    assert propose([b"/"]) == {b"/": "/"}


@given(st.sets(st.binary(min_size=1), max_size=50))
def test_ids_are_short_unique_and_come_from_the_path(some: set[bytes]) -> None:
    ids: dict[str, bytes] = {}
    for path in sorted(some):
        ids[project_id(path, ids)] = path
    assert len(ids) == len(some)
    for short, path in ids.items():
        assert len(short) == 4 or short[:4].isdigit() or short[:4] in ids
        assert short.isascii()
        assert short.isalnum()
        assert not short.isdigit()
        assert short.startswith(project_id(path))


def test_an_id_grows_where_it_is_taken_or_looks_like_a_number() -> None:
    first = project_id(b"/w/a")
    second = project_id(b"/w/a", {first})
    third = project_id(b"/w/a", {first}, {second})
    assert second[:4] == first
    assert third[:5] == second
    assert [len(first), len(second), len(third)] == [4, 5, 6]


def test_no_id_is_given_twice_even_if_all_of_them_were_taken() -> None:
    class Everything(list[str]):
        def __contains__(self, _: object) -> bool:
            return True

    with pytest.raises(AssertionError):
        project_id(b"/w/a", Everything())
