"""The start of a program in another process, for tests of watching (for example in its own
namespace).

Its code can use `top`, an empty folder; `observed`, the collected reports; `start`, which starts
discovery of some parents and waits for the scan; `state_of` a parent; `sh`, to run a program; and
`unmount`.
"""

from __future__ import annotations

from pathlib import Path

from support.subprocesses import run_python

_BEGIN = """
import os, shutil, signal, subprocess, sys, threading
from pathlib import Path
from rootsd.discovery.service import Discovery
from support.system_parts import this_system
from rootsd.discovery.status import ParentState
from rootsd.core.inputs import ProjectObserved
from rootsd.core.inputs import ProjectUnreachable
from rootsd.core.inputs import ProjectGone
from rootsd.core.model import IncompleteReason
from rootsd.core.model import ScanCoverage
from rootsd.core.model import MountPolicy
from rootsd.core.model import Parent
from rootsd.disk import file_clock
from rootsd.watch import polling
from support.report_collector import HANG_S, ReportCollector
from support.repositories import fake_repository, raw
from support.polling import until

top = Path(sys.argv[1])
observed = ReportCollector()

def start(*parents, mounts=MountPolicy.NONE, **dependencies):
    dependencies = this_system(**dependencies)
    discovery = Discovery(
        report=observed.report,
        on_status=observed.on_status,
        on_death=observed.on_death,
        dependencies=dependencies,
    )
    discovery.start([Parent(raw(parent), mounts=mounts) for parent in parents], {})
    discovery.scan(None).result(HANG_S)
    return discovery

def state_of(parent):
    (found,) = (report for report in observed.status if report.path == raw(parent))
    return found

def sh(*command):
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL)

def unmount(point):
    # It is busy for as long as somebody looks at something there.
    until(lambda: not subprocess.run(["umount", point], capture_output=True).returncode)
"""


def run_watching(wrapper: tuple[str, ...], code: str, top: Path) -> None:
    """Run `code` below `wrapper`, after that start. It must succeed."""
    said, complaint = run_python(wrapper, _BEGIN + code + "\nprint('done')", top)
    assert (said, complaint) == ("done\n", ""), complaint
