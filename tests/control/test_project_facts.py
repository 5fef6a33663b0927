"""Facts of projects: read by the helper in batches, or by the daemon without a helper."""

from __future__ import annotations

from pathlib import Path

from msgspec.structs import replace

from rootsd.control.project_reader import ProjectReader
from rootsd.core.model import Parent, Presence, Project, ProjectKind
from rootsd.helper.client import Helper, UnavailableHelper
from rootsd.helper.projects import MAX_PROJECTS_PER_QUESTION
from support.helper_process import real_helper
from support.repositories import make_repository, raw
from support.sample_decisions import project


def _at(number: int, path: bytes, **observed: object) -> Project:
    known = project(number)
    seen = replace(known.observed, kind=ProjectKind.GIT, **observed)  # type: ignore[arg-type]
    return replace(known, path=path, observed=seen)


def _reader(helper: Helper, *parents: Parent) -> ProjectReader:
    return ProjectReader(helper, lambda: parents, lambda _: True)


async def test_each_project_gets_its_own_facts(tmp_path: Path) -> None:
    count = 2 * MAX_PROJECTS_PER_QUESTION + 1
    projects = []
    for number in range(count):
        (tmp_path / str(number)).mkdir()
        (tmp_path / str(number) / "go.mod").write_text(f"module m{number}")
        projects.append(_at(number, raw(tmp_path / str(number))))
    with real_helper() as helper:
        facts = await _reader(helper).facts(projects)
    assert [each and each["declared_names"] for each in facts] == [[f"m{n}"] for n in range(count)]


async def test_the_innermost_parent_decides_which_files_are_project_files(tmp_path: Path) -> None:
    one, nested = tmp_path / "in" / "one", tmp_path / "in" / "one" / "nested"
    nested.mkdir(parents=True)
    for file in (one / "go.mod", one / "Justfile", nested / "Justfile"):
        file.touch()
    parents = (
        Parent(raw(tmp_path / "in"), project_files=(b"Justfile", b"!go.mod")),
        Parent(raw(tmp_path), project_files=(b"README",)),
        Parent(b"/none/in/one"),
    )
    expected = (["Justfile"], [{"concern": "nested", "path": "nested", "detail": "project"}])
    with real_helper() as helper:
        for looked in (helper, UnavailableHelper("a test")):
            (facts,) = await _reader(looked, *parents).facts([_at(1, raw(one))])
            assert facts is not None
            assert (facts["project_files"], facts["findings"]) == expected


async def test_a_repository_has_its_last_commit(tmp_path: Path) -> None:
    make_repository(tmp_path / "one")
    with real_helper() as helper:
        (facts,) = await _reader(helper).facts([_at(1, raw(tmp_path / "one"))])
    assert facts is not None
    assert facts["last_commit"] is not None
    assert facts["last_commit"]["summary"] == "one"
    assert (facts["upstream"], facts["remotes"]) == (None, [])


async def test_unreachable_projects_and_uris_are_not_read() -> None:
    missing = _at(1, b"/none", presence=Presence.MISSING)
    uri = replace(project(2), path=b"https://example.org")
    uri = replace(uri, observed=replace(uri.observed, kind=ProjectKind.URI))
    assert await _reader(UnavailableHelper("a test")).facts([missing, uri]) == [None, None]


async def test_without_a_helper_the_daemon_reads_the_facts(tmp_path: Path) -> None:
    make_repository(tmp_path / "one")
    (facts,) = await _reader(UnavailableHelper("a test")).facts([_at(1, raw(tmp_path / "one"))])
    assert facts is not None
    assert facts["branch"] == "main"
    assert facts["last_commit"] is None
    assert "remotes" not in facts
