"""Kimi CLI. Only its name is known."""

from __future__ import annotations

LABEL = "Kimi CLI"
PROGRAMS = ("kimi",)
SOURCE = "nothing is known"
