"""The owners and modes of the folders above show who could replace a folder."""

from __future__ import annotations

import os
import stat
from pathlib import Path

import pytest

from rootsd.core.model import LapseReason
from rootsd.core.paths import RefusedPlaces
from rootsd.disk.safety import (
    explain_alias,
    refused_place_alias,
)
from rootsd.disk.writers import is_private_group, trusted_owners
from support.repositories import raw
from support.subprocesses import OWN_MOUNTS, run_python
from support.system_parts import folder_safety

UID = os.getuid()
OURS = folder_safety(UID, is_private=lambda _gid, _uid: True)
SHARED = folder_safety(UID, is_private=lambda _gid, _uid: False)


def _project(top: Path, mode: int) -> bytes:
    project = top / "above" / "project"
    project.mkdir(parents=True)
    (top / "above").chmod(mode)
    return raw(project)


@pytest.mark.parametrize("mode", [0o755, 0o700, 0o1777])
def test_no_other_user_can_write_an_ancestor(tmp_path: Path, mode: int) -> None:
    assert SHARED.hazard(_project(tmp_path, mode)) is None


@pytest.mark.parametrize("mode", [0o777, 0o757])
def test_everybody_can_write_an_ancestor(tmp_path: Path, mode: int) -> None:
    hazard = OURS.hazard(_project(tmp_path, mode))
    assert hazard is not None
    assert hazard.reason is LapseReason.EXPOSED
    assert "everybody" in hazard.sentence


def test_a_group_with_the_user_as_its_only_member_may_write(tmp_path: Path) -> None:
    project = _project(tmp_path, 0o775)
    assert OURS.hazard(project) is None
    hazard = SHARED.hazard(project)
    assert hazard is not None
    assert "group" in hazard.sentence


def test_a_link_in_the_path_leads_elsewhere(tmp_path: Path) -> None:
    _project(tmp_path, 0o755)
    (tmp_path / "link").symlink_to("above")
    hazard = OURS.hazard(raw(tmp_path / "link" / "project"))
    assert hazard is not None
    assert hazard.reason is LapseReason.RETARGETED


def test_a_folder_of_another_user_is_refused(tmp_path: Path) -> None:
    other = folder_safety(UID + 1, is_private=lambda _gid, _uid: True)
    hazard = other.hazard(_project(tmp_path, 0o755))
    assert hazard is not None
    assert "another user" in hazard.sentence


def test_an_ancestor_of_another_user_is_exposed(tmp_path: Path) -> None:
    found = os.stat_result((stat.S_IFDIR | 0o755, 1, 1, 2, UID + 77_777, 0, 0, 0, 0, 0))
    hazard = OURS.ancestor_hazard(raw(tmp_path), found, UID)
    assert hazard is not None
    assert hazard.reason is LapseReason.EXPOSED


def test_the_sticky_bit_does_not_protect_another_users_entry(tmp_path: Path) -> None:
    found = os.stat_result((stat.S_IFDIR | 0o1777, 1, 1, 2, 0, 0, 0, 0, 0, 0))
    assert OURS.ancestor_hazard(raw(tmp_path), found, UID) is None
    assert OURS.ancestor_hazard(raw(tmp_path), found, UID + 77_777) is not None


def test_an_ancestor_is_checked_once(tmp_path: Path) -> None:
    project, safe = _project(tmp_path, 0o755), set[bytes]()
    assert OURS.hazard(project, safe) is None
    assert raw(tmp_path / "above") in safe
    (tmp_path / "above").chmod(0o777)
    assert OURS.hazard(project, safe) is None
    assert OURS.hazard(project) is not None


def test_a_missing_folder_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError):
        OURS.hazard(raw(tmp_path / "none"))


def test_root_and_the_user_are_trusted() -> None:
    assert {0, 1234} <= trusted_owners(1234)


def test_an_unknown_group_is_not_private() -> None:
    assert not is_private_group(2**31 - 7, UID)


def test_a_refused_place_is_recognized_under_another_name(tmp_path: Path) -> None:
    (tmp_path / "secrets").mkdir()
    (tmp_path / "alias").symlink_to("secrets")
    secrets, alias = raw(tmp_path / "secrets"), raw(tmp_path / "alias")
    assert refused_place_alias(secrets, [alias]) == alias
    assert refused_place_alias(secrets, [secrets]) is None
    assert refused_place_alias(raw(tmp_path), [secrets, raw(tmp_path / "none")]) is None
    assert refused_place_alias(raw(tmp_path / "none"), [secrets]) is None


def test_a_refused_place_under_another_name_is_a_hazard(tmp_path: Path) -> None:
    project = _project(tmp_path, 0o755)
    (tmp_path / "alias").symlink_to("above/project")
    places = RefusedPlaces(raw(tmp_path / "alias"))
    safety = folder_safety(UID, places=lambda: places)
    hazard = safety.hazard(project)
    assert hazard is not None
    assert hazard.reason is LapseReason.REFUSED_PLACE
    assert hazard.sentence == f"it is {tmp_path / 'alias'} under another name"
    # `rootsd.core.paths` refuses it under its own name.
    assert folder_safety(UID, places=lambda: RefusedPlaces(project)).hazard(project) is None


ALIASED = """
import os, subprocess, sys
from pathlib import Path
from rootsd.core.paths import PolicyEntry, RefusedPlaces
from rootsd.disk.safety import explain_alias
from support.system_parts import folder_safety
home = Path(sys.argv[1])
secret = os.fsencode(home / "secret")
by_policy = RefusedPlaces(os.fsencode(home), by_policy=(PolicyEntry(secret, "line 4"),))
subprocess.run(["mount", "--bind", home / "secret", home / "src/one"], check=True)
for places in (by_policy, by_policy._replace(refused=(secret,)), by_policy._replace(by_policy=())):
    safety = folder_safety(places=lambda: places)
    for name in ("src/one", "src/one/sub", "secret"):
        hazard = safety.hazard(os.fsencode(home / name))
        print(name, hazard and hazard.reason.value)
here = os.fsencode(home / "src/etc")
subprocess.run(["mount", "--bind", "/etc", here], check=True)
print(explain_alias(here), folder_safety().hazard(here).reason.value)
"""


@pytest.mark.needs("namespaces")
def test_another_name_of_a_place_of_the_policy_is_a_hazard_of_its_own(tmp_path: Path) -> None:
    """Only a place that others refuse, too, lets an approval lapse, as a folder of the system."""
    for name in ("secret/sub", "src/one", "src/etc"):
        (tmp_path / name).mkdir(parents=True)
    by_policy, refused = "the policy refuses it", "refused place"
    assert run_python(OWN_MOUNTS, ALIASED, tmp_path) == (
        "".join(
            f"src/one {reason}\nsrc/one/sub {reason}\nsecret None\n"
            for reason in (by_policy, refused, None)
        )
        + "it is /etc under another name refused place\n",
        "",
    )
    assert explain_alias(raw(tmp_path)) is None


BELOW = """
import os, subprocess, sys
from pathlib import Path
from rootsd.core.paths import RefusedPlaces
from rootsd.disk.identity import identify
from rootsd.disk.mounts import MountTable
from support.system_parts import folder_safety
from rootsd.vcs.verify import RootVerifier
home = Path(sys.argv[1])
places = RefusedPlaces(os.fsencode(home), own=(os.fsencode(home / "state"),))
safety = folder_safety(places=lambda: places, mounted=MountTable().now)
(home / ".ssh/sub").mkdir(parents=True)
for place, at in ((".ssh", "src/one"), ("state", "src/two"), ("..", "src/over")):
    subprocess.run(["mount", "--bind", home / place, home / at], check=True)
for name in sys.argv[2:]:
    path = os.fsencode(home / name)
    hazard = safety.hazard(path)
    reasons = RootVerifier(safety).verify({path: identify(path)})
    print(name, hazard and hazard.sentence, [seen.reason.value for seen in reasons])
"""


@pytest.mark.needs("namespaces")
def test_a_folder_below_an_alias_of_a_refused_folder_is_refused(
    tmp_path: Path,
) -> None:
    """This also holds if the folder and its second name were created during the check. A folder
    that contains one of them is itself refused, and no other.
    """
    home = tmp_path / "ann"
    for name in ("state/sub", ".codex/worktrees/w", "src/one", "src/two", "src/plain/sub"):
        (home / name).mkdir(parents=True)
    for folder in (home / "src/over", tmp_path / "x"):
        folder.mkdir()
    seen = ["src/one/sub", "src/two/sub", ".codex/worktrees/w", "src/plain/sub"]
    seen += ["src/over", "src/over/x"]
    assert run_python(OWN_MOUNTS, BELOW, home, *map(Path, seen)) == (
        f"src/one/sub {home}/src/one is {home}/.ssh under another name ['refused place']\n"
        f"src/two/sub {home}/src/two is {home}/state under another name ['refused place']\n"
        ".codex/worktrees/w None []\n"
        "src/plain/sub None []\n"
        f"src/over it is {tmp_path} under another name ['refused place']\n"
        "src/over/x None []\n",
        "",
    )


CONFIGURED = """
import os, subprocess, sys
from rootsd.core.paths import RefusedPlaces
from rootsd.vcs import verify
from rootsd.disk.identity import identify
from rootsd.disk.mounts import MountTable
from support.system_parts import folder_safety
top = os.fsencode(sys.argv[1])
subprocess.run(["mount", "--bind", top + b"/vault", top + b"/src"], check=True)
path, mounted = top + b"/src/x", MountTable()
places = unchanged = RefusedPlaces(b"/home/ann")
safety = folder_safety(places=lambda: places, mounted=mounted.now)
verifier = verify.RootVerifier(safety)
verify.racy_cutoff_ns = lambda: 1 << 62
def reasons(path):
    return [seen.reason.value for seen in verifier.verify({path: identify(path)})]
print(reasons(path), reasons(path))
places = unchanged._replace(refused=(top + b"/vault",))
print(reasons(path), reasons(path), safety.hazard(top + b"/src").sentence)
places = unchanged._replace(refused=(top + b"/vault/x/inner",))
print(reasons(path), safety.hazard(path).sentence)
places = unchanged
print(reasons(path), safety.hazard(path))
"""


@pytest.mark.needs("namespaces")
def test_a_newly_refused_place_is_refused_under_another_name(
    tmp_path: Path,
) -> None:
    """This is also true for a verified root, and for a folder that contains the refused place."""
    for name in ("vault/x/inner", "src"):
        (tmp_path / name).mkdir(parents=True)
    another = "under another name"
    assert run_python(OWN_MOUNTS, CONFIGURED, tmp_path) == (
        "[] []\n"
        "['refused place'] ['refused place'] "
        f"it is {tmp_path}/vault {another}\n"
        f"['refused place'] it is {tmp_path}/vault/x {another}\n"
        "[] None\n",
        "",
    )


def test_a_refused_place_on_a_hung_mount_is_recognized_once_it_responds(tmp_path: Path) -> None:
    project = _project(tmp_path, 0o755)
    (tmp_path / "alias").symlink_to("above/project")
    places, silent = RefusedPlaces(raw(tmp_path / "alias")), {raw(tmp_path / "alias")}
    asked: list[bytes] = []

    def responds(path: bytes) -> bool:
        asked.append(path)
        return path not in silent

    safety = folder_safety(UID, places=lambda: places, responds=responds)
    assert safety.hazard(project) is None
    silent.clear()
    assert safety.hazard(project) is not None
    asked.clear()
    assert safety.hazard(project) is not None
    assert asked == []
