"""What `rootsd up` and `rootsd doctor` name as left out, and what they keep quiet about."""

from __future__ import annotations

from pathlib import Path

import pytest
from msgspec.structs import replace

from rootsd.core.exclusion import Exclusion, ExclusionReason
from rootsd.core.model import Parent
from rootsd.disk import survey as survey_module
from rootsd.disk.hung_mounts import HungMountDetector
from rootsd.disk.markers import WalkRules
from rootsd.disk.survey import FollowLinks, survey
from support.repositories import fake_repository, raw

R = ExclusionReason


def _left_out(top: Path, rules: WalkRules | None = None, *others: Path) -> dict[str, str]:
    parent = Parent(raw(top))
    parents = (parent.path, *map(raw, others))
    links = FollowLinks(HungMountDetector(lambda: ()).real_path, lambda _: True, parents)
    found = survey(parent, rules or WalkRules.of(parent), links)
    return {str(Path(each.at.decode()).relative_to(top)): each.reason.value for each in found}


def test_what_may_hold_projects_is_named(tmp_path: Path) -> None:
    top, outside = tmp_path / "src", tmp_path / "outside"
    for name in (".archive/one", "venv/two", "a/b/c/d/three", "disk", "net", "known/four"):
        fake_repository(top / name)
    fake_repository(outside / "five")
    fake_repository(tmp_path / "six")
    (top / "linked").symlink_to(outside)
    (top / "repo").symlink_to(tmp_path / "six")
    (top / "again").symlink_to(top / "known")
    stops = {raw(top / "disk"): R.MOUNT, raw(top / "net"): R.REMOTE_MOUNT}
    rules = WalkRules.of(Parent(raw(top)), stops)
    named = {
        ".archive": "hidden",
        "venv": "skipped name",
        "a/b/c/d/three": "too deep",
        "disk": "mount",
        "net": "mount of another machine",
        "linked": "symbolic link",
        "repo": "symbolic link",
    }
    assert _left_out(top, rules) == named
    crossing = replace(rules, crossed=frozenset(stops))
    assert _left_out(top, crossing).keys() == named.keys() - {"disk", "net"}
    assert _left_out(top, rules, outside).keys() == named.keys() - {"linked"}


def test_nothing_without_a_repository_is_named(tmp_path: Path) -> None:
    for name in (".cache/x", "venv/lib", "a/b/c/d/e/f", ".Trash/x", "plain"):
        (tmp_path / name).mkdir(parents=True)
    fake_repository(tmp_path / ".Trash" / "x")
    fake_repository(tmp_path / ".github")
    (tmp_path / "tool").mkdir()
    (tmp_path / "tool" / "package.json").touch()
    fake_repository(tmp_path / "tool" / "node_modules" / "x")
    (tmp_path / "dead").symlink_to("nowhere")
    (tmp_path / "loop").symlink_to("loop")
    (tmp_path / "up").symlink_to("..")
    fake_repository(tmp_path.parent / f"{tmp_path.name}-beside")
    assert _left_out(tmp_path) == {}


def test_a_link_to_what_does_not_respond_is_not_followed(tmp_path: Path) -> None:
    top = tmp_path / "src"
    fake_repository(tmp_path / "far")
    top.mkdir()
    (top / "link").symlink_to(tmp_path / "far")
    parent = Parent(raw(top))

    def found(responds: set[Path]) -> list[Exclusion]:
        links = FollowLinks(
            HungMountDetector(lambda: ()).real_path,
            lambda path: path in set(map(raw, responds)),
            (parent.path,),
        )
        return survey(parent, WalkRules.of(parent), links)

    assert found({top}) == []
    assert [each.reason for each in found({top, tmp_path / "far"})] == [R.LINK]


def test_a_survey_is_bounded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for number in range(60):
        fake_repository(tmp_path / f".h{number}" / "x")
    assert len(_left_out(tmp_path)) == 50
    monkeypatch.setattr(survey_module, "_MAX_SECONDS", -1.0)
    assert _left_out(tmp_path) == {}
