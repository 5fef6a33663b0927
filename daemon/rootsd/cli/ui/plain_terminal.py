"""Leave the screen for a while, so that another program or a question has the terminal."""

from __future__ import annotations

import os
import shlex
import signal
import subprocess
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType
from typing import Any

from textual.app import SuspendNotSupported

from rootsd.cli.ui.board import ProjectRow
from rootsd.cli.ui.ordered_input import OrderedInputApp
from rootsd.core.errors import RootsdError


@contextmanager
def plain_terminal(
    app: OrderedInputApp[Any],
    on_interrupt: Callable[[int, FrameType | None], Any] | signal.Handlers,
) -> Iterator[None]:
    """Leave the screen in the block, in which ^C has this effect. Raises RootsdError.

    What was typed ahead is dropped, because it may have been meant for that program.
    """
    before = signal.getsignal(signal.SIGINT)
    failure: RootsdError | KeyboardInterrupt | None = None
    try:
        with app.suspend():
            signal.signal(signal.SIGINT, on_interrupt)
            try:
                yield
            except (RootsdError, KeyboardInterrupt) as error:
                failure = error  # raised below: an error within `suspend` leaves the screen off
            finally:
                signal.signal(signal.SIGINT, before)
                app.drop_typed_ahead()
    except SuspendNotSupported as error:
        raise RootsdError("this needs a terminal of its own", "rootsd review") from error
    if failure is not None:
        raise failure


def open_in_editor(app: OrderedInputApp[Any], row: ProjectRow) -> None:
    """Open the folder of a row in the person's editor, and wait for it. Raises RootsdError."""
    editor = os.environ.get("VISUAL") or os.environ.get("EDITOR")
    if not editor:
        raise RootsdError("neither VISUAL nor EDITOR is set", "export EDITOR=vi")
    if not row.path.startswith("/"):
        raise RootsdError("this root is no folder")
    with plain_terminal(app, signal.SIG_IGN):
        _run_editor(editor, row.path)


def _run_editor(editor: str, folder: str) -> None:
    """Run the command line `editor` on a folder, and wait for it. Raises RootsdError."""
    try:
        # The person chose this program, and the folder is one argument.
        done = subprocess.run([*shlex.split(editor), folder], check=False)  # noqa: S603
    except (OSError, ValueError) as error:
        raise RootsdError(f"the editor cannot be started: {error}") from error
    if done.returncode:
        raise RootsdError(f"the editor ended with status {done.returncode}")
