"""Start this installation of rootsd again, and name the files that it consists of.

`python -I -m rootsd` finds every installation but one: `pip install --user` puts the packages into
the home folder, where an isolated Python does not look. There, the command `bin/rootsd` found them
by its own place, so the programs that it starts are told. The flag -S keeps Python from putting
the packages of the whole system in front of them, which may be older versions of the same.
"""

from __future__ import annotations

import os
import site
import sys
from functools import cache

import rootsd

COMMAND_NAME = "rootsd"
_PATTERN = f"/lib/python{sys.version_info.major}.{sys.version_info.minor}/site-packages"


def own_command() -> tuple[str, ...]:
    """Return the words that run this installation with an isolated Python.

    The guard knows both forms.
    """
    packages = user_packages()
    if packages is None:
        return (sys.executable, "-I", "-m", COMMAND_NAME)
    return (sys.executable, "-I", "-S", f"{packages.removesuffix(_PATTERN)}/bin/{COMMAND_NAME}")


def module_command(module: str) -> tuple[str, ...]:
    """Return the words that run a module of rootsd that takes no arguments."""
    packages = user_packages()
    if packages is None:
        return (sys.executable, "-I", "-m", module)
    start = (
        f"import site, sys; sys.path.append({packages!r}); site.main(); import runpy;"
        f" runpy.run_module({module!r}, run_name='__main__', alter_sys=True)"
    )
    return (sys.executable, "-I", "-S", "-c", start)


@cache
def user_packages() -> str | None:
    """Return the folder of the packages that `pip install --user` made, or None without it."""
    folder = os.path.dirname(os.path.dirname(os.path.abspath(rootsd.__file__)))
    around = folder.removesuffix(_PATTERN)
    if around == folder or os.path.exists(f"{around}/pyvenv.cfg"):
        return None
    known = (f"{sys.prefix}{_PATTERN}", *site.getsitepackages())
    return None if folder in known else folder
