"""The projects that a reference means."""

from __future__ import annotations

import os
import warnings
from collections.abc import Callable, Mapping
from contextlib import suppress
from pathlib import Path
from posixpath import join, normpath

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from rootsd.control import references
from rootsd.control.references import (
    ReferenceResolver,
    canonical_path,
    is_selected,
    meant_projects,
    reference_to,
)
from rootsd.core.catalog import Catalog
from rootsd.core.errors import AmbiguousReference, RootsdError, UnknownProject
from rootsd.core.labels import exact_path, safe_label
from rootsd.core.model import IncompleteReason, Inspection, Lapse, LapseReason, Project, Ruling
from rootsd.core.paths import bytes_of, text_of
from rootsd.wire.projects import Selection
from rootsd.wire.request import BadRequest
from support.ledger_harness import PLACES, SOURCES, at, missing
from support.sample_decisions import NOON, approved, denied, project

LINKS = {"/home/ann/api-link": "/home/ann/src/acme/api"}


def real_path(typed: str, cwd: str = "/home/ann/src") -> bytes:
    """Resolve a path as the daemon does, on a disk whose only links are LINKS."""
    whole = normpath(join(cwd, typed))
    if "\0" in whole:
        raise ValueError("embedded null byte")
    return bytes_of(LINKS.get(whole, whole))


def named(known: Project, name: str) -> Project:
    return replace(known, ruling=replace(known.ruling, name=name))


API = at(SOURCES + b"/acme/api", project(1))
WEB = at(SOURCES + b"/acme/web", project(2))
OTHER_API = at(SOURCES + b"/beta/api", project(3))
TOOL = named(at(SOURCES + b"/tool", approved(4)), "hammer")
BLOCKED = at(SOURCES + b"/blocked", denied(5))
ODD = at(SOURCES + b"/caf\xe9", project(6))
ALL = (API, WEB, OTHER_API, TOOL, BLOCKED, ODD)


def resolver(
    *projects: Project, real_path: Callable[[str], bytes] = real_path
) -> ReferenceResolver:
    return ReferenceResolver(Catalog.of(projects or ALL, (), PLACES, 1), real_path)


def found(resolver: ReferenceResolver, reference: str) -> tuple[Project, ...]:
    (resolved,) = resolver.resolve([reference])
    return resolved.projects


def test_the_name_of_a_folder_that_is_gone_means_no_other_project() -> None:
    newcomer = replace(API, observed=replace(API.observed, name="acme/api"))
    of_gone = {"api": SOURCES + b"/api"}
    known = Catalog.of([newcomer], (), PLACES, 1, reserved=of_gone)
    asked = ReferenceResolver(known, real_path)
    with pytest.raises(AmbiguousReference, match="project, and was the name of /home/ann/src/api"):
        asked.all(["api"])
    assert asked.all(["acme/api"]) == asked.all(["*/api"]) == asked.every(["api"]) == [newcomer]
    for reserved in ({}, {"api": newcomer.path}):  # the control
        known = Catalog.of([newcomer], (), PLACES, 1, reserved=reserved)
        assert ReferenceResolver(known, real_path).all(["api"]) == [newcomer]


def test_an_earlier_name_that_others_end_with_suggests_first_the_project_that_had_it() -> None:
    renamed = named(WEB, "old")
    for others in ((API,), (API, OTHER_API)):
        known = Catalog.of([renamed, *others], (), PLACES, 1, reserved={"api": renamed.path})
        with pytest.raises(AmbiguousReference) as failure:
            ReferenceResolver(known, real_path).all(["api"])
        assert failure.value.choices[0] == "old"
        assert len(failure.value.choices) == 1 + len(others)


def test_an_earlier_name_suggests_the_project_that_had_it() -> None:
    similar = named(WEB, "hamster")
    for reserved, meant in (({"hamer": API.path}, "api"), ({}, "hamster")):
        known = Catalog.of([API, similar], (), PLACES, 1, reserved=reserved)
        with pytest.raises(UnknownProject, match=f"called hamer; did you mean {meant}"):
            ReferenceResolver(known, real_path).all(["hamer"])


@pytest.mark.parametrize(
    ("reference", "meant"),
    [
        ("hammer", TOOL),
        ("acme/api", API),
        ("web", WEB),
        ("r3", OTHER_API),
        ("/home/ann/src/tool", TOOL),
        ("/home/ann/src/tool/", TOOL),
        ("tool", TOOL),
        ("acme/../tool", TOOL),
        ("/home/ann/api-link", API),
        ("caf\udce9", ODD),
    ],
)
def test_a_name_an_id_and_a_path_each_mean_one_project(reference: str, meant: Project) -> None:
    assert resolver().all([reference]) == [meant]


def test_a_glob_may_begin_with_a_tilde(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", "/home/ann")
    assert set(resolver().all(["~/src/acme/*"])) == {API, WEB}
    monkeypatch.setenv("HOME", "/home/ann[n]")
    assert resolver(at(b"/home/ann[n]/x", project(7))).all(["~/*"])
    with pytest.raises(UnknownProject):
        resolver(at(b"/home/ann/x", project(7))).all(["~/*"])


def test_a_slip_in_a_name_suggests_the_names_that_are_nearly_the_same() -> None:
    for typed, likely in (("acme/apo", "acme/api"), ("hamer", "hammer")):
        with pytest.raises(UnknownProject, match=f"called {typed}; did you mean {likely}") as slip:
            resolver().all([typed])
        assert (slip.value.typed, slip.value.choices[0]) == (typed, likely)
    with pytest.raises(UnknownProject) as nothing:
        resolver().all(["something-else"])
    assert nothing.value.choices == ()


def test_a_dot_means_the_working_directory() -> None:
    here = resolver(real_path=lambda typed: real_path(typed, "/home/ann/src/acme/web"))
    assert here.all(["."]) == [WEB]
    assert here.all(["../api"]) == [API]


def test_a_name_takes_precedence_over_a_path() -> None:
    elsewhere = named(at(b"/home/ann/elsewhere", approved(7)), "tool")
    assert resolver(TOOL, elsewhere).all(["tool"]) == [elsewhere]
    assert resolver(TOOL, elsewhere).all(["./tool"]) == [TOOL]


def test_an_id_takes_precedence_over_an_equal_name() -> None:
    impostor = at(SOURCES + b"/r1", project(9))
    with pytest.raises(AmbiguousReference) as refusal:
        resolver(API, impostor).all(["r1"])
    assert {choice.rpartition("/")[2] for choice in refusal.value.choices} == {"r1", "api"}
    assert resolver(API, impostor).all(["r9"]) == [impostor]
    own = at(SOURCES + b"/r1", project(1))
    assert resolver(own).all(["r1"]) == [own], "a project may be named like its own id"


def test_the_end_of_a_path_means_the_only_project_with_it_and_otherwise_lists_all() -> None:
    assert found(resolver(TOOL), "src/tool") == (TOOL,)
    with pytest.raises(AmbiguousReference):
        found(resolver(TOOL, at(b"/srv/src/tool", project(7))), "src/tool")
    with pytest.raises(AmbiguousReference) as refusal:
        resolver().all(["api"])
    assert refusal.value.choices == ("acme/api", "beta/api")
    odd = at(SOURCES + b"/$(x)/y", project(7))
    with pytest.raises(AmbiguousReference) as refusal:
        found(resolver(odd, at(b"/srv/$(x)/y", project(8))), "y")
    assert refusal.value.choices == ("r7", "r8")
    assert refusal.value.remedy


@pytest.mark.parametrize("reference", ["/", "/api.example.com"])
def test_an_absolute_path_does_not_match_the_end_of_a_uri(reference: str) -> None:
    uris = [b"https://api.example.com", b"https://api.example.com//"]
    known = [at(uri, project(number)) for number, uri in enumerate(uris)]
    assert found(resolver(*known), reference) == ()


@pytest.mark.parametrize(
    ("reference", "shown", "remedy"),
    [
        ("nope", "nope", "rootsd ls"),
        ("nope*", "nope*", "rootsd ls"),
        ("/nope/*", "/nope/*", "rootsd ls"),
        ("/home/ann", "/home/ann", "rootsd why /home/ann"),
        ("./no pe", "/home/ann/src/no pe", "rootsd why '/home/ann/src/no pe'"),
    ],
)
def test_an_unknown_reference_is_an_error_with_a_remedy(
    reference: str, shown: str, remedy: str
) -> None:
    with pytest.raises(UnknownProject) as refusal:
        resolver().all([reference])
    assert shown in refusal.value.message
    assert refusal.value.remedy == remedy
    assert not found(resolver(), reference)


@pytest.mark.parametrize("reference", ["", "a\0b", "half\ud800"])
def test_an_invalid_path_is_an_error_and_not_a_bug(reference: str) -> None:
    def path_of(typed: str) -> bytes:
        return canonical_path(real_path, typed, "/home/ann/src/tool")

    with pytest.raises(BadRequest) as refusal:
        resolver(real_path=path_of).all([reference])
    assert refusal.value.message.isprintable()


@pytest.mark.parametrize(
    ("patterns", "meant"),
    [
        (["acme/*"], [API, WEB]),
        (["acme/w*"], [WEB]),
        (["*api"], [API, OTHER_API]),
        (["src/*"], [BLOCKED, ODD, TOOL]),
        (["/home/ann/src/*/api"], [API, OTHER_API]),
        (["h?mm[aeiou]r"], [TOOL]),
        (["*"], [API, WEB, OTHER_API, BLOCKED, ODD, TOOL]),
        (["web", "acme/*", "r2"], [WEB, API]),
    ],
)
def test_a_glob_means_all_that_match_by_name_or_path_once(
    patterns: list[str], meant: list[Project]
) -> None:
    assert resolver().all(patterns) == meant


def test_a_name_with_glob_characters_means_only_its_project() -> None:
    pages = at(SOURCES + b"/page[ab]", project(1))
    page = at(SOURCES + b"/pagea", project(2))
    assert resolver(pages, page).all(["page[ab]"]) == [pages]


def test_a_filter_applies_to_globs_and_not_to_names() -> None:
    def fits(project: Project) -> bool:
        return project is not API

    assert meant_projects(resolver().resolve(["*api"]), fits) == [OTHER_API]
    assert meant_projects(resolver().resolve(["acme/api"]), fits) == [API]
    with pytest.raises(UnknownProject, match="waits for a decision"):
        meant_projects(resolver().resolve(["acme/a*"]), fits)


@given(st.text(max_size=12) | st.text("[]!^-*?a:.=&|~", max_size=12))
def test_no_reference_causes_a_bug(reference: str) -> None:
    def path_of(typed: str) -> bytes:
        return canonical_path(real_path, typed, "/home/ann/src")

    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with suppress(RootsdError):
            assert resolver(real_path=path_of).all([reference])


# What could confuse a shell, a terminal, a glob, or the parser of labels.
ODD_NAMES = st.text(
    st.sampled_from("ab\\ux{}20ff\n\t\x1b '\"$*?[]~-…\u202e\u0301é\udcff%:"),
    min_size=1,
    max_size=40,
).filter(lambda name: name not in (".", "..")) | st.text("ab\n", min_size=60, max_size=90)


def _printed(catalog: Catalog, known: Project) -> set[str]:
    """Return each form in which rootsd prints a project."""
    name, where = catalog.name_of(known), text_of(known.path)
    forms = {safe_label(name), safe_label(name, limit=None), safe_label(where, limit=None)}
    return forms | {exact_path(where), reference_to(catalog, known)}


@given(st.sets(ODD_NAMES, min_size=1, max_size=6))
def test_whatever_rootsd_prints_for_a_project_means_that_project(names: set[str]) -> None:
    paths = sorted({SOURCES + b"/" + bytes_of(name) for name in names})
    known = [at(where, project(number)) for number, where in enumerate(paths, 1)]
    odd = resolver(*known)
    for each in known:
        for form in _printed(odd.catalog, each):
            assert odd.all([form]) == [each], form
        # A shell takes the backslashes out of a word without quotes.
        unquoted = safe_label(odd.catalog.name_of(each), limit=None).replace("\\", "")
        with suppress(RootsdError):
            [meant] = odd.all([unquoted])
            assert meant == each or unquoted in _printed(odd.catalog, meant)


def test_a_label_means_the_project_that_is_shown_with_it_and_no_imitation() -> None:
    shown, imitation = at(SOURCES + b"/a\nb", project(1)), at(SOURCES + b"/a\\u{a}b", project(2))
    both = resolver(shown, imitation)
    assert both.all(["a\\u{a}b"]) == [shown]
    assert both.all(["a\\u{5c}u{a}b"]) == [imitation]
    assert both.all(["au{a}b"]) == [shown]


def test_an_existing_folder_takes_precedence_over_a_label_without_its_backslashes(
    tmp_path: Path,
) -> None:
    (tmp_path / "au{a}b").mkdir()
    shown = at(SOURCES + b"/a\nb", project(1))
    there = resolver(shown, real_path=lambda typed: os.fsencode(tmp_path / typed))
    assert found(there, "au{a}b") == ()


def lapsed(known: Project) -> Project:
    return replace(known, ruling=Ruling(lapse=Lapse(LapseReason.REPLACED, NOON)))


def cut(known: Project) -> Project:
    return replace(
        known, observed=replace(known.observed, incomplete=IncompleteReason.INTERRUPTED)
    )


CUT = cut(at(SOURCES + b"/cut", project(7)))
GONE = missing(at(SOURCES + b"/gone", approved(8)))
CHANGED = at(SOURCES + b"/changed", approved(6))
CHANGED = replace(
    CHANGED,
    observed=replace(CHANGED.observed, inspection=Inspection(b"", None, "", (("mcp", "1"),))),
    ruling=replace(CHANGED.ruling, files=(), name="changed"),
)
SELECTED = [
    API, lapsed(WEB), TOOL, CHANGED, BLOCKED, ODD, CUT, GONE,
    missing(at(SOURCES + b"/no", denied(9))),
]  # fmt: skip
SELECTIONS: Mapping[Selection, list[Project]] = {
    Selection.ALL: SELECTED,
    Selection.NAMED: SELECTED,
    Selection.PENDING: [API, lapsed(WEB)],
    Selection.LAPSED: [lapsed(WEB)],
    Selection.PUBLISHED: [TOOL, CHANGED],
    Selection.MISSING: [GONE],
    Selection.UNPUBLISHABLE: [ODD],
    Selection.INCOMPLETE: [CUT],
    Selection.CHANGED: [CHANGED],
}


@pytest.mark.parametrize("select", Selection)
def test_each_selection_returns_its_projects(select: Selection) -> None:
    catalog = Catalog.of(SELECTED, (), PLACES, 1)
    assert [p for p in SELECTED if is_selected(catalog, p, select)] == SELECTIONS[select]


def test_typed_paths_become_canonical(tmp_path: Path) -> None:
    (tmp_path / "real").mkdir()
    (tmp_path / "link").symlink_to("real")
    assert references.real_path("link/x", str(tmp_path)) == os.fsencode(tmp_path / "real" / "x")
    assert references.real_path("..", str(tmp_path / "real")) == os.fsencode(tmp_path)
    assert references.real_path("/etc/../etc", "/") == b"/etc"
