"""The configuration file: its keys, and the error for a file that is not valid."""

from __future__ import annotations

import os
from collections.abc import Callable
from functools import partial
from pathlib import Path

import pytest

from rootsd.config.configuration import MAX_BYTES, Config, parse_config, read_config
from rootsd.config.parent_paths import canonical_path
from rootsd.config.schema import ApprovalTable, SessionsTable
from rootsd.config.validation import MAX_PROBLEMS
from rootsd.core.errors import BadConfig, ErrorCode
from rootsd.core.guard_setting import Guard
from rootsd.core.model import NestedPolicy, Parent
from rootsd.core.paths import RefusedPlaces
from rootsd.core.wall import ProtectionPolicy, RevokePolicy, WallSettings
from rootsd.disk.safety import explain_alias

FILE = b"/home/u/.config/rootsd/config.toml"


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("HOME", str(tmp_path))
    return tmp_path


def test_a_system_folder_under_another_name_is_refused_as_a_parent(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (home / "src").mkdir()
    (home / "alias").symlink_to("src")
    judge = partial(explain_alias, places=[bytes(home / "alias")])
    monkeypatch.setattr("rootsd.config.parent_paths.explain_alias", judge)
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


def test_the_limits_on_mcp_connections_are_read_and_have_defaults() -> None:
    text = "[sessions]\nmax_connections = 5000\n"
    assert parse_config(text, FILE).sessions == SessionsTable(5000, 64)
    assert parse_config("", FILE).sessions == SessionsTable(1024, 64)
    text = "[sessions]\nmax_connections_per_process = 1\n[[parent]]\npath = '/srv/a'"
    assert parse_config(text, FILE) == Config(
        (Parent(b"/srv/a"),), sessions=SessionsTable(1024, 1)
    )


def test_the_settings_of_the_wall_are_read_with_links_as_they_are(home: Path) -> None:
    (home / "link").symlink_to("/usr")
    text = """
        [confine]
        read = ["~/link/share/", "/opt/x"]
        write = ["~/out"]
        keep = ["~/.claude"]
        hide = ["~/src/api/.env"]
        protect = "none"
        network = false
        on_revoke = "kill"
        default = true
    """
    top = bytes(home)
    assert parse_config(text, FILE).wall == WallSettings(
        read=(top + b"/link/share", b"/opt/x"),
        write=(top + b"/out",),
        keep=(top + b"/.claude",),
        hide=(top + b"/src/api/.env",),
        protect=ProtectionPolicy.NONE,
        network=False,
        on_revoke=RevokePolicy.KILL,
        default=True,
    )
    assert parse_config("", FILE).wall == WallSettings()


def test_notifications_are_on_unless_the_file_says_otherwise() -> None:
    assert parse_config("", FILE).notify.enabled
    assert not parse_config("[notify]\nenabled = false", FILE).notify.enabled


def test_a_path_is_made_canonical_and_may_be_missing_or_the_home_folder(home: Path) -> None:
    (home / "real").mkdir()
    (home / "link").symlink_to("real")
    text = "parent = [{path = '~/link/../link/gone'}, {path = '~'}]"
    assert parse_config(text, FILE).parents == (
        Parent(bytes(home / "real" / "gone")),
        Parent(bytes(home)),
    )


def test_a_path_that_is_not_utf8_can_be_made_canonical(tmp_path: Path) -> None:
    folder = bytes(tmp_path) + b"/\xff"
    Path(os.fsdecode(folder)).mkdir()
    assert canonical_path(folder.decode("utf-8", "surrogateescape")) == folder


PARENT = "[[parent]]\npath = '/srv/a'\n"


@pytest.mark.parametrize(
    ("text", "line", "key", "problem"),
    [
        ("parnet = 1", 1, "parnet", "did you mean parent?"),
        ("[zzz]\na = 1", 1, "zzz", "known keys: parent, roots, sessions, approval"),
        (f"{PARENT}\n# x\n[[parent]]\npath = '/srv/b'\nskp = []", 7, "parent[1].skp", "skip?"),
        (f"{PARENT}dept = 3", 3, "parent[0].dept", "did you mean depth?"),
        ("[[parent]]\ndepth = 3", 1, "parent[0].path", "this key is required"),
        ("[[parent]]\npaht = '/srv/a'", 2, "parent[0].paht", "did you mean path?"),
        ("[[parent]]\npath = 3", 2, "parent[0].path", "expected a path in quotes"),
        ("[[parent]]\npath = ''", 2, "parent[0].path", "expected a path in quotes"),
        ("[[parent]]\npath = 'src'", 2, "parent[0].path", "starts with / or ~/"),
        ("[[parent]]\npath = '~nobody-by-this-name/x'", 2, "parent[0].path", "no such user"),
        ("[[parent]]\npath = '/'", 2, "parent[0].path", "cannot be a parent"),
        ("[[parent]]\npath = '/etc'", 2, "parent[0].path", "cannot be a parent"),
        (f"{PARENT}depth = true", 3, "parent[0].depth", "whole number from 1 to 64"),
        (f"{PARENT}depth = 0", 3, "parent[0].depth", "whole number from 1 to 64"),
        (f"{PARENT}'depth' = 65", 3, "parent[0].depth", "whole number from 1 to 64"),
        (f"{PARENT}skip = 'old'", 3, "parent[0].skip", "expected a list of names"),
        (f"{PARENT}skip = [1]", 3, "parent[0].skip", "expected a list of names"),
        (f"{PARENT}project_files = [1]", 3, "parent[0].project_files", "list of names"),
        (f"{PARENT}project_files = ['a/b']", 3, "parent[0].project_files", "list of names"),
        (f"{PARENT}project_files = ['a*']", 3, "parent[0].project_files", "list of names"),
        (f"{PARENT}project_files = ['!']", 3, "parent[0].project_files", "list of names"),
        (f"{PARENT}nested = 'all'", 3, "parent[0].nested", 'one of "none", "vcs", "members"'),
        (f"{PARENT}[[parent]]\npath = '/srv//a'", 4, "parent[1].path", "already has this parent"),
        ("[sessions]\nmax_conections = 9", 2, "sessions.max_conections", "max_connections?"),
        ("[sessions]\nmax_connections = 0", 2, "sessions.max_connections", "from 1 to 65536"),
        ("[sessions]\nmax_connections = 9e9", 2, "sessions.max_connections", "from 1 to 65536"),
        (
            "[sessions]\n\nmax_connections_per_process = true",
            3,
            "sessions.max_connections_per_process",
            "from 1 to 65536",
        ),
        ("sessions = 9", 1, "sessions", "expected a table that starts with [sessions]"),
        ("[[sessions]]\nmax_connections = 9", 1, "sessions", "starts with [sessions]"),
        ("# hi\nparent = '/srv/a'", 2, "parent", "expected [[parent]]"),
        ("[parent]\npath = '/srv/a'", 1, "parent", "expected [[parent]]"),
        ("roots = 1", 1, "roots", "expected a table that starts with [roots]"),
        ("[roots]\nrefused = []", 2, "roots.refused", "did you mean refuse?"),
        ("[roots]\nallow = '~/a'", 2, "roots.allow", "expected a list of paths"),
        ("[roots]\nallow = ['a']", 2, "roots.allow", "start with / or ~/"),
        ("[roots]\nallow = [1]", 2, "roots.allow", "expected a list of paths"),
        ("[roots]\nallow = ['~nobody-by-this-name/x']", 2, "roots.allow", "no such user"),
        ('[approval]\nguard = "on"', 2, "approval.guard", 'one of "agents", "terminal", "off"'),
        ('[approval]\nagents = "mine"', 2, "approval.agents", "expected a list of names"),
        ('[approval]\nmarkers = [""]', 2, "approval.markers", "expected a list of names"),
        ("[approval]\nguards = 1", 2, "approval.guards", "did you mean guard?"),
        ("approval = 1", 1, "approval", "expected a table that starts with [approval]"),
        ('[confine]\nread = ["src"]', 2, "confine.read", "expected a list of paths"),
        ('[confine]\nhide = ["~nobody-here/x"]', 2, "confine.hide", "~nobody-here/x"),
        ("[confine]\nnetwork = 1", 2, "confine.network", "expected true or false"),
        ('[confine]\non_revoke = "die"', 2, "confine.on_revoke", 'one of "tell", "kill"'),
        ("[confine]\nnetwrok = true", 2, "confine.netwrok", "did you mean network?"),
        ("[notify]\nenabled = 'no'", 2, "notify.enabled", "expected true or false"),
        ("parent = [\n  {path = 'src'},\n]", 2, "parent[0].path", "starts with / or ~/"),
    ],
)
def test_an_error_names_file_line_and_key(text: str, line: int, key: str, problem: str) -> None:
    with pytest.raises(BadConfig) as caught:
        parse_config(text, FILE)
    message = caught.value.message
    assert message.startswith(f"{FILE.decode()}, line {line}, key {key}: ")
    assert problem in message
    assert caught.value.remedy == "rootsd config edit"
    assert caught.value.code is ErrorCode.BAD_CONFIG


def test_one_error_lists_every_problem_in_the_order_of_the_lines() -> None:
    text = """
        [roots]
        refuse = ["/srv/no"]
        [[parent]]
        path = "src"
        depth = 0
        [[parent]]
        path = "/srv/no"
        [sessions]
        max = 1
    """
    with pytest.raises(BadConfig) as caught:
        parse_config(text, FILE)
    lines = caught.value.message.split("\n")
    assert lines[0] == f"{FILE.decode()} has 4 errors:"
    places = [line.partition(": ")[0].strip() for line in lines[1:]]
    assert places == [
        "line 5, key parent[0].path",
        "line 6, key parent[0].depth",
        "line 8, key parent[1].path",
        "line 10, key sessions.max",
    ]
    assert "\n" not in caught.value.summary


def test_a_long_list_of_problems_is_cut() -> None:
    text = "\n".join(f"wrong{number} = 1" for number in range(MAX_PROBLEMS + 5))
    with pytest.raises(BadConfig) as caught:
        parse_config(text, FILE)
    lines = caught.value.message.split("\n")
    assert len(lines) == MAX_PROBLEMS + 2
    assert lines[-1] == "  and 5 more"


@pytest.mark.parametrize(
    ("text", "place"),
    [("a = 1\nb = = 2", "line 2"), ("[[parent]\npath='/srv/a'", "line 1"), ("a = '", "document")],
)
def test_a_syntax_error_names_file_and_line(text: str, place: str) -> None:
    with pytest.raises(BadConfig) as caught:
        parse_config(text, FILE)
    assert caught.value.message.startswith(FILE.decode())
    assert place in caught.value.message


@pytest.mark.parametrize(
    ("make", "problem"),
    [
        (lambda file: file.write_bytes(b"# one\n# two \xff\n"), "toml, line 2: this is not UTF"),
        (lambda file: file.write_bytes(b"#" * (MAX_BYTES + 1)), "larger than"),
        (Path.mkdir, "cannot be read: Is a directory"),
        (os.mkfifo, "not a regular file"),
    ],
)
def test_what_is_no_readable_file_is_named(
    tmp_path: Path, make: Callable[[Path], object], problem: str
) -> None:
    file = tmp_path / "config.toml"
    make(file)
    with pytest.raises(BadConfig, match=problem):
        read_config(bytes(file))


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
    places = config.with_configured_places(RefusedPlaces(bytes(home)))
    assert places.why_no_root(b"/srv/no/a") is not None
    assert places.why_no_root(bytes(home / ".config" / "nvim")) is None
    with pytest.raises(
        BadConfig, match=r"line 2, key parent\[0\]\.path.*the configuration refuses it"
    ):
        parse_config("[[parent]]\npath = '/srv/no'\n[roots]\nrefuse = ['/srv/no']", FILE)


def test_the_guard_settings_are_read() -> None:
    text = '[approval]\nguard = "terminal"\nagents = ["mine"]\nmarkers = ["MINE=1"]\n'
    assert parse_config(text, FILE).approval == ApprovalTable(
        Guard.TERMINAL, ("mine",), ("MINE=1",)
    )
    assert parse_config("", FILE).approval == ApprovalTable(Guard.AGENTS)


@pytest.mark.parametrize(
    "text", ["a = " + "[" * 100_000, "a = " + "9" * 100_000, "a." * 100_000 + "b = 1"]
)
def test_a_hostile_configuration_is_an_error_of_the_configuration(text: str) -> None:
    with pytest.raises(BadConfig) as caught:
        parse_config(text, FILE)
    assert caught.value.remedy


@pytest.mark.needs("root")
def test_a_configuration_in_another_users_folder_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / "config"
    folder.mkdir(mode=0o700)
    file = folder / "config.toml"
    file.touch()
    assert read_config(bytes(file)).parents == ()
    os.chown(folder, 4711, 4711)
    with pytest.raises(BadConfig, match="belongs to user 4711, not to you") as caught:
        read_config(bytes(file))
    assert caught.value.remedy == f"sudo chown -R {os.geteuid()} {folder}"
    monkeypatch.setenv("SUDO_UID", "4711")  # root must not take the folder from them
    with pytest.raises(BadConfig) as caught:
        read_config(bytes(file))
    assert caught.value.remedy == "the same command without sudo"


def test_a_configuration_in_a_folder_that_others_may_write_is_refused(tmp_path: Path) -> None:
    folder = tmp_path / "config"
    folder.mkdir()
    folder.chmod(0o777)
    with pytest.raises(BadConfig, match="other users can write to") as caught:
        read_config(bytes(folder / "config.toml"))
    assert caught.value.remedy == f"chmod 700 {folder}"
    folder.chmod(0o775)
    assert read_config(bytes(folder / "config.toml")) == Config()
