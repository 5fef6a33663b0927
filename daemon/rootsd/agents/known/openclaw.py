"""OpenClaw. Only its name is known."""

from __future__ import annotations

LABEL = "OpenClaw"
PROGRAMS = ("openclaw",)
SOURCE = "nothing is known"
