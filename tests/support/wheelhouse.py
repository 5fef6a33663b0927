"""A folder of wheels that needs no network: the packages of our environment, packed again.

A package that pip or uv installed has a list of its files, and those of them that came out of the
wheel make up a wheel again. So an installation from this folder has the versions of the lock.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from importlib.metadata import Distribution, PackageNotFoundError, distribution
from pathlib import Path, PurePosixPath
from zipfile import ZipFile

RUN_TIME = Path(__file__).parent.parent.parent / "requirements" / "run.txt"
# What an installer writes beside the content of a wheel.
_INSTALLED = frozenset({"INSTALLER", "RECORD", "REQUESTED", "direct_url.json", "uv_cache.json"})


def run_time_packages() -> list[str]:
    """Return the names of the packages that `make up` installs."""
    return re.findall(r"^([a-z0-9.-]+)==", RUN_TIME.read_text(), re.MULTILINE)


def write_wheels(folder: Path, names: Iterable[str]) -> None:
    """Write a wheel of each of the packages that is installed here."""
    for name in names:
        try:
            found = distribution(name)
        except PackageNotFoundError:
            continue  # another system needs it
        _write_wheel(found, folder)


def _write_wheel(package: Distribution, folder: Path) -> None:
    files = {str(file): file for file in package.files or () if _is_of_wheel(file)}
    information = next(name for name in files if name.endswith(".dist-info/METADATA"))
    top = information.partition("/")[0]
    tags = re.findall(r"^Tag: (.+)$", package.read_text("WHEEL") or "", re.MULTILINE)
    parts = zip(*(tag.strip().split("-") for tag in tags), strict=True)
    tag = "-".join(".".join(sorted(set(part))) for part in parts)
    with ZipFile(folder / f"{top.removesuffix('.dist-info')}-{tag}.whl", "w") as wheel:
        for name, file in files.items():
            wheel.write(str(file.locate()), name)
        record = f"{top}/RECORD"
        wheel.writestr(record, "".join(f"{name},,\n" for name in (*files, record)))


def _is_of_wheel(file: PurePosixPath) -> bool:
    """Return whether a file lies in the folder of packages and was in the wheel."""
    return not ({"..", "__pycache__"} & set(file.parts) or file.name in _INSTALLED)
