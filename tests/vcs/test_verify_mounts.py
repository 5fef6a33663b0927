"""A root is verified again when something is mounted inside it, even if that does not respond."""

from __future__ import annotations

from pathlib import Path

import pytest

from support.subprocesses import OWN_MOUNTS, run_python

_INSIDE = """
import os, signal, subprocess, sys, time
from pathlib import Path
from rootsd.core.inputs import ProjectObserved
from rootsd.disk.identity import identify
from support.system_parts import folder_safety
from rootsd.vcs import verify
from support.polling import until
from support.repositories import fake_repository, raw

top = Path(sys.argv[1])
verify.racy_cutoff_ns = lambda: time.time_ns() + 10**9  # recent changes count as old ones
root, behind = fake_repository(top / "root"), top / "behind"
inner = root / "data"
behind.mkdir()
inner.mkdir()
verifier = verify.RootVerifier(folder_safety())
if "control" in sys.argv:
    verify.process_mounts().foreign = tuple

def mount():
    served = subprocess.Popen(["bindfs", "-f", behind, inner])
    until(lambda: os.path.ismount(inner))
    return served

def unmount(served):
    until(lambda: not subprocess.run(["umount", inner], capture_output=True).returncode)
    served.wait()

def lapses():
    (seen,) = verifier.verify(roots) or [None]
    return isinstance(seen, ProjectObserved) and not approved.holds_for(seen.identity)

approved = identify(raw(root))
roots = {raw(root): approved}
assert verifier.verify(roots) == verifier.verify(roots) == []
served = mount()
print(lapses())
approved = identify(raw(root))  # with what is mounted there
roots = {raw(root): approved}
print(lapses())
served.send_signal(signal.SIGSTOP)
print(lapses())
served.send_signal(signal.SIGCONT)
unmount(served)
print(lapses())
served = mount()
print(lapses())
unmount(served)
"""


@pytest.mark.needs("namespaces", "bindfs")
@pytest.mark.parametrize(
    ("words", "told"),
    [
        pytest.param((), "True False False False True", id="mounts"),
        pytest.param((Path("control"),), "False False False False False", id="control"),
    ],
)
def test_a_mount_inside_a_root_ends_its_approval(
    words: tuple[Path, ...], told: str, tmp_path: Path
) -> None:
    output, errors = run_python(OWN_MOUNTS, _INSIDE, tmp_path, *words)
    assert (output.split(), errors) == (told.split(), "")
