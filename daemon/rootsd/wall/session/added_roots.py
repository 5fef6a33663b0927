"""Tell a program about the roots that `--add` and `--tag` add to its workspace."""

from __future__ import annotations

import os
import shlex
from collections.abc import Iterable, Iterator
from contextlib import suppress

from rootsd.core.labels import safe_label
from rootsd.core.mount_plan import ConfinedRoot
from rootsd.core.paths import contains, text_of
from rootsd.wall.session.options import ConfineOptions


def with_added(
    options: ConfineOptions, roots: Iterable[ConfinedRoot]
) -> tuple[ConfineOptions, list[str]]:
    """Return the options with a command that names the other roots, and sentences for people.

    An agent gets them by its own flag. Other programs get the command as it was typed.
    """
    if not (options.words and (options.add or options.tag)):
        return options, []
    # Only sessions with these options need the agents.
    from rootsd.agents.folder_flags import with_folders  # noqa: PLC0415

    roots = list(roots)
    sentences = list(_missing(options, {root.name for root in roots}))
    others = _elsewhere(root.path for root in roots)
    words = with_folders(options.words, others)
    if words is None and others:
        shown = " ".join(map(shlex.quote, others))
        sentences.append(
            f"rootsd knows no option of {safe_label(options.label)} for more folders, so name them"
            f" to it: {shown}"
        )
    return options._replace(words=words or options.words), sentences


def _missing(options: ConfineOptions, names: set[str]) -> Iterator[str]:
    for name in options.added:
        if name not in names:
            shown = shlex.quote(safe_label(name, limit=None))
            yield f"{shown} is no root now, so it is closed; try: rootsd approve {shown}"


def _elsewhere(paths: Iterable[bytes]) -> list[str]:
    """Return the paths that neither hold the working directory nor lie in it."""
    here = b""
    with suppress(FileNotFoundError):
        here = os.getcwdb()
    return [text_of(p) for p in paths if not (here and (contains(p, here) or contains(here, p)))]
