"""Antigravity CLI. Only its name is known."""

from __future__ import annotations

LABEL = "Antigravity CLI"
PROGRAMS = ("agy",)
SOURCE = "nothing is known"
