"""`rootsd config`: get, set, unset, help."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from rootsd.config.configuration import read_config
from rootsd.config.reference import settable_keys, tables
from support.fake_daemon import FakeDaemon, a_status
from support.terminal import Shell

TEXT = """\
# mine
[[parent]]
path = "/srv/src"

[sessions]  # few
max_connections = 9  # nine
"""
GUARD = "approval.guard"


@pytest.fixture
def file(rootsd_dir: Path, home: Path) -> Path:
    file = rootsd_dir / "config" / "config.toml"
    file.parent.mkdir(parents=True)
    file.write_text(TEXT)
    return file


def test_get_prints_the_value_in_the_file_or_the_default(shell: Shell, file: Path) -> None:
    assert shell.run("config", "get", "sessions.max_connections").out == "9\n"
    assert shell.run("config", "get", "sessions.max_connections_per_process").out == "64\n"
    assert shell.run("config", "get", "confine.network").out == "true\n"
    assert shell.run("config", "get", GUARD).out == "agents\n"


def test_get_prints_each_value_of_a_list_on_its_line_and_json_with_its_type(
    shell: Shell, file: Path
) -> None:
    file.write_text("[confine]\nread = ['~/a', '/b']\nnetwork = false\n")
    assert shell.run("config", "get", "confine.read").out == "~/a\n/b\n"
    assert shell.run("config", "get", "confine.write").out == ""
    for key, value in (("confine.read", ["~/a", "/b"]), ("confine.network", False)):
        assert json.loads(shell.run("config", "get", key, "--json").out)["value"] == value


def test_show_prints_every_key_that_can_be_set(shell: Shell, file: Path) -> None:
    shown = {line.split("\t")[0] for line in shell.run("config").out.splitlines()}
    assert {key.full_name for key in settable_keys()} <= shown


def test_set_keeps_everything_else_and_the_daemon_loads_it(
    shell: Shell, file: Path, daemon: FakeDaemon
) -> None:
    daemon.answers["reload"] = a_status(
        config={"file": str(file), "read_at": "2026-11-20T08:11:02Z", "checksum": "00000000",
                "changes": ["sessions changed"], "error": None},
    )  # fmt: skip
    done = shell.run("config", "set", "sessions.max_connections", "12")
    assert (done.status, done.out) == (0, "")
    assert done.err == "The daemon loaded it: sessions changed.\n"
    assert file.read_text() == TEXT.replace("= 9", "= 12")
    assert daemon.asked("reload") == [{"command": "config set sessions.max_connections 12"}]


def test_set_creates_the_file_and_the_table(shell: Shell, home: Path, rootsd_dir: Path) -> None:
    done = shell.run("config", "set", "confine.network", "false")
    assert (done.status, done.err) == (0, "Saved. The daemon is not running: rootsd up\n")
    written = rootsd_dir / "config" / "config.toml"
    assert written.read_text().endswith("\n\n[confine]\nnetwork = false\n")
    assert read_config(bytes(written)).wall.network is False


@pytest.mark.parametrize(
    ("words", "value"),
    [
        (["~/a"], ["~/a"]),
        (["~/a", "/b"], ["~/a", "/b"]),
        (['["~/a", "/b"]'], ["~/a", "/b"]),
        (["[]"], []),
    ],
)
def test_a_list_is_set_by_its_values_or_as_toml(
    shell: Shell, file: Path, words: list[str], value: list[str]
) -> None:
    assert shell.run("config", "set", "confine.read", *words).status == 0
    assert json.loads(shell.run("config", "get", "confine.read", "--json").out)["value"] == value


@pytest.mark.parametrize(
    ("key", "words", "says"),
    [
        (GUARD, ["agent"], 'approval.guard cannot be agent: expected one of "agents", "terminal"'),
        (GUARD, [""], "approval.guard cannot be (empty): expected one of"),
        ("sessions.max_connections", ["many"], "cannot be many: expected a whole number from 1"),
        (
            "sessions.max_connections",
            ["0"],
            "cannot be 0: expected a whole number from 1 to 65536",
        ),
        ("sessions.max_connections", ["1\nx = 2"], "expected a whole number"),
        ("confine.network", ["no"], "cannot be no: expected true or false"),
        ("confine.read", ["src"], 'cannot be ["src"]: expected a list of paths that start with /'),
        ("confine.read", ["[1]"], "cannot be [1]: expected a list of paths"),
    ],
)
def test_an_invalid_value_changes_nothing_and_names_the_allowed_ones(
    shell: Shell, file: Path, key: str, words: list[str], says: str
) -> None:
    done = shell.run("config", "set", key, *words)
    assert (done.status, done.out) == (78, "")
    assert says in done.err
    assert done.err.endswith(f"nothing was changed\n  try: rootsd config help {key}\n")
    assert file.read_text() == TEXT


def test_a_value_that_breaks_another_key_changes_nothing(shell: Shell, file: Path) -> None:
    done = shell.run("config", "set", "roots.refuse", "/srv/src")
    assert done.status == 78
    assert "key parent[0].path: /srv/src cannot be a parent" in done.err
    assert "nothing was changed" in done.err
    assert file.read_text() == TEXT


def test_set_and_unset_repair_the_key_that_makes_the_file_invalid(
    shell: Shell, file: Path
) -> None:
    broken = TEXT.replace("= 9", "= 'x'")
    for words in (("set", "sessions.max_connections", "9"), ("unset", "sessions.max_connections")):
        file.write_text(broken)
        assert shell.run("config", "get", "sessions.max_connections").status == 78
        assert shell.run("config", *words).status == 0
        assert shell.run("config", "check").status == 0


def test_set_does_not_write_into_a_file_with_another_error(shell: Shell, file: Path) -> None:
    broken = TEXT + "zzz = 1\n"
    file.write_text(broken)
    done = shell.run("config", "set", "confine.network", "false")
    assert done.status == 78
    assert "key sessions.zzz: there is no such key" in done.err
    assert file.read_text() == broken


def test_a_dry_run_only_validates(shell: Shell, file: Path, daemon: FakeDaemon) -> None:
    assert shell.run("config", "set", "confine.network", "false", "--dry-run").status == 0
    assert shell.run("config", "unset", "sessions.max_connections", "--dry-run").status == 0
    assert shell.run("config", "set", "confine.network", "x", "--dry-run").status == 78
    assert file.read_text() == TEXT
    assert daemon.asked("reload") == []


def test_unset_removes_the_key_and_the_default_counts(shell: Shell, file: Path) -> None:
    assert shell.run("config", "unset", "sessions.max_connections").status == 0
    assert file.read_text() == TEXT.replace("max_connections = 9  # nine\n", "")
    assert shell.run("config", "get", "sessions.max_connections").out == "1024\n"
    again = shell.run("config", "unset", "sessions.max_connections")
    assert (again.status, again.err) == (
        0, "sessions.max_connections is not set; its default is 1024.\n",
    )  # fmt: skip


@pytest.mark.parametrize(
    ("key", "says", "remedy"),
    [
        (
            "confine.raed",
            "there is no key confine.raed; did you mean confine.read?",
            "config {} confine.read{}",
        ),
        (
            "guard",
            "there is no key guard; did you mean approval.guard?",
            "config {} approval.guard{}",
        ),
        ("zzz", "there is no key zzz", "config help"),
        ("confine", "confine is a table; its keys are confine.read, ", "config help confine"),
        ("parent", "the file may have several [[parent]] tables", "parent --help"),
        ("parent[0].depth", "the file may have several [[parent]] tables", "parent --help"),
        ("parent.depth", "the file may have several [[parent]] tables", "parent --help"),
        ("a\x1b[2J", r"there is no key a\u{1b}[2J", "config help"),
    ],
)
def test_a_word_that_is_no_key_names_the_next_command(
    shell: Shell, file: Path, key: str, says: str, remedy: str
) -> None:
    for words in (("get", key), ("set", key, "x"), ("unset", key)):
        done = shell.run("config", *words)
        assert done.status == 5
        assert says in done.err
        command = remedy.format(words[0], " x" if words[0] == "set" else "")
        assert done.err.endswith(f"  try: rootsd {command}\n")
    assert file.read_text() == TEXT


def test_text_that_is_no_list_is_a_usage_error(shell: Shell, file: Path) -> None:
    for text in ("[", "[]\nx = 1", "[] = 2"):
        done = shell.run("config", "set", "confine.read", text)
        assert done.status == 2
        assert "the list cannot be read" in done.err
    assert file.read_text() == TEXT


def test_a_key_with_one_value_takes_no_more(shell: Shell, file: Path) -> None:
    done = shell.run("config", "set", GUARD, "off", "agents")
    assert done.status == 2
    assert "approval.guard takes one value" in done.err


def test_help_says_which_keys_are_required_and_set_by_another_verb(shell: Shell) -> None:
    parent = shell.run("config", "help", "parent.path").out
    assert "  default  required\n" in parent
    assert "  command  rootsd parent --help\n" in parent


def test_help_of_a_table_explains_each_of_its_keys(shell: Shell) -> None:
    for table in tables():
        out = shell.run("config", "help", table.name).out
        assert out.startswith(f"{table.header}\n")
        assert [key.full_name for key in table.keys if f"\n{key.full_name}\n" not in out] == []
    items = json.loads(shell.run("config", "help", "confine", "--json").out)["items"]
    assert {"key", "type", "default", "example", "meaning"} == set(items[0])
    assert shell.run("config", "help", "confine.raed").status == 5
