"""Our readers of git's settings and index agree with git."""

from __future__ import annotations

import os
import random
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from rootsd.disk.git_settings import read_settings
from rootsd.wall.git.facts import Fact, FactKind, find_facts, find_links
from rootsd.wall.git.index import DamagedIndex, read_index
from support.repositories import git, make_repository
from support.sizes import Sizes

_PIECES = [
    "[core]", "[Core]", "[filter \"a.b\"]", "[filter \"q\\\"]x\"]", "[a-b.c]", "[core] ", "\n",
    "\r\n", " ", "\t", "fsmonitor", "HooksPath", "smudge", " = ", "=", "evil", "\"a b\"", "\\\n",
    "\\n",
    "# x\n", "; y\n", "x # c\n", "\"; z\"", "-", "1", "include", "[include]", "path = ../e\n", "]",
    "[", "fsmonitor = x\n", "[core]fsmonitor=y\n", "clean\n", "\ufeff",
]  # fmt: skip


def gitlinks(data: bytes) -> list[bytes]:
    """Return the paths of the gitlinks in an index."""
    return [entry.path for entry in read_index(data) if entry.is_gitlink]


def names_by_git(text: bytes) -> set[str]:
    """Return the names that git reads before it refuses a line. Names without a section mean
    nothing.
    """
    words = ["git", "config", "--file", "-", "--no-includes", "--name-only", "--list", "-z"]
    done = subprocess.run(words, input=text, capture_output=True, check=False)
    return {name for name in done.stdout.decode().split("\0") if "." in name}


@pytest.mark.parametrize(
    "text",
    [
        "[core]\n\tfsmonitor = ./x\n", "[core]fsmonitor=./x", "[CORE]\nFsMonitor\n",
        "[filter \"lfs\"]\n clean = git-lfs clean -- %f\n\tprocess=p\n",
        "[core]\n a = \"x\\\n fsmonitor = y\"\n hooksPath = z",
        "[core]\nx = a\\\n\nfsmonitor = 1\n",
        "; [core]\n[core] ; c\n# c\nfsmonitor = \"# no comment\" # comment\nsshCommand = s",
        "\ufeff[core]\nfsmonitor = x\n", "[includeIf \"gitdir:~/\"]\npath = x\n",
        "[core]\r\nfsmonitor = x\r\n", "[alias]\nst = !sh\n[remote \"o r\"]\nvcs = v\n",
        "[core \"\"]\nfsmonitor = x\n", "[a.b]\nc = d\n", "[core]\n\"x = 1\nfsmonitor = y",
    ],
)  # fmt: skip
def test_the_names_of_settings_are_those_that_git_reads(text: str) -> None:
    names = {name for name, _ in read_settings(text.encode())}
    assert names >= names_by_git(text.encode())


def test_no_text_hides_a_setting_from_us_that_git_reads(sizes: Sizes) -> None:
    chance = random.Random(32)  # noqa: S311
    for _ in range(sizes.pick(test=150, check=2_000, soak=6_000)):
        text = "".join(chance.choices(_PIECES, k=chance.randint(1, 14))).encode()
        assert {name for name, _ in read_settings(text)} >= names_by_git(text), text


@pytest.mark.parametrize("version", ["2", "3", "4"])
@pytest.mark.parametrize("format_", ["sha1", "sha256"])
def test_the_gitlinks_are_those_that_git_lists(tmp_path: Path, version: str, format_: str) -> None:
    main = tmp_path / "main"
    git("init", "--object-format", format_, main)
    for name in ("a", "deep/er/b", "deep/er/c d", "z"):
        (main / name).mkdir(parents=True)
        git("init", "--object-format", format_, main / name)
        git("commit", "--allow-empty", "-m", "x", cwd=main / name)
        (main / f"{name}.txt").write_text(name)
    git("-c", f"index.version={version}", "add", ".", cwd=main)
    git("update-index", "--index-version", version, cwd=main)
    if version == "3":
        (main / "later").write_text("x")
        git("add", "--intent-to-add", "later", cwd=main)
    found = gitlinks((main / ".git" / "index").read_bytes())
    assert found == [b"a", b"deep/er/b", b"deep/er/c d", b"z"]


def test_a_damaged_index_is_an_error(tmp_path: Path) -> None:
    main = make_repository(tmp_path / "main")
    git("update-index", "--add", "--cacheinfo", f"160000,{'1' * 40},lib", cwd=main)
    data = (main / ".git" / "index").read_bytes()
    assert gitlinks(data) == [b"lib"]
    assert gitlinks(data[: data.rindex(b"lib")]) == [], "what is before it is read"
    with pytest.raises(DamagedIndex):
        gitlinks(data[:20])
    with pytest.raises(DamagedIndex):
        gitlinks(b"x" + data)


@pytest.mark.parametrize("mode", [0o160755, 0o1160000, 0o200160000])
def test_a_gitlink_with_a_mode_that_git_does_not_write_counts(tmp_path: Path, mode: int) -> None:
    main = make_repository(tmp_path / "main")
    git("update-index", "--add", "--cacheinfo", f"160000,{'1' * 40},lib", cwd=main)
    data = (main / ".git" / "index").read_bytes()
    assert data.count(0o160000.to_bytes(4, "big")) == 1
    changed = data.replace(0o160000.to_bytes(4, "big"), mode.to_bytes(4, "big"))
    assert gitlinks(changed) == [b"lib"]


def test_an_unusual_entry_hides_no_gitlink(tmp_path: Path) -> None:
    """Git takes a mode of 0 if the entry is assumed to be unchanged."""
    main = make_repository(tmp_path / "main")
    git("update-index", "--add", "--cacheinfo", f"160000,{'1' * 40},lib", cwd=main)
    data = bytearray((main / ".git" / "index").read_bytes())
    data[12 + 24 : 12 + 28] = b"\0\0\0\0"
    assert gitlinks(bytes(data))[0] == b"lib"


@pytest.mark.needs("linux")
@pytest.mark.parametrize(
    ("setting", "value", "is_named"),
    [
        ("core.fsmonitor", "./x", True), ("core.fsmonitor", "true", False),
        ("filter.a.smudge", "x", True), ("core.hooksPath", "h", True), ("include.path", "x", True),
        ("submodule.a.update", "!x", True), ("submodule.a.update", "rebase", False),
        ("remote.origin.url", "x", False), ("user.name", "x", False),
    ],
)  # fmt: skip
def test_settings_that_name_programs_are_told_from_others(
    tmp_path: Path, setting: str, value: str, is_named: bool
) -> None:
    main = make_repository(tmp_path / "main")
    inner = make_repository(main / "inner")
    git("config", setting, value, cwd=inner)
    git("add", "inner", cwd=main)
    found = find_facts(os.fsencode(main)).facts
    assert bool([each for each in found if each.kind is FactKind.PROGRAMS]) is is_named


@pytest.mark.needs("linux")
def test_hooks_and_inner_gitlinks_and_split_indexes_count(tmp_path: Path) -> None:
    main = make_repository(tmp_path / "main")
    inner = make_repository(main / "inner")
    innermost = make_repository(inner / "innermost")
    hook = innermost / ".git" / "hooks" / "post-index-change"
    hook.parent.mkdir(exist_ok=True)
    hook.write_text("#!/bin/sh\n")
    hook.chmod(0o755)
    git("add", "innermost", cwd=inner)
    git("config", "core.splitIndex", "true", cwd=main)
    git("add", "inner", cwd=main)
    found = find_facts(os.fsencode(main)).facts
    [fact] = [each for each in found if each.kind is FactKind.PROGRAMS]
    assert (fact.path, fact.value) == (os.fsencode(innermost), b"hooks/post-index-change")


@pytest.fixture
def pair(tmp_path: Path) -> tuple[Path, Path]:
    """A repository, and one in its index whose settings name a program that git status runs."""
    main = make_repository(tmp_path / "main")
    inner = make_repository(main / "inner")
    git("config", "core.fsmonitor", f"touch {tmp_path}/ran; false", cwd=inner)
    git("add", "inner", cwd=main)
    return main, inner


def move_git_file(inner: Path, name: str, end: str = "\n") -> None:
    (inner / ".git").rename(inner.parent / name)
    (inner / ".git").write_text(f"gitdir: ../{name}{end}")


def take_settings_from_elsewhere(inner: Path) -> None:
    shutil.copytree(inner / ".git", inner.parent / "shared")
    git("config", "--unset", "core.fsmonitor", cwd=inner)
    (inner / ".git" / "commondir").write_text("../../shared\n")


def make_large(settings: Path) -> None:
    settings.write_text("# x\n" * 100_000 + settings.read_text())


def make_link(path: Path) -> None:
    path.rename(path.with_name("moved"))
    path.symlink_to("moved")


@pytest.mark.needs("linux")
@pytest.mark.parametrize(
    "hide",
    [
        lambda inner: None,
        take_settings_from_elsewhere,
        lambda inner: move_git_file(inner, " g"),
        lambda inner: move_git_file(inner, "g", "\n" * 20_000),
        lambda inner: make_link(inner / ".git" / "config"),
        lambda inner: make_link(inner / ".git"),
        lambda inner: make_link(inner.parent / ".git" / "index"),
        lambda inner: make_large(inner / ".git" / "config"),
    ],
    ids=["plain", "commondir", "space", "long file", "config", "link", "index", "large"],
)
def test_no_way_to_hide_settings_that_git_status_obeys(
    tmp_path: Path, pair: tuple[Path, Path], hide: Callable[[Path], None]
) -> None:
    main, inner = pair
    hide(inner)
    (tmp_path / "ran").unlink(missing_ok=True)
    git("status", cwd=main)
    assert (tmp_path / "ran").exists()  # the control: git obeys it
    found = find_facts(os.fsencode(main)).facts
    assert os.fsencode(inner) in [e.path for e in found if e.kind is FactKind.PROGRAMS]


# How a program makes `git status` in `where` run what the settings of a repository name. The last
# word is where it works, and the one before the root that the program sees.
_EVIL = """
set -e
evil() { git init -q "$1"; git -C "$1" commit -q --allow-empty -m x
         git -C "$1" config core.fsmonitor "touch '$RAN'; false"; }
link() { git -C "$1" update-index --add --cacheinfo "160000,$(git -C "$2" rev-parse HEAD),$3"; }
rename() { python3 - "$1" "$2" "$3" <<'END'
import hashlib, sys
index, old, new = sys.argv[1:]
data = open(index, "rb").read()[:-20].replace(old.encode(), new.encode())
open(index, "wb").write(data + hashlib.sha1(data).digest())
END
}
"""
_PLANTS = {
    "a nested repository": ("evil main/d0/e", "main", "main/d0/e"),
    "settings of a nested repository": (
        "git -C main/nested config core.fsmonitor \"touch '$RAN'; false\"", "main", "main/nested",
    ),
    "a gitlink in a worktree": (
        "git -C main worktree add -q .wt/x; evil main/.wt/x/e; git -C main/.wt/x add e",
        "main", "main/.wt/x",
    ),
    "a submodule that becomes another repository": (
        "mv main/lib main/old; rm main/old/.git; evil main/lib; git -C main add lib",
        "main", "main",
    ),
    "a gitlink in a submodule": ("evil main/lib/e; git -C main/lib add e", "main", "main/lib"),
    "a gitlink out of the checkout": (
        "evil other/e; link main other/e dd/other/e; rename main/.git/index dd/other/e ../other/e",
        "main", "main",
    ),
    "a gitlink with an absolute path": (
        'evil other/e; link main other/e "/${PWD#?}/other/e" || { n=$(echo "$PWD" | tr / _);'
        ' link main other/e "$n/other/e"; rename main/.git/index "$n/other/e" "$PWD/other/e"; }',
        "main", "main",
    ),
    "a gitlink in the checkout around a worktree": (
        "evil tree/e; link main tree/e aa/tree/e; rename main/.git/index aa/tree/e ../tree/e",
        "main/.git", "main",
    ),
    "a gitlink in another worktree": (
        "evil tree/e; link main/.wt/y tree/e aaaaaaaa/tree/e;"
        " rename main/.git/worktrees/y/index aaaaaaaa/tree/e ../../../tree/e",
        "main/.git", "main/.wt/y",
    ),
}  # fmt: skip


@pytest.mark.needs("linux")
@pytest.mark.parametrize("name", _PLANTS)
def test_a_repository_whose_programs_git_status_runs_from_now_on_is_found(
    tmp_path: Path, name: str
) -> None:
    commands, root, where = _PLANTS[name]
    main, sub = make_repository(tmp_path / "main"), make_repository(tmp_path / "sub")
    for path in (main / "nested", tmp_path / "other"):
        make_repository(path)
    git("submodule", "add", sub, "lib", cwd=main)
    git("worktree", "add", tmp_path / "tree", cwd=main)
    git("worktree", "add", main / ".wt" / "y", cwd=main)
    before = find_facts(os.fsencode(tmp_path / root)).facts
    ran = tmp_path / "ran"
    shell = {**os.environ, "RAN": str(ran)}
    subprocess.run(["bash", "-c", _EVIL + commands], cwd=tmp_path, env=shell, check=True)
    ran.unlink(missing_ok=True)
    git("status", cwd=tmp_path / where)
    assert ran.exists()  # the control: git runs it
    found = find_facts(os.fsencode(tmp_path / root)).facts - before
    assert [each.kind for each in found if each.kind is FactKind.PROGRAMS]


@pytest.mark.needs("linux")
def test_a_new_worktree_and_a_submodule_without_programs_are_no_findings(tmp_path: Path) -> None:
    main, sub = make_repository(tmp_path / "main"), make_repository(tmp_path / "sub")
    git("config", "core.editor", "vim", cwd=main)
    git("config", "alias.x", "!true", cwd=sub)
    nested = make_repository(main / "nested")
    git("config", "core.editor", "vim", cwd=nested)
    before = find_facts(os.fsencode(main)).facts
    git("worktree", "add", ".wt/x", cwd=main)
    git("worktree", "add", "../.wt/z", cwd=nested)
    git("submodule", "add", sub, "lib", cwd=main)
    new = find_facts(os.fsencode(main)).facts - before
    assert not [each for each in new if each.kind is FactKind.PROGRAMS]


@pytest.mark.needs("linux")
def test_a_git_directory_with_too_many_entries_is_not_passed_over(tmp_path: Path) -> None:
    main = make_repository(tmp_path / "main")
    common = os.fsencode(main / ".git")
    assert [*find_links(common)] == []
    assert [*find_links(common, limit=5)] == [Fact(FactKind.UNREAD, common)]
    assert [*find_links(common, [b"."], limit=5)] == []


@pytest.mark.needs("linux")
def test_a_link_that_may_not_be_read_hides_no_other_link(
    tmp_path: Path, unreadable_link: Path
) -> None:
    """It leads to a link of another user's process, such as /proc/1/root."""
    common = tmp_path.resolve() / ".git"
    common.mkdir()
    (common / "config").symlink_to(unreadable_link / "x")
    (common / "HEAD").symlink_to("/etc/passwd")
    found = {fact.path for fact in find_links(os.fsencode(common))}
    assert found == {os.fsencode(common / name) for name in ("config", "HEAD")}
