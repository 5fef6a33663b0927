"""Write the tables in the documents that list agents and clients: `make reference`.

The text around a table is written by hand. A test compares the documents with what `page` returns
now.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from types import ModuleType

from rootsd.agents import files_with, name_of
from rootsd.agents.forms.client import ClientTrial
from rootsd.core.agents import SAYS_SO

_DOCS = Path(__file__).parent.parent / "docs"
Row = tuple[str, ...]


def version(agent: ModuleType) -> str:
    """Return the version of an agent that was run, or nothing."""
    found = re.match(r"run, ([\d.]+\d)", agent.SOURCE)
    return found[1] if found else ""


def _agents() -> Iterator[Row]:
    for agent in sorted(files_with("PROGRAMS"), key=lambda agent: agent.LABEL.casefold()):
        variables = [*_codes(getattr(agent, "MARKERS", ()))]
        variables += [f"*{hint}*" for hint in _codes(getattr(agent, "HINTS", ()))]
        wall = "not known"
        if hasattr(agent, "state"):
            wall = "run" if agent.state().is_tried else "not run"
        programs = ", ".join(_codes(agent.PROGRAMS))
        yield agent.LABEL, programs, ", ".join(variables), agent.SOURCE, wall
    hints = ", ".join(f"*{hint}*" for hint in _codes(SAYS_SO.hints))
    yield SAYS_SO.label, "", hints, "a convention that several follow", "not known"


def _clients() -> Iterator[Row]:
    found = [(facts, agent) for agent in files_with("clients") for facts in agent.clients()]
    for facts, agent in sorted(found, key=lambda each: each[0].name):
        was_run = facts.trial is ClientTrial.TRIED
        yield facts.title, f"`{facts.name}`", version(agent) if was_run else "no"


def _lists() -> Iterator[Row]:
    for agent in files_with("access"):
        lists = agent.access()
        key = ".".join(lists.denial[0].keys)
        yield f"`{name_of(agent)}`", f"`~/{lists.place.linux}`", f"`{key}`", lists.applies


def _hooks() -> Iterator[Row]:
    for agent in files_with("hook"):
        name, dialect = name_of(agent), agent.hook()
        tools = (*dialect.readers, *dialect.writers, *dialect.patchers)
        (file,) = (each.hook.place.linux for each in agent.clients() if each.hook is not None)
        keys = ", ".join(f"`hooks.{event}`" for event in dialect.events)
        yield f"`{name}`", ", ".join(_codes(tools)), f"{keys} of `~/{file}`"


def _codes(words: Iterable[str]) -> Iterator[str]:
    return (f"`{word}`" for word in words)


_TABLES: dict[str, dict[Row, Callable[[], Iterator[Row]]]] = {
    "AGENTS.md": {("agent", "programs", "variables", "source", "behind the wall"): _agents},
    "CLIENTS.md": {("client", "name", "run"): _clients},
    "SYNC.md": {
        ("client", "file", "key", "applied"): _lists,
        ("client", "tools that it judges", "configuration"): _hooks,
    },
}
FILES = tuple(_DOCS / name for name in _TABLES)


def page(file: Path) -> str:
    """Return the text of a document with its tables as they should be."""
    text = file.read_text()
    for head, rows in _TABLES[file.name].items():
        lines = [_line(head), "|---" * len(head) + "|\n", *map(_line, rows())]
        start = text.index(lines[0])
        old = re.compile(r"(?:\|.*\n)+").match(text, start)
        assert old is not None
        text = text[:start] + "".join(lines) + text[old.end() :]
    return text


def _line(cells: Row) -> str:
    return "| " + " | ".join(cells).replace("|  |", "| |") + " |\n"


if __name__ == "__main__":
    for each in FILES:
        each.write_text(page(each))
