"""`rootsd ls`."""

from __future__ import annotations

import json
import subprocess
import sys
from base64 import b64encode
from pathlib import Path
from typing import Any, get_type_hints

import pytest

from rootsd.cli.text.field_columns import FIELDS
from rootsd.wire.projects import ProjectItem
from support.fake_daemon import FakeDaemon, a_listing, an_item
from support.terminal import HANG_GUARD, Shell

APPROVED = an_item(verdict="approved", published=True, tags=["work"])
RAW = b"/src/\xff\n"
ODD = an_item("odd", id="q1zd", path=None, path_b64=b64encode(RAW).decode(), uri=None)


@pytest.mark.parametrize(
    ("words", "query"),
    [
        ((), {}),
        (("--published",), {"select": "published"}),
        (("--verdict", "denied"), {"verdict": "denied"}),
        (("--tag", "work", "--published"), {"tag": "work", "select": "published"}),
        (("api", "acme/*"), {"refs": ["api", "acme/*"]}),
        (("--kind", "git", "--kind", "hg"), {"kinds": ["git", "hg"]}),
        (("--under", "~/src"), {"under": "~/src"}),
        (("--since", "2026-11-20T08:00:00Z"), {"since": "2026-11-20T08:00:00Z"}),
    ],
)
def test_the_words_become_a_query(
    daemon: FakeDaemon, shell: Shell, words: tuple[str, ...], query: dict[str, Any]
) -> None:
    daemon.answers["projects"] = a_listing(APPROVED)
    assert shell.run("ls", *words).out == "r7k2\tapi\tapproved\tgit\t/src/api\t#work\n"
    # "all" is the default and so is not sent.
    assert daemon.asked("projects") == [{"cwd": str(Path.cwd()), **query}]


SORTED = (
    an_item("b", id="r1", path="/src/x/b", kind="hg", discovered_at="2026-11-20T08:00:00Z"),
    an_item("A", id="r2", path="/src/y/A", kind="git", discovered_at="2026-11-21T08:00:00Z"),
    an_item("c", id="r3", path="/src/a/c", kind="git", discovered_at="2026-11-19T08:00:00Z"),
)


@pytest.mark.parametrize(
    ("words", "ids"),
    [
        ((), "r1 r2 r3"),
        (("--sort", "name"), "r2 r1 r3"),
        (("--sort", "path"), "r3 r1 r2"),
        (("--sort", "age"), "r2 r1 r3"),
        (("--sort", "kind"), "r2 r3 r1"),
        (("--sort", "age", "--reverse"), "r3 r1 r2"),
        (("--reverse",), "r3 r2 r1"),
    ],
)
@pytest.mark.parametrize("verb", ["ls", "pending"])
def test_projects_are_listed_in_the_order_asked_for(
    daemon: FakeDaemon, shell: Shell, verb: str, words: tuple[str, ...], ids: str
) -> None:
    daemon.answers["projects"] = a_listing(*SORTED)
    lines = shell.run(verb, *words).out.splitlines()
    assert [line.partition("\t")[0] for line in lines] == ids.split()
    items = json.loads(shell.run(verb, *words, "--json").out)["items"]
    assert [item["id"] for item in items] == ids.split()


RISKS = (
    an_item("none", id="r0", risk="", findings=[]),
    an_item("secret", id="r1", risk="secrets: .env",
            findings=[{"concern": "sensitive", "path": ".env", "detail": ""}]),
    an_item("unread", id="r2", risk=None),
    an_item("runs", id="r3", risk="runs code: .envrc", origin_owner="example.org/a",
            findings=[{"concern": "executed", "path": ".envrc", "detail": ""}]),
)  # fmt: skip


def test_risks_are_shown_and_sorted_only_on_request(daemon: FakeDaemon, shell: Shell) -> None:
    daemon.answers["projects"] = a_listing(*RISKS)
    rows = [line.split("\t") for line in shell.run("ls", "--sort", "risk").out.splitlines()]
    assert [(row[0], *row[6:]) for row in rows] == [
        ("r3", "runs code: .envrc", "example.org/a"), ("r1", "secrets: .env", ""),
        ("r2", "?", ""), ("r0", "", ""),
    ]  # fmt: skip
    assert all(line.count("\t") == 5 for line in shell.run("ls").out.splitlines())
    shown = shell.run_on_terminal("ls", "--sort", "risk").out.splitlines()
    assert shown[0].split() == ["ID", "NAME", "VERDICT", "KIND", "PATH", "RISK", "FROM"]
    paths = [line.split()[4] for line in shown[1:]]
    assert paths == ["/src/runs", "/src/secret", "/src/unread", "/src/none"]
    shell.run("ls", "--risk", "secrets")
    assert [(asked.get("risks"), asked.get("risk")) for asked in daemon.asked("projects")] == [
        ("thorough", None), (None, None), ("thorough", None), ("thorough", ["secrets"]),
    ]  # fmt: skip


FORMATTED = an_item(
    "api\t", id="r1", path="/src/\x1b[2J", published=True, tags=["go", "work"], risk="",
    findings=[{"concern": "sensitive", "path": ".env", "detail": ""}], request=None,
)  # fmt: skip


@pytest.mark.parametrize(
    ("fields", "row"),
    [
        ("name,id", "api\\u{9}\tr1"),
        ("path, parent", "file:///src/%1B%5B2J\t/src"),
        ("published,tags,lapsed,request,session", "true\tgo,work\t\t\t"),
        ("findings,risk,origin", "sensitive:.env\t\t"),
        ("id,id", "r1\tr1"),
    ],
)
@pytest.mark.parametrize("verb", ["ls", "pending"])
def test_a_format_prints_exactly_the_named_fields(
    daemon: FakeDaemon, shell: Shell, verb: str, fields: str, row: str
) -> None:
    daemon.answers["projects"] = a_listing(FORMATTED)
    assert shell.run(verb, "--format", fields).out == row + "\n"
    titles, shown, *_ = shell.run_on_terminal(
        verb, "--format", fields, columns=120
    ).out.splitlines()
    assert titles.split("  ")[0] == fields.partition(",")[0].upper()
    assert shown.split()[0] == (
        row.partition("\t")[0] if "path" not in fields else "/src/\\u{1b}[2J"
    )


def test_a_format_decides_what_is_read(daemon: FakeDaemon, shell: Shell) -> None:
    daemon.answers["projects"] = a_listing(FORMATTED)
    for verb in ("ls", "pending"):
        for fields in ("name,note", "name,risk", "origin_owner"):
            shell.run(verb, "--format", fields)
    assert [asked.get("risks") for asked in daemon.asked("projects")] == [
        None, "thorough", "thorough", None, "quick", "quick",
    ]  # fmt: skip
    done = shell.run("ls", "--format", "risk", "--json")
    assert json.loads(done.out)["items"] == [FORMATTED]


@pytest.mark.parametrize("fields", ["", "nme", "id,", "id,branch", "{id}", "id;name"])
def test_an_unknown_field_is_a_usage_error(shell: Shell, fields: str) -> None:
    done = shell.run("ls", "--format", fields)
    assert (done.status, done.out) == (2, "")
    assert "--format cannot be " in done.err


def test_a_format_does_not_go_with_paths(shell: Shell) -> None:
    for flag in ("--paths", "-0"):
        assert shell.run("ls", flag, "--format", "id").status == 2


def test_every_field_of_a_format_is_in_the_schema() -> None:
    assert set(FIELDS) < set(get_type_hints(ProjectItem))


@pytest.mark.parametrize(
    ("option", "value"),
    [("--sort", "size"), ("--risk", "high"), ("--kind", "cvs"), ("--since", "soon")],
)
def test_an_unknown_value_is_a_usage_error(shell: Shell, option: str, value: str) -> None:
    for verb in ("ls", "pending"):
        done = shell.run(verb, option, value)
        assert (done.status, done.out) == (2, "")
        assert value in done.err


def test_a_terminal_gets_a_table_in_color(daemon: FakeDaemon, shell: Shell) -> None:
    daemon.answers["projects"] = a_listing(APPROVED)
    out = shell.run_in_color("ls").out
    assert "\x1b[32mapproved" in out


def test_an_empty_list_says_so_on_a_terminal(daemon: FakeDaemon, shell: Shell) -> None:
    daemon.answers["projects"] = a_listing()
    assert shell.run_on_terminal("ls").out == "No projects yet. Try: rootsd up ~/src\n"
    assert shell.run_on_terminal("ls", "--published").out == "No project matches.\n"
    assert shell.run_on_terminal("ls", "--since", "2d").out == "No project matches.\n"


def raw(*words: str) -> bytes:
    done = subprocess.run(
        [sys.executable, "-m", "rootsd", "ls", *words],
        capture_output=True, check=True, timeout=HANG_GUARD,
    )  # fmt: skip
    return done.stdout


def test_paths_for_a_pipe_are_the_bytes_on_disk(daemon: FakeDaemon) -> None:
    decomposed = "/src/a\u0301"
    plain = an_item(path=decomposed)
    not_utf8 = an_item(path=None, path_b64=b64encode(b"/src/\xff").decode())
    daemon.answers["projects"] = a_listing(plain, not_utf8)
    assert raw("--paths") == decomposed.encode() + b"\n/src/\xff\n"


def test_a_path_with_a_newline_needs_nul(daemon: FakeDaemon, shell: Shell) -> None:
    daemon.answers["projects"] = a_listing(APPROVED, ODD)
    done = shell.program("ls", "--paths")
    assert done.out == "/src/api\n"
    assert "use -0" in done.err
    assert done.err.count("\n") == 1
    assert raw("-0") == b"/src/api\0" + RAW + b"\0"


def test_paths_for_a_terminal_are_safe(daemon: FakeDaemon, shell: Shell) -> None:
    daemon.answers["projects"] = a_listing(an_item(path="/src/\x1b[2J"))
    assert shell.run_on_terminal("ls", "--paths").out == "/src/\\u{1b}[2J\n"


def test_json_overrides_paths(daemon: FakeDaemon, shell: Shell) -> None:
    daemon.answers["projects"] = a_listing(APPROVED, ODD)
    assert json.loads(shell.run("ls", "--paths", "--json").out)["items"] == [APPROVED, ODD]


@pytest.mark.usefixtures("daemon")
def test_five_thousand_rows_are_printed_in_one_go(daemon: FakeDaemon, shell: Shell) -> None:
    daemon.answers["projects"] = a_listing(*(an_item(f"p{n}") for n in range(5_000)))
    assert shell.run("ls").out.count("\n") == 5_000
    assert shell.run_on_terminal("ls").out.count("\n") == 5_002
