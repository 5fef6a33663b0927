"""A container as docs/DEVCONTAINERS.md sets it up, with bubblewrap in place of Docker.

The mounts are those of the page's devcontainer.json, and the feature's install.sh runs as in the
build of an image. The container has its own home and its own view of processes.
"""

from __future__ import annotations

import json
import re
import subprocess
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest

from support.bridges import ASKING_FOR_ROOTS, told_roots
from support.documents import blocks
from support.person import HANG_GUARD, Person
from support.pipx_install import interpreter
from support.sizes import Sizes

pytestmark = [
    pytest.mark.needs("linux"), pytest.mark.needs("bubblewrap"),
    pytest.mark.needs("user-namespaces"),
]  # fmt: skip

TOP = Path(__file__).parent.parent.parent
PAGE = TOP / "docs" / "DEVCONTAINERS.md"
FEATURE = TOP / "packaging" / "devcontainer"
Finished = subprocess.CompletedProcess[str]


def settings() -> Mapping[str, Any]:
    """Return the devcontainer.json of the page."""
    (block,) = blocks(PAGE, "json")
    parsed: Mapping[str, Any] = json.loads(block.text)
    return parsed


@dataclass(frozen=True, slots=True)
class Mount:
    """One mount in the syntax of Docker."""

    source: str
    target: str
    is_read_only: bool

    @classmethod
    def parse(cls, text: str, variables: Mapping[str, str]) -> Mount:
        """Return the mount. Raises KeyError for an unknown variable or a missing key."""
        known = re.sub(r"\$\{([^}]+)\}", lambda found: variables[found[1]], text)
        keys = dict(part.partition("=")[::2] for part in known.split(","))
        assert keys["type"] == "bind"
        return cls(keys["source"], keys["target"], "readonly" in keys)

    @property
    def words(self) -> list[str]:
        """Return the words for bubblewrap."""
        return ["--ro-bind" if self.is_read_only else "--bind", self.source, self.target]


class Container:
    """A container of the page's settings, for the project `workspace` of `person`."""

    def __init__(self, folder: Path, person: Person, workspace: Path) -> None:
        self._folder = folder
        chosen = settings()
        self.home = home()
        runtime = folder / "runtime"
        runtime.mkdir()
        self.host_sockets = Path(person.environment()["ROOTSD_DIR"]) / "run"
        (runtime / "rootsd").symlink_to(self.host_sockets)
        variables = {
            "localWorkspaceFolder": str(workspace), "localEnv:XDG_RUNTIME_DIR": str(runtime),
        }  # fmt: skip
        self.mounts = [
            Mount.parse(text, variables) for text in (chosen["workspaceMount"], *chosen["mounts"])
        ]
        self.workspace = chosen["workspaceFolder"].replace(
            "${localWorkspaceFolder}", variables["localWorkspaceFolder"]
        )

    def run(self, *words: str, said: str = "", more: tuple[str, ...] = ()) -> Finished:
        """Run a program in the started container. `more` are further words for bubblewrap."""
        mounts = [word for mount in self.mounts for word in mount.words]
        feature = json.loads((FEATURE / "devcontainer-feature.json").read_text())
        path = feature["containerEnv"]["PATH"].replace("${PATH}", _path())
        return _run(
            self._folder, [*mounts, *more, "--chdir", self.workspace], {"PATH": path}, *words,
            said=said,
        )  # fmt: skip


def home() -> str:
    """Return the home folder inside the container."""
    return f"/home/{settings()['remoteUser']}"


# What a container's python3 does, but the environments that it makes have the pip of ours. To
# install pip into an environment takes three seconds, which is most of the build of an image.
PYTHON_WITH_OUR_PIP = """\
#!/bin/sh
[ "$1 $2" = "-m venv" ] || exec {python} "$@"
{python} -m venv --without-pip "$3" || exit
echo {packages} >"$(echo "$3"/lib/python3*/site-packages)/pip.pth"
"""


def _build(folder: Path, package: Path, sizes: Sizes) -> None:
    """Run the feature's install.sh in an image, which is the folders `home` and `opt` of `folder`.

    Dependencies come from our environment.
    """
    for name in ("home", "opt"):
        (folder / name).mkdir()
    packages = next(entry for entry in sys.path if entry.endswith("/site-packages"))
    user = subprocess.run(["id", "-un"], capture_output=True, text=True, check=True).stdout
    programs = folder / "programs"
    programs.mkdir()
    if sizes.pick(test=find_spec("pip"), check=None, soak=None) is not None:
        text = PYTHON_WITH_OUR_PIP.format(python=interpreter(), packages=packages)
        (programs / "python3").write_text(text)
        (programs / "python3").chmod(0o755)
    kept = [word for each in (FEATURE, package, programs) for word in ("--ro-bind", each, each)]
    environment = {
        # Compiling all modules would take longer than to compile those that are used.
        "PACKAGE": str(package), "PIP_NO_DEPS": "1", "PIP_NO_INDEX": "1", "PIP_NO_COMPILE": "1",
        "PIP_FORCE_REINSTALL": "1",  # ours is in our environment, too
        "PATH": f"{programs}:{_path()}",
        "_REMOTE_USER": user.strip(), "_REMOTE_USER_HOME": home(),
    }  # fmt: skip
    done = _run(folder, [str(word) for word in kept], environment, str(FEATURE / "install.sh"))
    assert done.returncode == 0, done.stdout + done.stderr
    (library,) = (folder / "opt").glob("rootsd/lib/python*/site-packages")
    assert (library / "rootsd").is_dir()
    (library / "dependencies.pth").write_text(f"{packages}\n")


def _run(
    folder: Path, mounts: list[str], environment: Mapping[str, str], *words: str, said: str = ""
) -> Finished:
    places = [str(folder / name) for name in ("home", "opt")]
    python = [word for each in _python_folders() for word in ("--ro-bind", each, each)]
    return subprocess.run(
        ["bwrap", "--ro-bind", "/", "/", "--dev", "/dev", "--proc", "/proc", "--unshare-pid",
         "--die-with-parent", "--tmpfs", "/run", "--tmpfs", "/tmp", "--tmpfs", "/home",
         "--tmpfs", "/opt", "--bind", places[0], home(), "--bind", places[1], "/opt",
         *python, *mounts, "--", *words],
        env={"HOME": home(), "PATH": _path(), "LANG": "C.UTF-8", **environment},
        input=said, capture_output=True, text=True, check=False, timeout=HANG_GUARD,
    )  # fmt: skip


def _path() -> str:
    return f"{Path(interpreter()).parent}:/usr/bin:/bin"


def _python_folders() -> Iterator[str]:
    """Yield the folders of our Python that the container would hide."""
    packages = next(entry for entry in sys.path if entry.endswith("/site-packages"))
    for folder in (sys.base_prefix, packages):
        if folder.startswith(("/home/", "/opt/", "/tmp/")):
            yield folder


@pytest.fixture
def person(tmp_path: Path) -> Iterator[Person]:
    person = Person(tmp_path / "host")
    for name in ("api", "secret"):
        person.clone(name)
    person.rootsd("up", str(person.parent))
    for name in ("api", "secret"):
        person.wait_until_listed(name, "pending")
    person.rootsd("approve", "api")
    yield person
    person.run("down")


@pytest.fixture
def container(tmp_path: Path, person: Person, wheel: Path, sizes: Sizes) -> Container:
    _build(tmp_path, wheel, sizes)
    return Container(tmp_path, person, person.parent / "api")


def test_the_page_mounts_only_pub_of_rootsd() -> None:
    text = PAGE.read_text()
    (sockets,) = settings()["mounts"]
    assert "/rootsd/pub,target=" in sockets
    assert sockets.endswith(",readonly")
    assert "**Never mount `ctl/`**" in text
    feature = json.loads((FEATURE / "devcontainer-feature.json").read_text())
    assert "mounts" not in feature
    assert list(settings()["features"]) == [f"./{feature['id']}"]


def test_an_agent_in_the_container_gets_the_current_roots_and_can_decide_nothing(
    container: Container, person: Person, sizes: Sizes
) -> None:
    done = container.run("rootsd", "bridge", said=ASKING_FOR_ROOTS.decode())
    api = person.parent / "api"
    assert [root["uri"] for root in told_roots(done.stdout)] == [api.as_uri()]
    assert container.run("cat", f"{api}/README").stdout == "hello\n"

    check, approve = (
        command for block in blocks(PAGE, "console") for command, _ in block.commands
    )
    assert container.run("sh", "-c", check).stdout.endswith("published\n")
    refused = container.run("sh", "-c", approve)
    assert refused.returncode != 0
    assert "runs in a sandbox that hides the control socket of rootsd" in refused.stderr
    attempts = ("deny api", "down", "approve secret", f"up {person.parent}", "guard off")
    for attempt in sizes.pick(test=attempts[:2], check=attempts, soak=attempts):
        assert container.run("rootsd", *attempt.split()).returncode != 0, attempt
    socket = f"{container.home}/.local/state/rootsd/run/pub"
    assert container.run("touch", f"{socket}/mine").returncode != 0
    assert container.run("rm", f"{socket}/mcp.sock").returncode != 0
    assert person.names("ls", "--published") == ["api"]
    person.rootsd("deny", "api")
    assert container.run("sh", "-c", check).returncode != 0, "it left the list"

    # The control: with ctl/ mounted, a program in the container decides.
    target = f"{container.home}/.local/state/rootsd/run/ctl"
    with_ctl = ("--bind", str(container.host_sockets / "ctl"), target)
    assert container.run("rootsd", "approve", "secret", more=with_ctl).returncode == 0
    assert person.names("ls", "--published") == ["secret"]


def test_without_python_the_feature_says_what_to_add(tmp_path: Path) -> None:
    (tmp_path / "sh").symlink_to("/bin/sh")
    done = subprocess.run(
        ["/bin/sh", FEATURE / "install.sh"], env={"PATH": str(tmp_path)},
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 1
    assert "try: add the feature ghcr.io/devcontainers/features/python" in done.stderr
