"""`rootsd import`: an untrusted file becomes proposals, or is refused."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from support.fake_daemon import FakeDaemon, a_decision, an_item
from support.terminal import Shell


def an_export(*items: Any, **changes: Any) -> str:  # noqa: ANN401
    whole = {"schema": "rootsd/1", "format": 1, "items": list(items), "rules": [], **changes}
    return json.dumps(whole)


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "roots.json"


def test_projects_are_sent_in_parts(daemon: FakeDaemon, shell: Shell, file: Path) -> None:
    daemon.answers["import"] = a_decision(an_item())
    odd = an_item("odd", path=None, path_b64="L3NyYy//")
    file.write_text(an_export(an_item(tags=["go", "work", "a\nb"]), odd, *[an_item()] * 499))
    done = shell.run("import", str(file))
    assert done.status == 0
    assert done.err == "2 proposed, 0 already known: rootsd review\n"
    first, second = daemon.asked("import")
    assert first["whats"][:2] == ["/src/api", "/src/\udcff"]
    assert first["names"][:2] == ["api", "odd"]
    assert first["tags"][:2] == ["go\nwork", ""]
    assert (len(first["whats"]), len(second["whats"])) == (500, 1)


def test_denials_and_rules_are_printed_and_not_imported(
    daemon: FakeDaemon, shell: Shell, file: Path
) -> None:
    daemon.answers["import"] = a_decision()
    rules = [{"verdict": "approved", "pattern": "/src/'$(rm)\x1b"}, "odd"]
    file.write_text(an_export(an_item(verdict="denied"), rules=rules))
    err = shell.run("import", str(file), "--dry-run").err
    assert "1 of these were denied there" in err
    assert "rootsd rule add approve '/src/'\"'\"'$(rm)\\u{1b}'" in err
    assert err.endswith("the file names 1 project; nothing was changed.\n")
    assert daemon.asked("import")[0]["effect"] == "dry-run"


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("", "not JSON"),
        ("[" * 100_000, "nested too deeply"),
        ("[]", "schema"),
        ('{"schema": "rootsd/1"}', "format 1"),
        (an_export(format=2), "format 1"),
        (an_export(items=None), "no list of items"),
        (an_export(rules=None), "no list of rules"),
        (an_export(7), "project 1"),
        (an_export({}), "project 1"),
        (an_export({"path": "/a", "name": 7}), "project 1"),
        (an_export({"path": "/a", "tags": [7]}), "project 1"),
        (an_export({"path": "/a", "tags": "go"}), "project 1"),
        (an_export({"path_b64": "!"}), "project 1"),
    ],
)
def test_a_file_that_is_not_an_export_is_refused_completely(
    daemon: FakeDaemon, shell: Shell, file: Path, text: str, why: str
) -> None:
    file.write_text(text)
    done = shell.run("import", str(file))
    assert (done.status, done.out) == (1, "")
    assert why in done.err
    assert daemon.requests == []


def test_an_empty_export_changes_nothing_and_a_missing_file_is_an_error(
    daemon: FakeDaemon, shell: Shell, file: Path
) -> None:
    file.write_text(an_export())
    assert shell.run("import", str(file)).err.startswith("0 proposed")
    assert shell.run("import", str(file) + "x").status == 2
    assert daemon.requests == []
