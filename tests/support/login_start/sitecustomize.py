"""Let the guard take the process that forks the tests' programs for the start of a login.

A person's programs start below such a process. So nothing above it counts: not pytest, and not
what started that. Python loads this file where the folder is in PYTHONPATH.
"""

from pathlib import Path

from rootsd.core import guard, recognition
from rootsd.core.known_programs import ProgramUse

_SUPPORT = Path(__file__).parent.parent
recognition._SYSTEM_PLACES = (*recognition._SYSTEM_PLACES, f"{_SUPPORT}/")
# It also stands for a terminal program or a desktop, so it is no service as sshd is.
recognition._SCRIPTS["preloaded"] = ProgramUse.DESKTOP
guard._SESSION_STARTS = guard._SESSION_STARTS | {ProgramUse.DESKTOP}
