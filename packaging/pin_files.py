"""Write pinned_files.json: each file that a package of rootsd needs, with its address and hash.

    .venv/bin/python packaging/pin_files.py      # after `make lock`; needs the network

The versions and hashes come from requirements/lock.txt. The lock does not say which hash belongs
to which file, so this program downloads the files with pip and accepts only those that the lock
has. PyPI serves each file below the BLAKE2 hash of its content, which gives the address.

The Nix flake reads the wheels for each of its systems. The Homebrew formula takes the wheels that
run everywhere, and compiles the other packages from source.
"""

from __future__ import annotations

import hashlib
import importlib.metadata
import json
import re
import subprocess
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path
from tempfile import TemporaryDirectory

from packaging.requirements import Requirement

TOP = Path(__file__).parent.parent
LOCK = TOP / "requirements" / "lock.txt"
PINNED = Path(__file__).parent / "pinned_files.json"
PYTHON = "3.13"
# What builds the wheel of rootsd, see [build-system] in pyproject.toml.
BUILD = ("click", "hatchling", "msgspec", "ruamel-yaml")
# Homebrew compiles these once for all formulae. The rest of the formula's packages are its own.
HOMEBREW = {
    "cffi": ("cffi", "pycparser"),
    "cryptography": ("cryptography",),
    "pydantic": ("annotated-types", "pydantic", "pydantic-core", "typing-inspection"),
    "rpds-py": ("rpds-py",),
}
# For each system of Nix, the names under which wheels support it, the oldest last. Not
# x86_64-darwin: cryptography has no wheels for it any more.
SYSTEMS = {
    "x86_64-linux": ("linux", ("manylinux_2_28_x86_64", "manylinux_2_17_x86_64")),
    "aarch64-linux": ("linux", ("manylinux_2_28_aarch64", "manylinux_2_17_aarch64")),
    "aarch64-darwin": ("darwin", ("macosx_14_0_arm64",)),
}


def locked(text: str) -> dict[str, tuple[str, frozenset[str]]]:
    """Return the version and the hashes of each package in the lock."""
    found = {}
    for entry in re.split(r"\n(?=[a-z])", text):
        if head := re.match(r"([a-z0-9.-]+)==(\S+)", entry):
            hashes = re.findall(r"--hash=sha256:([0-9a-f]{64})", entry)
            found[head[1]] = (head[2], frozenset(hashes))
    return found


def needed(roots: Iterable[str], platform: str) -> list[str]:
    """Return the names of all packages that these need at run time on a platform, with theirs."""
    environment = {"sys_platform": platform, "python_version": PYTHON, "extra": "",
                   "platform_system": {"linux": "Linux", "darwin": "Darwin"}[platform],
                   "python_full_version": f"{PYTHON}.0", "platform_python_implementation":
                   "CPython", "implementation_name": "cpython", "os_name": "posix"}  # fmt: skip
    seen: set[tuple[str, str]] = set()
    waiting = [(name, "") for name in roots]
    while waiting:
        name, extra = key = waiting.pop()
        if key in seen:
            continue
        seen.add(key)
        for line in importlib.metadata.requires(name) or ():
            requirement = Requirement(line)
            if requirement.marker and not requirement.marker.evaluate(
                {**environment, "extra": extra}
            ):
                continue
            waiting += [(_normal(requirement.name), each) for each in ("", *requirement.extras)]
    return sorted({name for name, _ in seen} - {"rootsd"})


def main() -> int:
    """Download, compare with the lock, and write the file."""
    lock = locked(LOCK.read_text())
    run_time = {system: needed(["rootsd"], system[0]) for system in SYSTEMS.values()}
    pinned: dict[str, object] = {"python": PYTHON, "homebrew": list(HOMEBREW)}
    wheels: dict[str, dict[str, list[dict[str, str]]]] = {}
    for system, (platform, tags) in SYSTEMS.items():
        options = ["--only-binary", ":all:", "--python-version", PYTHON, "--implementation", "cp"]
        for tag in tags:
            options += ["--platform", tag]
        run = run_time[SYSTEMS[system]]
        wheels[system] = {
            "run": [*_files(lock, run, options)],
            "build": [*_files(lock, set(needed(BUILD, platform)) | set(BUILD), options)],
        }
    pinned["wheels"] = wheels
    linux, darwin = (
        [*_for_homebrew(lock, wheels[system]["run"])]
        for system in ("x86_64-linux", "aarch64-darwin")
    )
    pinned["formula"] = {
        "all": [file for file in linux if file in darwin],
        "linux": [file for file in linux if file not in darwin],
        "darwin": [file for file in darwin if file not in linux],
    }
    PINNED.write_text(json.dumps(pinned, indent=1, sort_keys=True) + "\n")
    return 0


def _for_homebrew(
    lock: dict[str, tuple[str, frozenset[str]]], wheels: Iterable[dict[str, str]]
) -> Iterator[dict[str, str]]:
    """Yield the wheels that run everywhere, and the sources of the other packages."""
    compiled_by_homebrew = {name for names in HOMEBREW.values() for name in names}
    for wheel in wheels:
        if wheel["name"] in compiled_by_homebrew:
            continue
        if wheel["url"].endswith("-none-any.whl"):
            yield wheel
        else:
            yield from _files(lock, [wheel["name"]], None)


def _normal(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()


def _files(
    lock: dict[str, tuple[str, frozenset[str]]], names: Iterable[str], wheel: list[str] | None
) -> Iterator[dict[str, str]]:
    """Yield the file of each package: the wheel that these options choose, or else the source."""
    for name in sorted(names):
        version, hashes = lock[name]
        # Not for all packages: pip would then compile the build tools, too.
        options = ["--no-binary", name] if wheel is None else wheel
        with TemporaryDirectory() as folder:
            subprocess.run(
                [sys.executable, "-m", "pip", "download", "-qq", "--no-deps",
                 "--disable-pip-version-check", "--dest", folder, *options, f"{name}=={version}"],
                check=True,
            )  # fmt: skip
            (file,) = Path(folder).iterdir()
            content = file.read_bytes()
            sha256 = hashlib.sha256(content).hexdigest()
            if sha256 not in hashes:
                sys.exit(f"{file.name} is not a file that requirements/lock.txt pins")
            place = hashlib.blake2b(content, digest_size=32).hexdigest()
            address = f"{place[:2]}/{place[2:4]}/{place[4:]}/{file.name}"
            yield {
                "name": name,
                "sha256": sha256,
                "url": f"https://files.pythonhosted.org/packages/{address}",
            }


if __name__ == "__main__":
    sys.exit(main())
