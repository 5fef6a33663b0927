"""Devin CLI. Only its name is known."""

from __future__ import annotations

LABEL = "Devin CLI"
PROGRAMS = ("devin",)
SOURCE = "nothing is known"
