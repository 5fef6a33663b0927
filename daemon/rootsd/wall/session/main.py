"""Run `rootsd confine`: begin the wall, then load the rest and start the program.

This process is the *front*. It forks the warden, then the program's waiter. It holds neither roots
nor privileges; if it dies, the kernel ends the program.
"""

from __future__ import annotations

import gc
from typing import TYPE_CHECKING

from rootsd.config.policy_file import POLICY_FILE, wall_requirement
from rootsd.core.errors import RootsdError, exit_of
from rootsd.core.wall import WallUse
from rootsd.wall.session.begin import begin
from rootsd.wall.session.messages import print_line
from rootsd.wall.session.options import parse_arguments, scope_of
from rootsd.wall.session.required_wall import refuse_opening

if TYPE_CHECKING:
    from rootsd.wall.session.start_folder import AskAboutStart


def main(argv: list[str], ask: AskAboutStart | None = None) -> int:
    """Run the program with the arguments after `confine`. Return its exit status.

    `ask` asks about a pending project in which the program is about to start.
    """
    try:
        options = parse_arguments(argv)
        if (requirement := wall_requirement(POLICY_FILE)) is not None:
            refuse_opening(options, requirement)
        gc.disable()  # see `rootsd.__main__`
        begun = begin(options, scope_of(options), WallUse.PROGRAM)
        try:
            from rootsd.wall.session.front import confine  # noqa: PLC0415 - others work meanwhile

            gc.freeze()
            gc.enable()
            return confine(begun, ask)
        finally:
            begun.give_up()
    except RootsdError as error:
        print_line(f"{error.message}; try: {error.remedy}")
        return exit_of(error.code)
