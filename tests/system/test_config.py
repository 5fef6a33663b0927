"""The configuration file: what it may say, and how exactly it is told what is wrong."""

from __future__ import annotations

import os
from functools import partial
from pathlib import Path

import pytest

from rootsd.core.errors import BadConfig, ErrorCode
from rootsd.core.guard import Guard
from rootsd.core.model import NestedPolicy, Parent
from rootsd.core.paths import RefusedPlaces
from rootsd.disk.safety import explain_alias
from rootsd.system.config import (
    MAX_BYTES,
    Approval,
    Config,
    SessionLimits,
    canonical_path,
    parse_config,
    read_config,
)

FILE = b"/home/u/.config/rootsd/config.toml"


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("HOME", str(tmp_path))
    return tmp_path


def test_a_system_folder_under_another_name_is_no_parent(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (home / "src").mkdir()
    (home / "alias").symlink_to("src")
    judge = partial(explain_alias, places=[bytes(home / "alias")])
    monkeypatch.setattr("rootsd.system.config.explain_alias", judge)
    with pytest.raises(BadConfig, match="alias under another name"):
        parse_config("[[parent]]\npath = '~/src'", FILE)


def test_no_file_is_the_empty_configuration(tmp_path: Path) -> None:
    assert read_config(bytes(tmp_path / "none.toml")) == Config()


def test_a_parent_with_every_key(home: Path) -> None:
    text = """
        # my folders
        [[parent]]
        path = "~/src"
        depth = 2
        skip = ["old", "tmp-*"]
        project_files = ["Justfile", "*.nimble", "!package.json", "!*.sln"]
        nested = "vcs"

        [[parent]]
        path = '/srv/work'
    """
    assert parse_config(text, FILE).parents == (
        Parent(
            bytes(home / "src"),
            2,
            (b"old", b"tmp-*"),
            NestedPolicy.VCS,
            (b"Justfile", b"*.nimble", b"!package.json", b"!*.sln"),
        ),
        Parent(b"/srv/work"),
    )


def test_the_caps_on_mcp_connections_are_read_and_have_their_usual_values() -> None:
    text = "[sessions]\nmax_connections = 5000\n"
    assert parse_config(text, FILE).sessions == SessionLimits(5000, 64)
    assert parse_config("", FILE).sessions == SessionLimits(1024, 64)
    text = "[sessions]\nmax_connections_per_process = 1\n[[parent]]\npath = '/srv/a'"
    assert parse_config(text, FILE) == Config(
        (Parent(b"/srv/a"),), sessions=SessionLimits(1024, 1)
    )


def test_parents_may_be_written_inline() -> None:
    assert parse_config("parent = [{path = '/srv/a'}]", FILE).parents == (Parent(b"/srv/a"),)


def test_the_home_folder_may_be_a_parent(home: Path) -> None:
    assert parse_config("[[parent]]\npath = '~'", FILE).parents == (Parent(bytes(home)),)


def test_a_path_is_made_canonical_even_where_nothing_is(home: Path) -> None:
    (home / "real").mkdir()
    (home / "link").symlink_to("real")
    text = "[[parent]]\npath = '~/link/../link/gone'"
    assert parse_config(text, FILE).parents[0].path == bytes(home / "real" / "gone")


def test_a_path_that_is_not_utf8_survives_being_made_canonical(tmp_path: Path) -> None:
    folder = bytes(tmp_path) + b"/\xff"
    Path(os.fsdecode(folder)).mkdir()
    assert canonical_path(folder.decode("utf-8", "surrogateescape")) == folder


@pytest.mark.parametrize(
    ("text", "line", "key", "said"),
    [
        ("parnet = 1", 1, "parnet", "did you mean parent?"),
        ("[zzz]\na = 1", 1, "zzz", "known are approval, parent, roots, sessions"),
        ("[[parent]]\npath = '/srv/a'\n\n# x\n[[parent]]\npaht = '/srv/b'", 6, "paht", "path?"),
        ("[[parent]]\npath = '/srv/a'\ndept = 3", 3, "dept", "did you mean depth?"),
        ("[[parent]]\ndepth = 3", 1, "path", "needs a path"),
        ("[[parent]]\npath = 3", 2, "path", "not a path in quotes"),
        ("[[parent]]\npath = ''", 2, "path", "not a path in quotes"),
        ("[[parent]]\npath = 'src'", 2, "path", "start with / or ~/"),
        ("[[parent]]\npath = '~nobody-by-this-name/x'", 2, "path", "start with / or ~/"),
        ("[[parent]]\npath = '/'", 2, "path", "cannot be a parent"),
        ("[[parent]]\npath = '/etc'", 2, "path", "cannot be a parent"),
        ("[[parent]]\npath = '/srv/a'\ndepth = true", 3, "depth", "whole number from 1 to 64"),
        ("[[parent]]\npath = '/srv/a'\ndepth = 0", 3, "depth", "whole number from 1 to 64"),
        ("[[parent]]\npath = '/srv/a'\n'depth' = 65", 3, "depth", "whole number from 1 to 64"),
        ("[[parent]]\npath = '/srv/a'\nskip = 'old'", 3, "skip", "not a list of names"),
        ("[[parent]]\npath = '/srv/a'\nskip = [1]", 3, "skip", "not a list of names"),
        ("[[parent]]\npath = '/srv/a'\nproject_files = [1]", 3, "project_files", "list of names"),
        ("[[parent]]\npath = '/srv/a'\nproject_files = ['a/b']", 3, "project_files", "names"),
        ("[[parent]]\npath = '/srv/a'\nproject_files = ['a*']", 3, "project_files", "names"),
        ("[[parent]]\npath = '/srv/a'\nproject_files = ['!']", 3, "project_files", "names"),
        ("[[parent]]\npath = '/srv/a'\nnested = 'all'", 3, "nested", "none, vcs, members"),
        ("[[parent]]\npath = '/srv/a'\n[[parent]]\npath = '/srv//a'", 4, "path", "already"),
        ("[sessions]\nmax_conections = 9", 2, "max_conections", "did you mean max_connections?"),
        ("[sessions]\nmax_connections = 0", 2, "max_connections", "number from 1 to 65536"),
        ("[sessions]\nmax_connections = 9e9", 2, "max_connections", "number from 1 to 65536"),
        (
            "[sessions]\n\nmax_connections_per_process = true",
            3,
            "max_connections_per_process",
            "number from 1 to 65536",
        ),
        ("sessions = 9", 1, "sessions", "written [sessions]"),
        ("[[sessions]]\nmax_connections = 9", 1, "sessions", "written [sessions]"),
        ("# hi\nparent = '/srv/a'", 2, "parent", "written [[parent]]"),
        ("[parent]\npath = '/srv/a'", 1, "parent", "written [[parent]]"),
    ],
)
def test_an_error_names_file_line_and_key(text: str, line: int, key: str, said: str) -> None:
    with pytest.raises(BadConfig) as caught:
        parse_config(text, FILE)
    message = caught.value.message
    assert message.startswith(f"{FILE.decode()}, line {line}, key {key}: ")
    assert said in message
    assert caught.value.remedy == "rootsd config edit"
    assert caught.value.code is ErrorCode.BAD_CONFIG


@pytest.mark.parametrize(
    ("text", "place"),
    [("a = 1\nb = = 2", "line 2"), ("[[parent]\npath='/srv/a'", "line 1"), ("a = '", "document")],
)
def test_a_syntax_error_names_file_and_line(text: str, place: str) -> None:
    with pytest.raises(BadConfig) as caught:
        parse_config(text, FILE)
    assert caught.value.message.startswith(FILE.decode())
    assert place in caught.value.message


def test_bytes_that_are_not_utf8_are_named_by_their_line(tmp_path: Path) -> None:
    file = tmp_path / "config.toml"
    file.write_bytes(b"# one\n# two \xff\n")
    with pytest.raises(BadConfig, match=r"config\.toml, line 2: this is not UTF-8"):
        read_config(bytes(file))


def test_a_file_that_is_too_large_is_not_read(tmp_path: Path) -> None:
    file = tmp_path / "config.toml"
    file.write_bytes(b"#" * (MAX_BYTES + 1))
    with pytest.raises(BadConfig, match="larger than"):
        read_config(bytes(file))


def test_a_folder_in_its_place_is_named(tmp_path: Path) -> None:
    with pytest.raises(BadConfig, match="cannot be read: Is a directory"):
        read_config(bytes(tmp_path))


def test_a_fifo_in_its_place_does_not_hang_the_reader(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "config.toml")
    with pytest.raises(BadConfig, match="not a regular file"):
        read_config(bytes(tmp_path / "config.toml"))


def test_a_hostile_key_cannot_reach_the_terminal() -> None:
    with pytest.raises(BadConfig) as caught:
        parse_config('"\\u001b[2J" = 1', FILE)
    assert "\x1b" not in caught.value.message


def test_places_are_refused_and_allowed_for_roots_and_for_parents(home: Path) -> None:
    text = """
        [roots]
        refuse = ["~/vault", "/srv/no"]
        allow = ["~/.config/nvim"]

        [[parent]]
        path = "~/.config/nvim"
    """
    config = parse_config(text, FILE)
    assert config.refused == (bytes(home / "vault"), b"/srv/no")
    assert config.allowed == (bytes(home / ".config" / "nvim"),)
    places = config.limiting(RefusedPlaces(bytes(home)))
    assert places.why_no_root(b"/srv/no/a") is not None
    assert places.why_no_root(bytes(home / ".config" / "nvim")) is None
    with pytest.raises(BadConfig, match=r"line 2, key path.*the configuration refuses it"):
        parse_config("[[parent]]\npath = '/srv/no'\n[roots]\nrefuse = ['/srv/no']", FILE)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("roots = 1", "key roots: it is written"),
        (
            "[roots]\nrefused = []",
            "line 2, key refused: there is no such key; did you mean refuse",
        ),
        ("[roots]\nallow = '~/a'", "line 2, key allow: it is not a list"),
        ("[roots]\nallow = ['a']", "line 2, key allow: the path has to start"),
        ("[roots]\nallow = [1]", "line 2, key allow: it is not a path"),
    ],
)
def test_what_is_wrong_about_places_is_named(text: str, message: str) -> None:
    with pytest.raises(BadConfig, match=message):
        parse_config(text, FILE)


def test_who_may_decide_is_read() -> None:
    text = '[approval]\nguard = "terminal"\nagents = ["mine"]\nmarkers = ["MINE=1"]\n'
    assert parse_config(text, FILE).approval == Approval(Guard.TERMINAL, ("mine",), ("MINE=1",))
    assert parse_config("", FILE).approval == Approval(Guard.AGENTS)


@pytest.mark.parametrize(
    ("text", "key", "what"),
    [
        ('[approval]\nguard = "on"', "guard", "none of agents, terminal, off"),
        ('[approval]\nagents = "mine"', "agents", "not a list of names"),
        ('[approval]\nmarkers = [""]', "markers", "not a list of names"),
        ("[approval]\nguards = 1", "guards", "did you mean guard"),
        ("approval = 1", "approval", "it is written [approval]"),
    ],
)
def test_what_makes_no_sense_about_it_is_named(text: str, key: str, what: str) -> None:
    with pytest.raises(BadConfig) as caught:
        parse_config(text, FILE)
    assert f"key {key}" in caught.value.message
    assert what in caught.value.message


@pytest.mark.parametrize(
    "text", ["a = " + "[" * 100_000, "a = " + "9" * 100_000, "a." * 100_000 + "b = 1"]
)
def test_a_hostile_configuration_is_an_error_of_the_configuration(text: str) -> None:
    with pytest.raises(BadConfig) as caught:
        parse_config(text, FILE)
    assert caught.value.remedy


@pytest.mark.needs("root")
def test_a_configuration_in_another_users_folder_is_refused(tmp_path: Path) -> None:
    folder = tmp_path / "config"
    folder.mkdir(mode=0o700)
    file = folder / "config.toml"
    file.touch()
    assert read_config(bytes(file)).parents == ()
    os.chown(folder, 4711, 4711)
    with pytest.raises(BadConfig, match="belongs to user 4711, not to you") as caught:
        read_config(bytes(file))
    assert caught.value.remedy == f"sudo chown -R {os.geteuid()} {folder}"


def test_a_configuration_in_a_folder_that_others_may_write_is_refused(tmp_path: Path) -> None:
    folder = tmp_path / "config"
    folder.mkdir()
    folder.chmod(0o777)
    with pytest.raises(BadConfig, match="other users can write to") as caught:
        read_config(bytes(folder / "config.toml"))
    assert caught.value.remedy == f"chmod 700 {folder}"
    folder.chmod(0o775)
    assert read_config(bytes(folder / "config.toml")) == Config()
