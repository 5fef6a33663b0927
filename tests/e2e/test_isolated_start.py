"""The installed command runs no code that a project or an AppImage names in the environment.

Each attack plants modules that leave a mark when Python loads them.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from itertools import cycle, product
from pathlib import Path

import pytest

from rootsd.__main__ import LIBRARY_PATH
from rootsd.processes.own_program import COMMAND_NAME
from support.sizes import Sizes

TOP = Path(__file__).parent.parent.parent
VERSION = f"python{sys.version_info.major}.{sys.version_info.minor}"
PACKAGES = f"lib/{VERSION}/site-packages"
HANG_GUARD_S = 60.0
PLANTED = (
    "sitecustomize.py", "usercustomize.py", "json.py", "socket.py", "encodings/__init__.py",
    "rootsd/__init__.py", "rootsd/__main__.py", "rootsd.py",
)  # fmt: skip
NOTHING_TO_ASK = {"hook": b"{}"}
COMMANDS = (
    ("hook", "claude-code"),
    ("check", "/"),
    ("pending", "--count"),
    ("bridge",),
    ("version",),
)
# What a server writes: the variables with which it was started.
SERVER = "import json, os, sys; json.dump(dict(os.environ), open(sys.argv[1], 'w'))"


class Installation:
    """rootsd in an environment of its own, as pip, uv, and pipx install it, and a link to it."""

    def __init__(self, folder: Path) -> None:
        own = folder / "environment"
        self.file = own / "bin" / COMMAND_NAME
        self.link = folder / "path" / COMMAND_NAME
        packages = own / PACKAGES
        for place in (self.file.parent, self.link.parent, packages):
            place.mkdir(parents=True)
        base = Path(sys.base_prefix, "bin")
        (own / "pyvenv.cfg").write_text(f"home = {base}\n")
        (own / "bin/python3").symlink_to(base / VERSION)
        (packages / "rootsd").symlink_to(TOP / "daemon/rootsd")
        dependencies = next(entry for entry in sys.path if entry.endswith("/site-packages"))
        (packages / "dependencies.pth").write_text(f"{dependencies}\n")
        shutil.copy(TOP / "bin/rootsd", self.file)
        self.link.symlink_to(self.file)

    def leave_out(self, *flags: str) -> None:
        """Take flags of Python away: the planted fault."""
        text = self.file.read_text()
        for flag in flags:
            assert f" {flag} " in text
            text = text.replace(f" {flag} ", " ")
        self.file.write_text(text)


@pytest.fixture
def installed(tmp_path: Path) -> Installation:
    return Installation(tmp_path / "installed")


class Attack:
    """A folder with planted modules, and the mark that they leave."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.mark = folder / "mark"
        for below in ("", PACKAGES):
            for name in PLANTED:
                file = folder / below / name
                file.parent.mkdir(parents=True, exist_ok=True)
                # Not by `open`: a planted `encodings` runs before there are any built-in names.
                file.write_text(f"import posix; posix.mkdir({str(self.mark)!r})\n")

    def environments(self) -> dict[str, dict[str, str]]:
        """Return the variables of each attack by its name."""
        own = str(self.folder)
        return {
            "a folder of modules": {"PYTHONPATH": own},
            "the working directory": {"PYTHONPATH": "", "PYTHONSAFEPATH": ""},
            "another library": {"PYTHONHOME": own},
            "no library": {"PYTHONHOME": "/nonexistent"},
            "packages of the user": {"PYTHONUSERBASE": own},
            "packages in the home": {"HOME": own},
            "a file to run": {
                "PYTHONSTARTUP": f"{own}/json.py", "PYTHONINSPECT": "1",
            },
            "compiled files": {"PYTHONPYCACHEPREFIX": own},
            "another layout": {"PYTHONPLATLIBDIR": own},
            "another program": {"PYTHONEXECUTABLE": f"{own}/bin/python3"},
            "another launcher": {"__PYVENV_LAUNCHER__": f"{own}/bin/python3"},
            "an AppImage": {
                "APPDIR": own, "LD_LIBRARY_PATH": f"{own}/usr/lib", "PYTHONHOME": f"{own}/usr",
                "PYTHONPATH": f"{own}/usr/share/pyshared:",
            },
        }  # fmt: skip


@pytest.fixture
def attack(tmp_path: Path) -> Attack:
    attack = Attack(tmp_path / "hostile")
    local = attack.folder / ".local" / PACKAGES
    local.mkdir(parents=True)
    shutil.copy(attack.folder / "usercustomize.py", local)
    return attack


def run(
    program: Path, words: tuple[str, ...], variables: dict[str, str], cwd: Path
) -> subprocess.CompletedProcess[bytes]:
    kept = {name: os.environ[name] for name in ("PATH", "HOME", "ROOTSD_DIR")}
    return subprocess.run(
        [program, *words],
        input=NOTHING_TO_ASK.get(words[0], b""),
        env={**kept, **variables}, cwd=cwd, capture_output=True, timeout=HANG_GUARD_S, check=False,
    )  # fmt: skip


def test_no_variable_names_code_for_a_command(
    installed: Installation, attack: Attack, rootsd_dir: Path, sizes: Sizes
) -> None:
    usual: dict[tuple[str, ...], subprocess.CompletedProcess[bytes]] = {
        words: run(installed.link, words, {}, rootsd_dir.parent) for words in COMMANDS
    }
    assert not any(b"Traceback" in done.stderr for done in usual.values())
    environments = attack.environments()
    every = [*product(environments, COMMANDS)]
    for name, words in sizes.pick(
        test=[*zip(environments, cycle(COMMANDS), strict=False)], check=every, soak=every
    ):
        done = run(installed.link, words, environments[name], attack.folder)
        assert (done.returncode, done.stdout, done.stderr) == (
            usual[words].returncode, usual[words].stdout, usual[words].stderr,
        ), (name, words)  # fmt: skip
        assert not attack.mark.exists(), (name, words)


@pytest.mark.parametrize(
    "name", ["a folder of modules", "another library", "no library", "an AppImage"]
)
def test_the_planted_code_runs_without_the_flag(
    installed: Installation, attack: Attack, rootsd_dir: Path, name: str
) -> None:
    installed.leave_out("-I")
    variables = attack.environments()[name]
    done = run(installed.link, ("check", "/"), variables, attack.folder)
    assert attack.mark.exists() or b"init_fs_encoding" in done.stderr


@pytest.mark.parametrize("name", ["another program", "another launcher"])
def test_the_library_of_another_program_runs_without_unset(
    installed: Installation, attack: Attack, rootsd_dir: Path, name: str
) -> None:
    installed.file.write_text(installed.file.read_text().replace("unset PYTHON", "true PYTHON"))
    run(installed.link, ("check", "/"), attack.environments()[name], attack.folder)
    assert attack.mark.exists()


def test_packages_of_the_user_run_without_the_flags(
    installed: Installation, attack: Attack, rootsd_dir: Path
) -> None:
    """`site` loads them. The environment must see them, which ours does not."""
    installed.leave_out("-I", "-S")
    settings = installed.file.parent.parent / "pyvenv.cfg"
    settings.write_text(settings.read_text() + "include-system-site-packages = true\n")
    variables = attack.environments()["packages of the user"]
    run(installed.link, ("check", "/"), variables, attack.folder)
    assert attack.mark.exists()


def test_a_wrapped_server_gets_its_own_values(
    installed: Installation, attack: Attack, rootsd_dir: Path, tmp_path: Path
) -> None:
    seen = tmp_path / "seen.json"
    variables = attack.environments()["an AppImage"]
    server = (sys.executable, "-I", "-c", SERVER, str(seen))
    run(installed.link, ("run", "--no-confine", "--", *server), variables, tmp_path)
    own = json.loads(seen.read_text())
    assert {name: own.get(name) for name in variables} == variables
    assert LIBRARY_PATH not in own


def test_an_appimage_s_libraries_are_not_for_python(
    installed: Installation, tmp_path: Path, rootsd_dir: Path
) -> None:
    """The linker reads the value at the start of the process, which /proc shows."""
    installed.file.write_text(
        installed.file.read_text().replace(
            "leave(main())", "print(open('/proc/self/environ').read()); leave(main())"
        )
    )
    mounted = str(tmp_path / "mounted")
    for variables, is_kept in (
        ({"APPDIR": mounted, "LD_LIBRARY_PATH": f"{mounted}/usr/lib"}, False),
        ({"APPDIR": mounted, "LD_LIBRARY_PATH": "/opt/lib"}, True),
        ({"LD_LIBRARY_PATH": f"{mounted}/usr/lib"}, True),
    ):
        said = run(installed.link, ("version",), variables, tmp_path).stdout
        assert (b"\0LD_LIBRARY_PATH=" in b"\0" + said) is is_kept


def test_a_command_without_its_python_says_so(tmp_path: Path) -> None:
    alone = tmp_path / COMMAND_NAME
    shutil.copy(TOP / "bin/rootsd", alone)
    done = subprocess.run([alone, "version"], capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert "(try: pipx install rootsd)" in done.stderr
    assert "Traceback" not in done.stderr


class UserInstallation:
    """rootsd as `pip install --user` leaves it: a command without its Python, and packages."""

    def __init__(self, home: Path) -> None:
        self.file = home / ".local/bin" / COMMAND_NAME
        self.packages = home / ".local" / PACKAGES
        self.file.parent.mkdir(parents=True)
        self.packages.mkdir(parents=True)
        (self.packages / "rootsd").symlink_to(TOP / "daemon/rootsd")
        dependencies = next(entry for entry in sys.path if entry.endswith("/site-packages"))
        for each in Path(dependencies).iterdir():
            if each.name != "rootsd" and not each.name.endswith(".pth"):
                (self.packages / each.name).symlink_to(each)
        text = (TOP / "bin/rootsd").read_text()
        base = Path(sys.base_prefix, "bin")
        self.file.write_text(text.replace("/usr/local/bin/$version", f"{base}/$version"))
        self.file.chmod(0o755)


def test_packages_of_the_user_are_found_by_the_place_of_the_command(
    tmp_path: Path, attack: Attack, rootsd_dir: Path
) -> None:
    """The daemon, and the process that starts it, find them, too. No variable names others."""
    user = UserInstallation(tmp_path / "home")
    for name, variables in attack.environments().items():
        done = run(user.file, ("version",), variables, attack.folder)
        assert (done.returncode, attack.mark.exists()) == (0, False), (name, done.stderr)
    own = {"PYTHONPATH": str(attack.folder)}
    (tmp_path / "src").mkdir()
    up = run(user.file, ("up", str(tmp_path / "src")), own, attack.folder)
    try:
        assert up.returncode == 0, up.stderr
        assert run(user.file, ("ls",), own, attack.folder).returncode == 0
    finally:
        run(user.file, ("down",), own, attack.folder)
    assert not attack.mark.exists()


def test_packages_that_others_can_change_are_not_used(tmp_path: Path) -> None:
    user = UserInstallation(tmp_path / "home")
    user.packages.chmod(0o777)
    done = run(user.file, ("version",), {}, tmp_path)
    assert done.returncode == 1
    assert b"has no rootsd (try: pipx install rootsd)" in done.stderr


def test_packages_for_a_python_that_is_gone_are_named(tmp_path: Path) -> None:
    user = UserInstallation(tmp_path / "home")
    shutil.move(user.packages, tmp_path / "home/.local/lib/python3.99/site-packages")
    done = run(user.file, ("version",), {}, tmp_path)
    assert done.returncode == 1
    assert b"python3.99" in done.stderr


@pytest.mark.parametrize(
    ("raised", "is_told"), [("KeyboardInterrupt", False), ("ValueError", True)]
)
def test_a_ctrl_c_before_the_command_has_loaded_prints_nothing(
    installed: Installation, raised: str, *, is_told: bool
) -> None:
    text = installed.file.read_text()
    loading = "    from rootsd.__main__ import leave, main\n"
    assert loading in text
    installed.file.write_text(text.replace(loading, f"    raise {raised}\n"))
    done = subprocess.run(
        [installed.file, "version"], capture_output=True, text=True, check=False,
        timeout=HANG_GUARD_S,
    )  # fmt: skip
    assert done.returncode != 0
    assert bool(done.stderr) is is_told
