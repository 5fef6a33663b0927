"""rootsd installed as pipx and uv do it: in its own environment, with a link on the PATH."""

from __future__ import annotations

import ensurepip
import importlib.util
import shutil
import subprocess
import sys
from pathlib import Path

from support.user_manager import ENVIRONMENT, HOME, LINK, UserManager

TOP = Path(__file__).parent.parent.parent


def built_wheel(folder: Path) -> Path:
    """Build a wheel of this checkout below `folder`."""
    made = folder / "dist"
    subprocess.run(
        [sys.executable, "-m", "hatchling", "build", "--target", "wheel", "--directory", made],
        cwd=TOP, check=True, capture_output=True,
    )  # fmt: skip
    (wheel,) = made.glob("rootsd-*.whl")
    return wheel


def install(user: UserManager, wheel: Path) -> None:
    """Install `wheel`. Its dependencies come from our environment."""
    packages = next(entry for entry in sys.path if entry.endswith("/site-packages"))
    python = str(ENVIRONMENT / "bin/python")
    user.succeed(interpreter(), "-m", "venv", "--without-pip", str(ENVIRONMENT))
    words = ["--no-deps", "--no-index", "--quiet", "--disable-pip-version-check"]
    copy = user.path(Path("/tmp")) / wheel.name
    shutil.copy(wheel, copy)
    user.succeed(
        *_pip(packages), "--python", python, "install", "--force-reinstall", *words,
        f"/tmp/{wheel.name}",
    )  # fmt: skip
    copy.unlink()
    purelib = user.succeed(
        python, "-c", "import sysconfig; print(sysconfig.get_path('purelib'))"
    ).strip()
    user.run("tee", f"{purelib}/dependencies.pth", said=f"{packages}\n")
    user.succeed("mkdir", "-p", str(LINK.parent))
    user.succeed("ln", "-sf", str(ENVIRONMENT / "bin/rootsd"), str(LINK))


def keep(user: UserManager, folder: Path) -> None:
    """Copy the home with owners and links."""
    subprocess.run(["cp", "-a", user.path(HOME), folder], check=True)


def put_back(user: UserManager, folder: Path) -> None:
    """Copy the content that `keep` saved into the home of another user."""
    subprocess.run(["cp", "-a", f"{folder}/.", user.path(HOME)], check=True)


def set_version(home: Path, version: str) -> None:
    """Give another version to the installation in a home that `keep` saved."""
    inside = (ENVIRONMENT / "lib").relative_to(HOME)
    (init,) = (home / inside).glob("python*/site-packages/rootsd/__init__.py")
    lines = init.read_text().splitlines(keepends=True)
    init.write_text("".join(
        f'__version__ = "{version}"\n' if line.startswith("__version__") else line
        for line in lines
    ))  # fmt: skip


def interpreter() -> str:
    """Return the interpreter behind our environment."""
    return f"{sys.base_prefix}/bin/python{sys.version_info[0]}.{sys.version_info[1]}"


def _pip(packages: str) -> list[str]:
    """Return the pip of our environment, or else the one that comes with Python."""
    if importlib.util.find_spec("pip") is not None:
        run = "from runpy import run_module; run_module('pip', run_name='__main__')"
        return [interpreter(), "-c", f"import sys; sys.path.insert(0, {packages!r}); {run}"]
    (bundled,) = Path(ensurepip.__file__).parent.glob("_bundled/pip-*.whl")
    return [interpreter(), f"{bundled}/pip"]
