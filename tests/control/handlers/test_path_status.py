"""The status of a path, and all reasons for and against it."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from msgspec.structs import replace

from rootsd.control.handlers.path_status import PathStatusHandlers
from rootsd.core.access import Access
from rootsd.core.decide import VerdictReason
from rootsd.core.errors import AmbiguousReference
from rootsd.core.exclusion import Exclusion, ExclusionReason
from rootsd.core.model import (
    Decision,
    IncompleteReason,
    LapseReason,
    Presence,
    Project,
    ProjectKind,
    Rule,
    Ruling,
    Verdict,
)
from rootsd.core.paths import bytes_of, text_of
from rootsd.wire.projects import CheckQuery, PathCheckResult, WhyQuery, WhyResult
from rootsd.wire.request import BadRequest
from support.control_harness import ControlHarness
from support.ledger_harness import at, lapsed, path, rule
from support.sample_decisions import NOON, PERSON, approved, denied, granted, identity, project


def seen(known: Project, **changes: object) -> Project:
    return replace(known, observed=replace(known.observed, **changes))  # type: ignore[arg-type]


def suspended(known: Project) -> Project:
    return seen(known, presence=Presence.SUSPENDED)


def read_only(known: Project) -> Project:
    decision = Decision(Verdict.APPROVED, PERSON, NOON, known.observed.identity, Access.READ)
    return replace(known, ruling=replace(known.ruling, decision=decision))


INSIDE = at(path(1) + b"/in", approved(2))


@pytest.mark.parametrize(
    ("projects", "where", "published", "verdict", "root"),
    [
        ([approved(1)], "/home/ann/src/p1", True, "approved", "p1"),
        ([approved(1)], "/home/ann/src/p1/deep/file", True, "approved", "p1"),
        ([approved(1)], "/home/ann/link/file", True, "approved", "p1"),
        ([approved(1)], "/home/ann/src/p10", False, None, None),
        ([approved(1)], "/home/ann/src", False, None, None),
        ([project(1)], "/home/ann/src/p1/x", False, "pending", None),
        ([lapsed(project(1))], "/home/ann/src/p1", False, "pending", None),
        ([denied(1)], "/home/ann/src/p1/x", False, "denied", None),
        ([denied(1), INSIDE], "/home/ann/src/p1/in/x", False, "denied", None),
        ([suspended(approved(1))], "/home/ann/src/p1", False, "pending", None),
        ([approved(1), replace(INSIDE, ruling=denied(2).ruling)], "/home/ann/src/p1", False,
         "pending", None),
        ([], "/", False, None, None),
    ],
)  # fmt: skip
async def test_the_status_of_a_path(
    projects: Sequence[Project],
    where: str,
    published: bool,
    verdict: str | None,
    root: str | None,
) -> None:
    checked = await ControlHarness(*projects).ask(CheckQuery(where))
    assert [*checked, "named_path"] == list(PathCheckResult.__annotations__)
    access = "read-write" if published else None
    assert checked == {
        "published": published, "verdict": verdict, "root": root, "access": access,
    }  # fmt: skip


PENDING_INSIDE = at(path(1) + b"/in", project(2))


@pytest.mark.parametrize(
    "projects",
    [
        [approved(1)], [project(1)], [denied(1)], [lapsed(project(1))], [suspended(approved(1))],
        [approved(1), PENDING_INSIDE], [project(1), INSIDE], [approved(1), INSIDE],
        [approved(1), replace(INSIDE, ruling=denied(2).ruling)], [denied(1), INSIDE],
        [approved(1), suspended(INSIDE)], [],
    ],
)  # fmt: skip
@pytest.mark.parametrize(
    "where", ["/home/ann/src/p1", "/home/ann/src/p1/in", "/home/ann/src/p1/in/x"]
)
async def test_check_and_why_agree(projects: Sequence[Project], where: str) -> None:
    control = ControlHarness(*projects)
    checked, why = await control.ask(CheckQuery(where)), await control.ask(WhyQuery(where))
    assert (why["published"], why["root"]) == (checked["published"], checked["root"])


async def test_why_tells_the_root_around_a_pending_project() -> None:
    why = await ControlHarness(approved(1), PENDING_INSIDE).ask(WhyQuery("/home/ann/src/p1/in"))
    assert (why["published"], why["root"]) == (True, "p1")
    assert [(item["name"], item["verdict"]) for item in why["items"]] == [("in", "pending")]


@pytest.mark.parametrize(
    ("outer", "inner", "access"),
    [
        (approved(1), read_only(INSIDE), "read"),
        (read_only(approved(1)), INSIDE, "read-write"),
    ],
)
async def test_in_nested_roots_the_innermost_one_counts(
    outer: Project, inner: Project, access: str
) -> None:
    control = ControlHarness(outer, inner)
    checked = await control.ask(CheckQuery("/home/ann/src/p1/in/file"))
    assert (checked["root"], checked["access"]) == ("p2", access)
    assert (await control.ask(CheckQuery("/home/ann/src/p1/file")))["root"] == "p1"


async def test_with_a_workspace_only_its_roots_count_as_published() -> None:
    other = replace(approved(3), ruling=replace(approved(3).ruling, tags=("private",)))
    control = ControlHarness(approved(1), approved(2), other, denied(4), project(5))
    where = "/home/ann/src/p1/deep/in"
    seen = [await control.ask(CheckQuery(f"/home/ann/src/p{n}/x", where)) for n in range(1, 6)]
    assert [answer["root"] for answer in seen] == ["p1", "p2", None, None, None]
    verdicts = ["approved", "approved", "approved", "denied", "pending"]
    assert [answer["verdict"] for answer in seen] == verdicts
    for start in ("/home/ann/src/p5", "/home/ann/src/p4", "/nowhere", "/"):
        outside = await control.ask(CheckQuery("/home/ann/src/p1/x", start))
        assert not outside["published"], f"a session in {start} has no workspace with p1"
    with pytest.raises(BadRequest):
        await control.ask(CheckQuery("/home/ann/src/p1", "src"))


async def test_a_uri_has_the_status_of_its_project_and_longer_uris_are_unknown() -> None:
    uri = "https://example.com/v1"
    observed = replace(project(1).observed, kind=ProjectKind.URI, identity=None)
    decision = Decision(Verdict.APPROVED, PERSON, NOON, None)
    known = Project(bytes_of(uri), "u1", observed, Ruling(decision, name="docs"))
    control = ControlHarness(known, at(b"https://example.com/v2", denied(2)))
    assert (await control.ask(CheckQuery(uri)))["root"] == "docs"
    why = await control.ask(WhyQuery(uri))
    assert (why["published"], why["path"], why["items"][0]["uri"]) == (True, uri, uri)
    assert [voice["ground"] for voice in why["voices"] if voice["decides"]] == ["approved"]
    assert (await control.ask(CheckQuery("https://example.com/v2")))["verdict"] == "denied"
    for other in (uri + "/x", "https://example.com", "https://example.com/v10"):
        assert (await control.ask(CheckQuery(other)))["verdict"] is None
        assert (await control.ask(WhyQuery(other)))["items"] == []


async def test_check_and_why_verify_the_folder_first() -> None:
    where = "/home/ann/link"
    control = ControlHarness(approved(1))
    control.world.disk.folders[path(1)] = identity(10)
    checked = await control.ask(CheckQuery(where))
    assert (checked["published"], checked["verdict"]) == (False, "pending")
    control = ControlHarness(approved(1))
    control.world.disk.folders[path(1)] = identity(10)
    why = await control.ask(WhyQuery(where))
    assert [v["ground"] for v in why["voices"] if v["decides"]] == ["approval lapsed"]
    assert not why["published"]


@pytest.mark.parametrize("where", ["src/p1", "", ".", "/a\0b", "/\ud800", "a://\ud800"])
async def test_only_an_absolute_path_or_a_uri_has_a_status(where: str) -> None:
    for query in (CheckQuery(where), WhyQuery(where)):
        with pytest.raises(BadRequest):
            await ControlHarness(approved(1)).ask(query)


async def test_all_reasons_are_listed_by_precedence_and_one_decides() -> None:
    ruled = [rule(Verdict.APPROVED, b"/home/ann/src/*", 1), rule(Verdict.DENIED, path(2), 2)]
    ruling = replace(approved(1).ruling, grants=granted(1).ruling.grants)
    both = replace(approved(1), ruling=ruling)
    why = await ControlHarness(both, approved(2), rules=ruled).ask(
        WhyQuery("/home/ann/src/p1/in/file")
    )
    assert why.keys() == WhyResult.__annotations__.keys()
    assert [(v["ground"], v["verdict"], v["by"]) for v in why["voices"]] == [
        ("denied", None, None),
        ("a folder above is denied", None, None),
        ("deny rule", None, None),
        ("holds a denied project", None, None),
        ("approved", "approved", "/home/ann/src/p1"),
        ("approve rule", "approved", "1: /home/ann/src/*"),
        ("worktree of an approved checkout", None, None),
    ]
    assert [v["ground"] for v in why["voices"] if v["decides"]] == ["approved"]
    assert (why["published"], why["obstacles"]) == (True, [])
    assert why["items"][0]["name"] == "p1"


OVERRIDDEN = [
    (approved(1), rule(Verdict.DENIED, path(1), 7),
     [("deny rule", "7: /home/ann/src/p1"), ("approved", "/home/ann/src/p1")]),
    *((known, rule(Verdict.APPROVED, b"/home/ann/src/*", 3),
       [("denied", "/home/ann/src/p1"), ("approve rule", "3: /home/ann/src/*")])
      for known in (denied(1), replace(approved(1), ruling=denied(1).ruling))),
]  # fmt: skip


@pytest.mark.parametrize(("known", "ruled", "spoken"), OVERRIDDEN)
async def test_overridden_reasons_are_listed_too(
    known: Project, ruled: Rule, spoken: list[tuple[str, str]]
) -> None:
    why = await ControlHarness(known, rules=[ruled]).ask(WhyQuery("/home/ann/src/p1"))
    said = [(v["ground"], v["by"]) for v in why["voices"] if v["verdict"]]
    assert said == spoken
    assert [v["ground"] for v in why["voices"] if v["decides"]] == [spoken[0][0]]
    assert not why["published"]


@pytest.mark.parametrize(
    ("known", "hazard", "ground", "obstacles"),
    [
        (project(1), None, VerdictReason.UNDECIDED, []),
        (suspended(approved(1)), None, VerdictReason.APPROVED, ["it is suspended"]),
        (
            seen(project(1), incomplete=IncompleteReason.LOCKED),
            None,
            VerdictReason.UNDECIDED,
            [
                "it is incomplete (left locked): a lock was left before the first commit, so files"
                " may be missing (to approve it anyway: rootsd approve /home/ann/src/p1"
                " --incomplete)"
            ],
        ),
        (
            seen(approved(1), hazard=LapseReason.EXPOSED),
            None,
            VerdictReason.APPROVED,
            ["it cannot be published: exposed"],
        ),
        (
            seen(approved(1), hazard=LapseReason.EXPOSED),
            "it belongs to another user",
            VerdictReason.APPROVED,
            ["it cannot be published: it belongs to another user"],
        ),
    ],
)
async def test_obstacles_to_publishing_are_listed_beside_the_verdict(
    known: Project, hazard: str | None, ground: VerdictReason, obstacles: list[str]
) -> None:
    control = ControlHarness(known)
    if hazard:
        control.discovery.hazards[path(1)] = hazard
    why = await control.ask(WhyQuery("/home/ann/src/p1"))
    assert [v["ground"] for v in why["voices"] if v["decides"]] == [ground.value]
    assert (why["published"], why["obstacles"]) == (False, obstacles)


NOT_THERE = "it was not there when rootsd looked last (rootsd scan)"


@pytest.mark.parametrize(
    ("where", "reason"),
    [("/srv/none", []), ("/home/ann", ["it is your home folder"])],
)
async def test_a_path_outside_all_projects_says_so(where: str, reason: list[str]) -> None:
    why = await ControlHarness(approved(1)).ask(WhyQuery(where))
    assert (why["items"], why["voices"]) == ([], [])
    assert why["obstacles"] == ["no project is known at or above it", *reason, NOT_THERE]


@pytest.mark.parametrize("reason", ExclusionReason)
async def test_each_reason_to_leave_a_folder_out_has_a_sentence(reason: ExclusionReason) -> None:
    control = ControlHarness()
    where, at = b"/home/ann/src/a b/c\n", b"/home/ann/src/a b"
    control.discovery.exclusions[where] = Exclusion(reason, at, b"/home/ann/src", 3)
    why = await control.ask(WhyQuery(text_of(where)))
    [_, sentence] = why["obstacles"]
    assert sentence.isprintable()
    assert any(shown in sentence for shown in ("/home/ann/src", "a b"))
    if reason is not ExclusionReason.NO_FOLDER:
        command = sentence.rpartition("(")[2].removesuffix(")")
        assert "a b" not in command or "'" in command  # it can be pasted


async def test_a_link_is_named_and_then_the_reason_for_its_target() -> None:
    control = ControlHarness()
    link, target = b"/home/ann/link/x", b"/home/ann/src/p1/x"
    control.discovery.exclusions = {
        link: Exclusion(ExclusionReason.LINK, b"/home/ann/link", b"src/p1"),
        target: Exclusion(ExclusionReason.OUTSIDE, target),
    }
    why = await control.ask(WhyQuery(text_of(link)))
    assert why["obstacles"][1:] == [
        "/home/ann/link is a symbolic link to src/p1, and rootsd follows no links",
        "no watched folder contains /home/ann/src/p1/x (rootsd add /home/ann/src/p1/x)",
    ]


async def test_a_nested_repository_is_named_beside_the_project_around_it() -> None:
    control = ControlHarness(project(1))
    inside = path(1) + b"/vendor/lib"
    control.discovery.exclusions[inside] = Exclusion(
        ExclusionReason.IN_PROJECT, path(1) + b"/vendor", path(1)
    )
    why = await control.ask(WhyQuery(text_of(inside)))
    assert why["obstacles"] == [
        "it lies in /home/ann/src/p1, and rootsd proposes nothing inside a project"
        " (rootsd add /home/ann/src/p1/vendor/lib)"
    ]


async def test_a_plain_path_is_resolved_without_a_thread() -> None:
    control = ControlHarness(approved(1))
    asked: list[bytes] = []

    def is_canonical(where: bytes) -> bool:
        asked.append(where)
        return where == path(1)

    def real_path(_typed: str, _cwd: str) -> bytes:
        return path(2)

    services = replace(control.services, real_path=real_path, is_canonical=is_canonical)
    handlers = PathStatusHandlers(services)
    assert (await handlers.check(CheckQuery(text_of(path(1)))))["root"] == "p1"
    assert (await handlers.check(CheckQuery("/home/ann/link")))["published"] is False
    assert asked == [path(1), b"/home/ann/link"]


def _handlers(control: ControlHarness) -> PathStatusHandlers:
    services = replace(control.services, real_path=lambda typed, _: bytes_of(typed))
    return PathStatusHandlers(services)


@pytest.mark.parametrize(
    ("word", "number"),
    [("p1", 1), ("r2", 2), ("p[2]", 2), ("/home/ann/*/p1", 1), ("src/p2", 2), ("p2*", 2)],
)
async def test_a_word_that_is_no_path_is_a_reference(word: str, number: int) -> None:
    control = ControlHarness(approved(1), project(2))
    handlers = _handlers(control)
    nowhere = f"/elsewhere/{word}"
    why = await handlers.why(WhyQuery(nowhere, word))
    assert why["path"] == text_of(path(number))
    status = await handlers.check(CheckQuery(nowhere, name=word))
    assert status["named_path"] == text_of(path(number))
    assert status["published"] is (number == 1)


@pytest.mark.parametrize("word", ["p*", "/home/ann/src/*"])
async def test_a_glob_of_several_projects_is_ambiguous(word: str) -> None:
    handlers = _handlers(ControlHarness(approved(1), project(2)))
    for asked in (handlers.why(WhyQuery("/x", word)), handlers.check(CheckQuery("/x", name=word))):
        with pytest.raises(AmbiguousReference) as caught:
            await asked
        assert caught.value.choices == ("p1", "p2")


async def test_a_word_that_names_nothing_is_the_path() -> None:
    """A file that is still to be written is in the root of its folder."""
    handlers = _handlers(ControlHarness(approved(1)))
    new_file = f"{text_of(path(1))}/new.py"
    status = await handlers.check(CheckQuery(new_file, name="new.py"))
    assert (status["published"], "named_path" in status) == (True, False)
    assert (await handlers.why(WhyQuery("/elsewhere/none", "none")))["items"] == []


@pytest.mark.parametrize("word", ["a\\u{a}b", "/home/ann/src/a\\u{a}b", "au{a}b"])
async def test_the_label_of_a_project_means_that_project(word: str) -> None:
    where = b"/home/ann/src/a\nb"
    handlers = _handlers(ControlHarness(at(where, project(1))))
    why = await handlers.why(WhyQuery("/nowhere/" + word.removeprefix("/"), word))
    assert why["path"] == text_of(where)
