"""Pieces of real work, done outside and behind the wall: same state, same paths, same result.

tests/e2e/workloads/*.toml has the records. Each piece of work starts twice from a usual home and a
new repository, `~/src/NAME`: once outside, and once behind the wall, after an approval. Then the
exit statuses, the outputs, all files of the project, and what git knows are compared. So are the
files beside the project, which nothing behind the wall may change.
"""

from __future__ import annotations

import hashlib
import os
import shlex
import stat
import subprocess
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from pathlib import Path
from string import Template
from typing import Any

from support.agent_programs import installed
from support.agent_world import ROOTSD, AgentWorld
from support.node_packages import TOP
from support.usual_home import PROGRAM_FOLDERS, UsualHome

_RECORDS = TOP / "tests" / "e2e" / "workloads"
_NEVER_COMPARED = ("__pycache__", ".pytest_cache", ".git")
_DATE = "2026-01-02T03:04:05Z"
_PREPARE = """
set -e
cd ~
{home}
mkdir ~/src/{name}
cd ~/src/{name}
git init -q
echo '# {name}' > README.md
git add README.md
git commit -qm first
{setup}
"""
_FACTS = (
    "symbolic-ref -q HEAD",
    "for-each-ref",
    "ls-files --stage",
    "status --porcelain=v2 --branch --untracked-files=all",
    "stash list",
    "worktree list --porcelain",
)


@dataclass(frozen=True, slots=True)
class Workload:
    """One piece of work, which bash runs in the project.

    `home` and `setup` run before it, outside: in the home folder, and in the project. Behind the
    wall, it comes to the same result. If it has an `option`, it needs it: without, it fails and
    says `says`, or else the option. If it only has `says`, no option helps. `varies` is why the
    output is not compared. `ignores` are patterns of names whose content is not compared, such as
    files with a time in them, and of files beside the project that may change. `stays` are
    settings of git that stay behind the wall, which rootsd has to say at the end.
    """

    name: str
    does: str
    work: str
    home: str = ""
    setup: str = ""
    needs: tuple[str, ...] = ()
    option: str = ""
    says: str = ""
    varies: str = ""
    ignores: tuple[str, ...] = ()
    stays: tuple[str, ...] = ()
    variables: Mapping[str, str] = field(default_factory=dict)

    @property
    def message(self) -> str:
        """What it says if it fails without the option."""
        return self.says or self.option

    def does_ignore(self, name: str) -> bool:
        """Return whether a difference in this does not count."""
        return any(fnmatchcase(name, each) for each in self.ignores)


@dataclass(frozen=True, slots=True)
class Result:
    """What a run left. `said` is what rootsd printed, and `printed` what the work did."""

    status: int
    printed: str
    said: str
    state: dict[str, str]
    beside: dict[str, str]


def package_managers() -> Path:
    """Return the folder of the programs of npm packages. Install them unless they are there."""
    return installed("package-managers", _RECORDS)


def workloads() -> dict[str, Workload]:
    """Return all records by name."""
    found: dict[str, Workload] = {}
    for file in sorted(_RECORDS.glob("*.toml")):
        for name, fields in tomllib.loads(file.read_text()).items():
            assert name not in found, f"{name} is there twice"
            found[name] = _workload(name, fields)
    return found


def _workload(name: str, fields: dict[str, Any]) -> Workload:
    lists = {key: tuple(value) for key, value in fields.items() if isinstance(value, list)}
    return Workload(name, **{**fields, **lists})


class Workplace(AgentWorld):
    """A daemon that watches `~/src` of an ordinary user without a network."""

    def __init__(self, folder: Path, packages: Path | None = None) -> None:
        super().__init__(folder, [], guard="off")
        self.parent = self.home / "src"
        self._usual = UsualHome(self.home, packages)

    def variables(self, packages: str = "") -> dict[str, str]:
        """Return the environment of a login shell, with a clock for git that stands still."""
        folders = [str(self.home / folder) for folder in PROGRAM_FOLDERS]
        path = ":".join([*folders, "/usr/local/bin:/usr/bin:/bin", str(ROOTSD.parent)])
        dates = {"GIT_AUTHOR_DATE": _DATE, "GIT_COMMITTER_DATE": _DATE}
        return {**super().variables(packages), "PATH": path, **dates}

    def outside(self, workload: Workload) -> Result:
        """Do the work without a wall."""
        self._prepare(workload)
        return self._run(workload, [])

    def inside(self, workload: Workload, options: str = "") -> Result:
        """Do the work behind the wall, with options as one types them."""
        self._prepare(workload)
        self.rootsd("approve", str(self.parent / workload.name), "--yes")
        typed = shlex.split(options.replace("~", str(self.home)))
        words = [str(ROOTSD), "confine", "--name", workload.name, *typed, "--"]
        return self._run(workload, words)

    def _prepare(self, workload: Workload) -> None:
        self._usual.put_back()
        script = _PREPARE.format(name=workload.name, home=workload.home, setup=workload.setup)
        done = self.run_as_person("bash", "-c", script)
        assert done.status == 0, f"{workload.name}: {done.output}"

    def _run(self, workload: Workload, wall: Sequence[str]) -> Result:
        project, printed = self.parent / workload.name, self.folder / "printed"
        printed.touch()
        words = ["bash", "-c", f"exec 2>&1; set -e\n{workload.work}"]
        redirected = ["sh", "-c", f'exec "$@" >{shlex.quote(str(printed))}', "sh", *wall, *words]
        before = beside(self.home, project)
        variables = self.variables()
        for name, text in workload.variables.items():
            variables[name] = Template(text).substitute(variables)
        done = self.user.run(redirected, variables, project)
        changes = beside(self.home, project).items() ^ before.items()
        text = printed.read_text(errors="replace")
        return Result(done.status, text, done.output, state_of(project), dict(changes))


def differences(workload: Workload, outside: Result, inside: Result) -> list[str]:
    """Return what came out differently behind the wall."""
    found = []
    if inside.status != outside.status:
        found.append(f"exit status {inside.status}, not {outside.status}")
    if not workload.varies and inside.printed != outside.printed:
        found.append("another output")
    for name in sorted(inside.state.keys() | outside.state.keys()):
        there, here = (_state(workload, name, each) for each in (outside, inside))
        if there != here and not (there and here and workload.does_ignore(name)):
            found.append(f"{name}: {_first_difference(there, here)}")
    told = inside.said.partition("stay behind the wall")[2]
    found += [f"{name} stays without a word" for name in workload.stays if name not in told]
    changed = (name for name in sorted(inside.beside) if not workload.does_ignore(name))
    found += [f"changed beside the project: {name}" for name in changed]
    return found


def _state(workload: Workload, name: str, result: Result) -> str | None:
    """Return the state of one thing, without the settings that stay behind the wall."""
    text = result.state.get(name)
    if text is None or not name.endswith(": git config"):
        return text
    lines = text.splitlines()
    return "\n".join(line for line in lines if line.partition("=")[0] not in workload.stays)


def _first_difference(outside: str | None, inside: str | None) -> str:
    """Return the lines that only one of them has."""
    there, here = (set((text or "nothing").splitlines()) for text in (outside, inside))
    return f"{sorted(here - there)[:5]} instead of {sorted(there - here)[:5]}"


def state_of(project: Path) -> dict[str, str]:
    """Return each file with its mode and content, and what git knows of each repository."""
    found: dict[str, str] = {}
    for path in walk(project):
        if not set(path.relative_to(project).parts) & set(_NEVER_COMPARED):
            found[str(path.relative_to(project))] = _content(path)
        if path.name == ".git":
            found |= _facts(project, path.parent)
    return found


def _facts(project: Path, top: Path) -> dict[str, str]:
    """Return the answers of git in a repository, and its hooks."""
    name = top.relative_to(project)
    facts = {f"{name}: git {fact}": _git(top, *fact.split()) for fact in _FACTS}
    facts[f"{name}: git config"] = "\n".join(
        sorted({*_git(top, "config", "--local", "--list").splitlines()})
    )
    facts[f"{name}: git fsck"] = str("missing" in (said := _git(top, "fsck")) or "error" in said)
    return facts


def beside(home: Path, project: Path) -> dict[str, str]:
    """Return the kind, size, and time of each file in the home that is not of the project."""
    found = {}
    for path in walk(home):
        if path != project and project not in path.parents:
            status = path.lstat()
            size = 0 if stat.S_ISDIR(status.st_mode) else status.st_size
            found[str(path.relative_to(home))] = f"{status.st_mode} {size} {status.st_mtime_ns}"
    return found


def walk(top: Path) -> Iterator[Path]:
    """Yield everything below `top`. It follows no link."""
    for folder, folders, files in os.walk(top):
        for name in (*folders, *files):
            yield Path(folder, name)


def _content(path: Path) -> str:
    mode = path.lstat().st_mode
    if stat.S_ISLNK(mode):
        return f"link to {os.readlink(path)}"
    if stat.S_ISREG(mode):
        kind = "program" if mode & stat.S_IXUSR else "file"
        return f"{kind} {hashlib.sha256(path.read_bytes()).hexdigest()[:12]}"
    return stat.filemode(mode)[0]


def _git(top: Path, *words: str) -> str:
    done = subprocess.run(
        ["git", "-C", top, *words], capture_output=True, text=True, check=False,
        env={**os.environ, "GIT_OPTIONAL_LOCKS": "0"},
    )  # fmt: skip
    return done.stdout + done.stderr
