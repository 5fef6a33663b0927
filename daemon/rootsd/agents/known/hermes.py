"""Hermes Agent. Only its name is known."""

from __future__ import annotations

LABEL = "Hermes Agent"
PROGRAMS = ("hermes",)
SOURCE = "nothing is known"
