"""A program that probes hostile projects while it may neither write nor start programs.

`python -m support.restricted_probe PARENT free|bound` prints the result for each project, and the
cost in time and memory.
"""

from __future__ import annotations

import json
import os
import resource
import subprocess
import sys
import threading
import time
from collections.abc import Sequence
from enum import StrEnum

from rootsd.core.inputs import Observation, ProjectObserved
from rootsd.core.model import Parent, ProjectKind
from rootsd.discovery.service import Discovery
from rootsd.vcs.facts import collect_risks
from rootsd.vcs.folder import OpenProject
from rootsd.vcs.git.copies import missing_content
from rootsd.vcs.git.repository import find_git_dirs
from rootsd.vcs.probe import probe
from rootsd.wall.kernel.landlock import READ, Right, Ruleset
from support.system_parts import this_system

HANG_GUARD = 60
ENOUGH = 250  # of the projects that discovery finally reports
_WRITING = os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_TRUNC
_STARTING = ("subprocess.Popen", "os.exec", "os.posix_spawn", "os.system", "os.fork", "pty.spawn")
_CHANGING = (
    "os.remove", "os.rename", "os.mkdir", "os.rmdir", "os.link", "os.symlink", "os.chmod",
    "os.chown", "os.utime", "os.truncate", "os.setxattr", "shutil.rmtree",
)  # fmt: skip


class Restriction(StrEnum):
    """The rights of the process."""

    FREE = "free"
    BOUND = "bound"


class AttemptCounter:
    """Counts the attempts to write or to start programs, even if the kernel refuses them."""

    def __init__(self) -> None:
        self.count = 0
        sys.addaudithook(self._hear)

    def _hear(self, event: str, arguments: tuple[object, ...]) -> None:
        writes = event == "open" and isinstance(arguments[2], int) and arguments[2] & _WRITING
        if writes or event in _STARTING or event in _CHANGING:
            self.count += 1


def _bind() -> None:
    rules = Ruleset()
    rules.allow(b"/", READ)
    rules.allow(b"/dev/null", READ | Right.WRITE_FILE)
    rules.restrict()


def _discover(parent: bytes) -> dict[bytes, str]:
    """Return discovery's report on each project, as the daemon gets it."""
    told: dict[bytes, str] = {}
    heard = threading.Condition()

    def report(observations: Sequence[Observation]) -> None:
        with heard:
            told.update((one.path, _in_words(one)) for one in observations)
            heard.notify_all()

    discovery = Discovery(
        report=report,
        on_status=lambda _: None,
        on_death=lambda: None,
        dependencies=this_system(),
    )
    discovery.start([Parent(parent)], {})
    try:
        discovery.scan(parent).result(HANG_GUARD)
        with heard:
            # Most are incomplete, and are reported after the quiet period.
            heard.wait_for(lambda: len(told) >= ENOUGH, HANG_GUARD)
    finally:
        discovery.stop()
    return told


def _in_words(one: Observation) -> str:
    if isinstance(one, ProjectObserved):
        return f"{one.kind} {one.incomplete} {one.main_checkout!r}"
    return type(one).__name__


def _memory_kib() -> int:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss


def main() -> None:
    """Probe, and print the results."""
    parent, bonds = os.fsencode(sys.argv[1]), Restriction(sys.argv[2])
    probe(parent)
    before = _memory_kib()
    attempts = AttemptCounter()
    if bonds is Restriction.BOUND:
        _bind()
    told: dict[bytes, str] = {}
    slowest = 0.0
    for name in sorted(os.listdir(parent)):
        path = parent + b"/" + name
        start = time.perf_counter()
        told[path] = _in_words(probe(path))
        if (place := find_git_dirs(path)) is not None:
            with OpenProject(path) as look:
                told[path] += f" {missing_content(look, place.kind)}"
        collect_risks(path, ProjectKind.GIT)
        slowest = max(slowest, time.perf_counter() - start)
    grown = _memory_kib() - before
    discovered = _discover(parent)
    words = {os.fsencode(path).hex(): said for path, said in sorted(told.items())}
    result = {
        "told": words,
        "discovered": {path.hex(): said for path, said in sorted(discovered.items())},
        "slowest_ms": round(slowest * 1e3, 2),
        "grown_kib": grown,
        "attempts": attempts.count,
    }
    if bonds is Restriction.BOUND:
        result["refused"] = _is_refused()
    print(json.dumps(result))  # noqa: T201 - this is what the test reads


def _is_refused() -> bool:
    """Return whether the restriction works. Without it, the absence of effects proves nothing."""
    try:
        subprocess.run(["git", "--version"], check=True, capture_output=True)
    except PermissionError:
        return True
    return False


if __name__ == "__main__":
    main()
