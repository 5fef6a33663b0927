"""Kilo. It was made from opencode: its files in use, version 7.7.9."""

from __future__ import annotations

from rootsd.agents import forms
from rootsd.agents.known import opencode

LABEL = "Kilo"
PROGRAMS = ("kilo",)
PACKAGES = ("@kilocode/cli/",)
MARKERS = ("KILO=1", "KILO_PID")  # it sets OPENCODE=1, too
SOURCE = "run, 7.7.9"
ACP = ("kilo", "acp")
RUNS = ("kilo.json", "kilo.jsonc")
OBEYS = (".kilo", ".kilocode", *RUNS)

_NAMES = (*RUNS, "opencode.json", "opencode.jsonc")
# In these folders, .json wins over .jsonc of the same name.
_NAMES_IN_FOLDERS = ("kilo.jsonc", "kilo.json", "opencode.jsonc", "opencode.json")
_FOLDERS = (".kilocode", ".kilo")


def state() -> forms.state.AgentState:
    """Return what it needs behind the wall."""
    return opencode.state("kilo", _FOLDERS)._replace(is_tried=False)


def access() -> forms.access.ListFormat:
    """Return the format of its access lists."""
    return forms.like_opencode.lists_of_fork(_fork())


def clients() -> tuple[forms.client.ClientFacts, ...]:
    """Return its configuration files."""
    return (forms.like_opencode.client_of_fork(_fork(), *RUNS),)


SETTINGS = (*_NAMES, *(f"{folder}/{name}" for folder in _FOLDERS for name in _NAMES_IN_FOLDERS))


def reach(
    home: forms.reach.AgentHome, inside: forms.reach.AgentFiles = ()
) -> forms.reach.AgentReach:
    """Return what its settings allow."""
    return forms.like_opencode.reach_of_fork(home, inside, _fork())


def _fork() -> forms.like_opencode.OpencodeFork:
    return forms.like_opencode.OpencodeFork(
        label=LABEL,
        name="kilo",
        names=_NAMES,
        folders=_FOLDERS,
        names_in_folders=_NAMES_IN_FOLDERS,
        trial=forms.client.ClientTrial.NOT_TRIED,
    )
