"""The base of the view: what it shows of the system and of the home folder."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from rootsd.core.mount_plan import ViewEntry, ViewEntryKind
from rootsd.wall.view import default_view
from rootsd.wall.view.default_view import TOOLCHAINS, base_entries, home_entries, secret_entries
from rootsd.wall.view.token_files import TOKEN_FILES
from support.walls import Wall, Weakness


@pytest.fixture
def system(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A system of which programs see only `etc`, with a link to the names of hosts."""
    (tmp_path / "etc").mkdir()
    monkeypatch.setattr(default_view, "SYSTEM", [bytes(tmp_path / "etc")])
    monkeypatch.setattr(default_view, "LOOKUP_FILES", [bytes(tmp_path / "etc/resolv.conf")])
    return tmp_path


def shown(system: Path) -> dict[str, ViewEntry]:
    """Return what is shown outside of `etc` because of the link."""
    entries = base_entries(bytes(system / "home"), 0)
    of_link = [each for each in entries if each.reason == "what a link in /etc leads to"]
    return {str(Path(each.path.decode()).relative_to(system)): each for each in of_link}


# WSL 2, ConnMan or openSUSE with a relative link, and a chain of links through a linked folder.
@pytest.mark.parametrize(
    ("links", "expected"),
    [
        ({"etc/resolv.conf": "{}/mnt/wsl/resolv.conf"}, {"mnt/wsl/resolv.conf"}),
        ({"etc/resolv.conf": "../run/x/resolv.conf"}, {"run/x/resolv.conf"}),
        (
            {"etc/resolv.conf": "{}/var/run/x/dns", "var/run": "../run", "run/x/dns": "b/dns"},
            {"var/run", "run/x/dns", "run/x/b/dns"},
        ),
    ],
)
def test_the_file_that_a_link_for_name_lookups_leads_to_is_shown(
    system: Path, links: dict[str, str], expected: set[str]
) -> None:
    for name, target in links.items():
        (system / name).parent.mkdir(parents=True, exist_ok=True)
        (system / name).symlink_to(target.format(system))
    real = (system / "etc/resolv.conf").resolve()
    real.parent.mkdir(parents=True, exist_ok=True)
    real.write_text("nameserver 192.0.2.1\n")
    found = shown(system)
    assert set(found) == expected
    kinds = {name: entry.kind for name, entry in found.items()}
    assert kinds.pop(str(real.relative_to(system))) is ViewEntryKind.READ
    assert set(kinds.values()) <= {ViewEntryKind.LINK}


@pytest.mark.parametrize("target", ["nowhere", "resolv.conf", "{}/etc/other"])
def test_a_link_that_leads_nowhere_or_stays_inside_shows_nothing_more(
    system: Path, target: str
) -> None:
    (system / "etc/other").write_text("")
    (system / "etc/resolv.conf").symlink_to(target.format(system))
    assert shown(system) == {}


def test_a_folder_beside_packages_is_shown_unless_it_is_the_users_own(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / "opt" / "package"
    folder.mkdir(parents=True)
    if os.geteuid() == 0:
        os.chown(folder, 1, 1)
    monkeypatch.setattr(default_view, "SHARED_PARENTS", [bytes(folder.parent)])
    owner = folder.stat().st_uid
    for uid, is_shown in ((owner, False), (owner + 1, True), (0, True)):
        paths = [each.path for each in base_entries(bytes(tmp_path / "home"), uid)]
        assert (bytes(folder) in paths) is is_shown


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A home folder in which every tool has stored its token, beside a file without secrets."""
    home = tmp_path_factory.mktemp("home")
    for token in _tokens(home):
        token.parent.mkdir(parents=True, exist_ok=True)
        token.write_text("secret")
        (token.parent / "plain").write_text("text")
    return home


def _tokens(home: Path) -> list[Path]:
    patterns = [each for names in TOKEN_FILES.values() for each in names.split()]
    return [home / pattern.decode().replace("*", "x") for pattern in patterns]


@pytest.mark.needs("wall")
def test_no_token_in_a_folder_of_tools_can_be_read(tmp_path: Path, home: Path) -> None:
    with Wall(tmp_path / "state", home) as wall:
        assert _read(wall, _tokens(home)) == []
        siblings = [token.parent / "plain" for token in _tokens(home)]
        assert _read(wall, siblings), "the folders are shown"


@pytest.mark.needs("wall")
def test_control_without_the_list_tokens_can_be_read(tmp_path: Path, home: Path) -> None:
    with Wall(tmp_path / "state", home, weaknesses={Weakness.TOKENS_SHOWN}) as wall:
        assert len(_read(wall, _tokens(home))) > len(_tokens(home)) / 2


def test_a_token_behind_a_link_is_hidden_where_it_lies(tmp_path: Path) -> None:
    (tmp_path / ".config/git").mkdir(parents=True)
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin/passwords").write_text("secret")
    (tmp_path / ".config/git/credentials").symlink_to("../../bin/passwords")
    entries = base_entries(bytes(tmp_path), os.geteuid())
    hidden = [each.path for each in entries if each.kind is ViewEntryKind.HIDDEN]
    assert bytes(tmp_path / "bin/passwords") in hidden


def _read(wall: Wall, files: list[Path]) -> list[Path]:
    return [file for file in files if not wall.error_of(f"content('{file}')")]


@pytest.mark.needs("wall")
def test_a_name_of_secrets_at_the_top_of_a_toolchain_is_hidden(tmp_path: Path) -> None:
    tools = tmp_path / "home/.asdf"
    tools.mkdir(parents=True)
    files = [tools / name for name in (".env", ".netrc", "asdf.sh")]
    for file in files:
        file.write_text("text")
    (tools / ".npmrc").symlink_to("nowhere")
    with Wall(tmp_path / "state", tmp_path / "home") as wall:
        assert _read(wall, files) == [tools / "asdf.sh"]


def test_control_without_the_names_it_can_be_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    secret = tmp_path / ".asdf/.env"
    secret.parent.mkdir()
    secret.write_text("text")
    for is_known in (True, False):
        monkeypatch.setattr(default_view, "is_secret_name", lambda _, known=is_known: known)
        hidden = [each.path for each in secret_entries(bytes(tmp_path), _tools(tmp_path))]
        assert (bytes(secret) in hidden) is is_known


def _tools(home: Path) -> list[ViewEntry]:
    return [*home_entries(bytes(home), TOOLCHAINS, ViewEntryKind.TOOLS, "toolchains")]
