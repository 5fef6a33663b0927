"""The policy's file: who may write it, what is valid, and what a broken one means."""

from __future__ import annotations

import os
import pwd
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from write_configuration import example_file

from rootsd.config.policy import load_policy, parse_policy, read_policy
from rootsd.config.policy_file import MAX_BYTES, wall_requirement
from rootsd.config.policy_schema import PolicyTables
from rootsd.config.reference import tables
from rootsd.core.errors import BadConfig
from rootsd.core.paths import PolicyEntry
from rootsd.core.policy import NO_POLICY, MachinePolicy

OTHER_USER = 12345
FILE = b"/etc/rootsd/policy.toml"
VALID = "version = 1\n"
REQUIRED = "version = 1\n[confine]\nrequired = true\n"


@pytest.fixture
def file(tmp_path: Path) -> Path:
    """A valid policy that requires nothing, in a folder of root's."""
    folder = tmp_path / "rootsd"
    folder.mkdir(mode=0o755)
    file = folder / "policy.toml"
    file.write_text(VALID)
    file.chmod(0o644)
    return file


def parsed(text: str) -> MachinePolicy:
    return parse_policy(text, FILE)


def at(line: int) -> str:
    return f"/etc/rootsd/policy.toml, line {line}"


def _links_to_a_file(file: Path) -> None:
    file.rename(file.with_name("elsewhere"))
    file.symlink_to("elsewhere")


def _links_to_nothing(file: Path) -> None:
    file.unlink()
    file.symlink_to("nowhere")


def _links_to_a_folder(file: Path) -> None:
    file.parent.rename(file.parent.with_name("elsewhere"))
    file.parent.symlink_to("elsewhere")


def _becomes_a_fifo(file: Path) -> None:
    file.unlink()
    os.mkfifo(file)


def _becomes_a_folder(file: Path) -> None:
    file.unlink()
    file.mkdir()


def _lies_in_a_file(file: Path) -> None:
    file.unlink()
    file.parent.rmdir()
    file.parent.write_text(VALID)


BROKEN: dict[str, tuple[Callable[[Path], object], str]] = {
    "its owner": (lambda file: os.chown(file, OTHER_USER, 0), f"belongs to user {OTHER_USER}"),
    "its folder's owner": (lambda f: os.chown(f.parent, OTHER_USER, 0), "belongs to user"),
    "a group can write": (lambda file: file.chmod(0o664), "users other than root can write to"),
    "everybody can write": (lambda file: file.chmod(0o646), "users other than root can write to"),
    "others can replace it": (lambda file: file.parent.chmod(0o777), "other than root can write"),
    "a link": (_links_to_a_file, "is a symlink"),
    "a link to nothing": (_links_to_nothing, "is a symlink"),
    "a linked folder": (_links_to_a_folder, "is a symlink"),
    "a file in place of the folder": (_lies_in_a_file, "is a symlink, or not what it should be"),
    "a FIFO": (_becomes_a_fifo, "is not a regular file"),
    "a folder": (_becomes_a_folder, "is not a regular file"),
    "too large": (lambda file: file.write_text("#" * (MAX_BYTES + 1)), "is larger than"),
    "not UTF-8": (lambda file: file.write_bytes(b"version = 1\n# \xff"), "line 2: this is not"),
    "not TOML": (lambda file: file.write_text("version = 1\n[confine\n"), "line 2"),
    "empty": (lambda file: file.write_text(""), "version: this key is required"),
    "too deep": (lambda f: f.write_text(VALID + "x = " + "[" * 9_000), "nested too deeply"),
    "another version": (lambda file: file.write_text("version = 2\n"), "expected the number 1"),
    "a misspelled key": (
        lambda file: file.write_text(VALID + "[confine]\nrequird = true\n"),
        "line 3, key confine.requird: there is no such key; did you mean required?",
    ),
}


@pytest.mark.needs("root")
@pytest.mark.parametrize("name", BROKEN)
def test_a_broken_file_denies_everything_and_says_why(file: Path, name: str) -> None:
    breaks, problem = BROKEN[name]
    breaks(file)
    loaded = load_policy(bytes(file))
    assert problem in loaded.policy.problem
    assert os.fsencode(file.parent).decode() in loaded.policy.problem
    assert loaded.policy.is_present
    assert loaded.policy.must_confine
    assert loaded.remedy.startswith(("sudo", "ls -l"))
    assert f"the policy {file} cannot be used" in (wall_requirement(bytes(file)) or "")


@pytest.mark.needs("root")
def test_a_valid_file_of_root_is_in_force(file: Path) -> None:
    assert read_policy(bytes(file)) == MachinePolicy(is_present=True)
    assert wall_requirement(bytes(file)) is None
    file.write_text(REQUIRED)
    assert load_policy(bytes(file)).policy == MachinePolicy(requires_wall=True, is_present=True)
    assert wall_requirement(bytes(file)) == f"the policy requires the wall ({file})"
    file.parent.chmod(0o711)  # it may be entered, but not listed
    assert read_policy(bytes(file)).requires_wall


@pytest.mark.needs("root")
def test_a_missing_file_is_no_policy(tmp_path: Path) -> None:
    for file in (tmp_path / "policy.toml", tmp_path / "rootsd" / "deeper" / "policy.toml"):
        assert load_policy(bytes(file)).policy is NO_POLICY
        assert wall_requirement(bytes(file)) is None


@pytest.mark.needs("root")
@pytest.mark.parametrize("missing", ["policy.toml", "rootsd/policy.toml"])
@pytest.mark.parametrize(
    ("opens", "problem"),
    [
        (lambda folder: folder.chmod(0o777), "users other than root can write to"),
        (lambda folder: folder.chmod(0o1777), "users other than root can write to"),
        (lambda folder: folder.chmod(0o775), "users other than root can write to"),
        (lambda folder: os.chown(folder, OTHER_USER, 0), f"belongs to user {OTHER_USER}"),
    ],
)
def test_a_file_that_others_could_have_removed_is_broken(
    tmp_path: Path, opens: Callable[[Path], object], problem: str, missing: str
) -> None:
    folder = tmp_path / "etc"
    folder.mkdir(mode=0o755)
    opens(folder)
    loaded = load_policy(bytes(folder / missing))
    assert problem in loaded.policy.problem
    assert str(folder) in loaded.policy.problem
    assert loaded.policy.must_confine
    assert loaded.remedy.startswith("sudo")
    assert wall_requirement(bytes(folder / missing)) is not None


@pytest.mark.needs("root")
def test_control_without_the_check_whoever_removes_the_policy_is_free_of_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("rootsd.config.policy_file._ensure_only_root_removes", lambda _: None)
    tmp_path.chmod(0o777)
    assert load_policy(bytes(tmp_path / "policy.toml")).policy is NO_POLICY


TILDE = """version = 1
[roots]
refuse = ["~", "~/customers"]
[[rule]]
verdict = "deny"
pattern = "~/secret/**"
"""


def _home_places(text: str) -> set[bytes]:
    policy = parsed(text)
    return {entry.pattern for entry in (*policy.refused, *policy.denied)}


@pytest.mark.parametrize("value", ["/elsewhere", "", "relative"])
def test_a_tilde_is_the_home_in_the_password_database(
    value: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    home = os.fsencode(pwd.getpwuid(os.getuid()).pw_dir)
    monkeypatch.setenv("HOME", value)
    places = _home_places(TILDE)
    assert {home, home + b"/customers", home + b"/secret/**"} <= places
    assert not any(b"elsewhere" in place for place in places)


def test_control_an_expansion_by_home_moves_the_policy(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("rootsd.config.policy.expand_account_home", os.path.expanduser)
    monkeypatch.setenv("HOME", "/elsewhere")
    assert b"/elsewhere/customers" in _home_places(TILDE)


def test_a_tilde_of_a_user_without_an_account_is_a_problem(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(os, "getuid", lambda: 2**31 - 7)
    with pytest.raises(BadConfig, match="does not start with / or ~/, or has no such user"):
        parsed(TILDE)


@pytest.mark.needs("root")
def test_a_file_that_the_user_may_not_read_is_broken(file: Path) -> None:
    file.chmod(0o600)
    child = os.fork()
    if not child:
        os.setresuid(OTHER_USER, OTHER_USER, OTHER_USER)
        found = load_policy(bytes(file)).policy.problem
        os._exit(0 if "cannot be read: Permission denied" in found else 1)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0


LEAN = {
    VALID: False,
    REQUIRED: True,
    "version = 1\nconfine.required = false\n": False,
    "version = 1\n[confine]\n": False,
    "version = 1\n[confine]\nrequired = 1\n": None,
    "version = 1\n[[confine]]\nrequired = true\n": None,
    "version = 1\n[confine]\nrequired = true\nread = []\n": None,
    "version = 1\nconfine = true\n": None,
    "version = true\n": None,
    "version = 1.0\n": None,
    "version = '1'\n": None,
    "[confine]\nrequired = false\n": None,
    "version = 1\nconfin = {required = true}\n": None,
}


@pytest.mark.needs("root")
@pytest.mark.parametrize("text", LEAN)
def test_the_lean_programs_read_the_requirement_as_the_daemon_does(file: Path, text: str) -> None:
    file.write_text(text)
    policy = load_policy(bytes(file)).policy
    assert bool(policy.problem) is (LEAN[text] is None)
    assert policy.must_confine is (LEAN[text] is not False)
    assert (wall_requirement(bytes(file)) is not None) is policy.must_confine


def test_each_entry_knows_its_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("rootsd.config.parent_paths.account_home", lambda: bytes(tmp_path))
    policy = parsed(
        'version = 1\n[roots]\nrefuse = ["/srv/customers/"]\n\n[[rule]]\nverdict = "deny"\n'
        'pattern = "~/old-*"\n\n[[rule]]\npattern = "/srv/x/**"\nverdict = "approve"\n'
    )
    assert policy.refused == (PolicyEntry(b"/srv/customers", at(3)),)
    assert policy.denied == (PolicyEntry(bytes(tmp_path) + b"/old-*", at(7)),)
    assert policy.approved == (PolicyEntry(b"/srv/x/**", at(10)),)


def test_a_link_on_the_way_cannot_hide_a_place(tmp_path: Path) -> None:
    real, link = tmp_path / "real", tmp_path / "link"
    real.mkdir()
    link.symlink_to(real)
    policy = parsed(
        f'version = 1\n[roots]\nrefuse = ["{link}/in"]\n'
        f'[[rule]]\nverdict = "deny"\npattern = "{link}/*"\n'
        f'[[rule]]\nverdict = "approve"\npattern = "{link}/*"\n'
    )
    both = {bytes(real), bytes(link)}
    assert {each.pattern for each in policy.refused} == {path + b"/in" for path in both}
    assert {each.pattern for each in policy.denied} == {path + b"/*" for path in both}
    assert {each.pattern for each in policy.approved} == {bytes(real) + b"/*"}


def test_all_problems_are_reported_at_once_with_line_and_key() -> None:
    text = (
        'version = 1\n[roots]\nrefuse = "x"\n[[rule]]\npattern = "src/*"\nverdict = "deny"\n'
        '[[rule]]\npattern = "/a/../b"\nverdict = "denied"\n[[rule]]\nverdict = "deny"\n'
        '[[rule]]\npattern = "/[z-a]"\nverdict = "deny"\n'
    )
    with pytest.raises(BadConfig) as raised:
        parsed(text)
    headline, *problems = raised.value.message.split("\n  ")
    assert headline == "/etc/rootsd/policy.toml has 5 errors:"
    assert [problem.partition(": ")[0] for problem in problems] == [
        "line 3, key roots.refuse",
        "line 5, key rule[0].pattern",
        "line 9, key rule[1].verdict",
        "line 10, key rule[2].pattern",
        "line 13, key rule[3].pattern",
    ]
    assert problems[2].endswith('expected one of "approve", "deny"')
    assert "/[z-a] is not a valid pattern" in problems[4]
    assert raised.value.remedy == "sudoedit /etc/rootsd/policy.toml"


def test_the_example_of_the_reference_is_valid() -> None:
    policy = parsed(example_file(tables(PolicyTables)))
    assert policy.requires_wall
    assert policy.refused
    assert policy.approved


def test_no_variable_moves_the_policy() -> None:
    names = ("ROOTSD_POLICY", "ROOTSD_POLICY_FILE", "ROOTSD_DIR", "XDG_CONFIG_HOME", "HOME")
    code = "from rootsd.config.policy_file import POLICY_FILE; print(POLICY_FILE.decode())"
    environment = {**os.environ, **dict.fromkeys(names, "/tmp/mine")}
    shown = subprocess.run(
        [sys.executable, "-c", code], env=environment, capture_output=True, check=True
    )
    assert shown.stdout.strip() == FILE


@pytest.mark.needs("namespaces")
def test_in_a_sandbox_that_maps_few_users_a_missing_policy_is_no_policy() -> None:
    """Root's files show the id that root has there, or that of nobody."""
    code = (
        "from rootsd.config.policy_file import wall_requirement as w; print(w(b'/etc/no/x.toml'))"
    )
    words = ["unshare", "--user", "--map-user=1234", sys.executable, "-c", code]
    done = subprocess.run(words, capture_output=True, text=True, check=True)
    assert done.stdout == "None\n"
