from __future__ import annotations

import random
import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rootsd.core.labels import safe_label
from rootsd.core.names import comparison_key, project_id, propose_names, with_id
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
    keys = set(map(comparison_key, taken))
    names = propose_names(shuffled, keys)
    assert names.keys() == forest
    assert len({*names.values()}) == len(forest)
    assert taken.isdisjoint(names.values())
    assert names == propose_names(sorted(forest), keys)


@given(forests, taken_names)
def test_each_name_is_the_shortest_suffix_that_no_other_path_has(
    forest: set[bytes], taken: set[str]
) -> None:
    for path, name in propose_names(forest, set(map(comparison_key, taken))).items():
        others = {suffix for other in forest - {path} for suffix in _suffixes(other)}
        free = [suffix for suffix in _suffixes(path) if suffix not in others | taken]
        # If a whole path is the end of another one, only the id is left.
        assert name == (free[0] if free else f"{_suffixes(path)[0]}~{project_id(path)}")


def test_a_path_that_has_no_free_suffix_gets_its_id() -> None:
    for taken, name in ((("api",), "api~r7k2"), (("api", "API~R7K2"), "api~r7k2~2")):
        keys = set(map(comparison_key, taken))
        assert propose_names([b"/api"], keys, id_of=lambda _: "r7k2") == {b"/api": name}
    assert propose_names([b"/"]) == {b"/": "/"}


@pytest.mark.parametrize(
    ("uri", "name"),
    [
        (b"https://api.example.com/v1/", "api.example.com/v1"),
        (b"https://api.example.com", "api.example.com"),
        (b"https://ann@db.example.com:8443/a/b?x=/y", "db.example.com:8443/a/b"),
        (b"s3://bucket/key", "bucket/key"),
    ],
)
def test_a_uri_is_named_by_host_and_path(uri: bytes, name: str) -> None:
    assert propose_names([uri, b"/src/v1", b"/src/b"]) == {
        uri: name,
        b"/src/v1": "v1",
        b"/src/b": "b",
    }
    assert propose_names([uri], {comparison_key(name)}) == {uri: f"{name}~{project_id(uri)}"}


ALIKE = (
    ("café", "cafe\u0301"),  # NFC and NFD
    ("ﬁle", "file"),  # a ligature: NFKC
    ("Straße", "STRASSE"),  # full case folding
    ("K", "k"),
    ("x" * 63 + "ab", "x" * 63 + "cd"),  # a table cuts both to the same text
)
words = st.sampled_from(
    [*(w for pair in ALIKE for w in pair), "a\uff0fb", "a", "b", "a\u202eb", "a\\"]
)
alike_paths = st.lists(words, min_size=1, max_size=3).map(lambda some: "/" + "/".join(some))


def _as_seen(name: str) -> str:
    """Return the text that a reader compares, straight from UAX #15 and CaseFolding.txt."""
    seen = unicodedata.normalize("NFKC", safe_label(name)).casefold()
    return unicodedata.normalize("NFKC", seen)


@pytest.mark.parametrize("pair", ALIKE)
def test_names_that_look_alike_get_the_ids_of_their_projects(pair: tuple[str, str]) -> None:
    here = [b"/s/" + name.encode() for name in pair]
    ids = dict(zip(here, ("r7k2", "m9ab"), strict=True))
    names = propose_names(here, id_of=ids.__getitem__)
    assert [names[path][-5:] for path in here] == ["~r7k2", "~m9ab"]
    assert all(len(safe_label(name, limit=None)) <= 64 for name in names.values())
    assert propose_names([b"/s/new"], {comparison_key("NEW")}) == {b"/s/new": "s/new"}


@pytest.mark.parametrize("name", ["api", "ß" * 70], ids=["short", "long"])
def test_a_name_with_an_id_is_found_however_many_are_taken(name: str) -> None:
    taken = {comparison_key(name)}
    for _ in range(100):
        found = with_id(name, "r7k2", lambda key: key not in taken)
        assert comparison_key(found) not in taken
        assert len(found) <= 64
        taken.add(comparison_key(found))


def test_a_name_with_an_id_keeps_the_stored_text() -> None:
    here = [b"/" + name.encode() for name in ALIKE[0]]
    assert [*propose_names(here, id_of=lambda _: "r7k2").values()] == [
        "cafe\u0301~r7k2", "café~r7k2~2",
    ]  # fmt: skip


@given(st.sets(alike_paths, max_size=10), st.sets(words, max_size=3))
def test_no_two_projects_have_names_that_look_alike(forest: set[str], taken: set[str]) -> None:
    shown = propose_names([path.encode() for path in forest], set(map(comparison_key, taken)))
    seen = [_as_seen(name) for name in shown.values()]
    assert len({*seen}) == len(forest)
    assert {*seen}.isdisjoint(map(_as_seen, taken))


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


def test_an_id_is_longer_if_it_is_taken_or_looks_like_a_number() -> None:
    first = project_id(b"/w/a")
    second = project_id(b"/w/a", {first})
    third = project_id(b"/w/a", {first}, {second})
    assert second[:4] == first
    assert third[:5] == second
    assert [len(first), len(second), len(third)] == [4, 5, 6]


def test_an_id_is_unique_even_if_all_short_ones_are_taken() -> None:
    class Everything(list[str]):
        def __contains__(self, _: object) -> bool:
            return True

    with pytest.raises(AssertionError):
        project_id(b"/w/a", Everything())


def test_a_proposed_name_differs_from_existing_and_reserved_names() -> None:
    api, other = b"/s/acme/api", b"/s/beta/api"
    taken = {comparison_key("beta/api")}
    assert propose_names([api], taken, others=[other]) == {api: "acme/api"}
    assert propose_names([api], others=[b"/api"]) == {api: "acme/api"}
    assert propose_names([b"/api"], others=[api]) == {b"/api": f"api~{project_id(b'/api')}"}
    assert propose_names([api], others=[b"/s/acme/web"]) == {api: "api"}
    assert propose_names([api], reserved={"api": api}) == {api: "api"}
    assert propose_names([api], reserved={"api": b"/x/api"}) == {api: "acme/api"}
