"""Junie CLI. Only its name is known."""

from __future__ import annotations

LABEL = "Junie CLI"
PROGRAMS = ("junie",)
SOURCE = "nothing is known"
