"""Find the one program behind the wall that a person means."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any

from rootsd.cli.answers.invocation import Invocation
from rootsd.core.errors import ErrorCode, RootsdError
from rootsd.core.labels import safe_label
from rootsd.core.paths import bytes_of, contains
from rootsd.wire.daemon import SessionsQuery
from rootsd.wire.follow import SessionRootsQuery


class NoProgram(RootsdError):
    """It is not clear which program behind the wall is meant."""

    code = ErrorCode.NOTHING_MATCHED


def meant_program(invocation: Invocation, to: str | None, command: str) -> Mapping[str, Any]:
    """Return the program that `--to` names, or the only one that sees the working directory.

    `command` is what to type with `--to`. Raises NoProgram.
    """
    running = invocation.call(SessionsQuery())["confined"]
    if to is not None:
        found = [each for each in running if to in (each["id"], each["name"], str(each["pid"]))]
        what = f"is called {safe_label(to)}"
    else:
        found = [each for each in running if _sees(invocation, each["id"], invocation.cwd)]
        what = "sees this folder"
    if not found:
        raise NoProgram(f"no program behind the wall {what}", "rootsd sessions")
    if len(found) > 1:
        names = ", ".join(f"{each['name']} (pid {each['pid']})" for each in found)
        remedy = f"rootsd {command} --to {found[0]['pid']}"
        raise NoProgram(f"more than one program {what}: {names}", remedy)
    return dict(found[0])


def _sees(invocation: Invocation, id_: str, folder: str) -> bool:
    roots = invocation.call(SessionRootsQuery(id_))["items"]
    here = os.path.realpath(os.fsencode(folder))
    return any(contains(bytes_of(root["path"]), here) for root in roots)
