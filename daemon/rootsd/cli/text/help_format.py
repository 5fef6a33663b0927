"""Color the help of commands."""

from __future__ import annotations

import sys
from typing import Any

import click

from rootsd.cli.text.theme import Paint, Tone, no_paint, paint_for


class ThemedFormatter(click.HelpFormatter):
    """Writes help with colored headings, commands, and options."""

    paint: Paint = staticmethod(no_paint)

    def write_usage(self, prog: str, args: str = "", prefix: str | None = None) -> None:
        """Write the usage line."""
        super().write_usage(
            self.paint(Tone.COMMAND, prog), args, prefix or self.paint(Tone.HEADING, "Usage: ")
        )

    def write_heading(self, heading: str) -> None:
        """Write the heading of a section."""
        super().write_heading(self.paint(Tone.HEADING, heading))

    def write_dl(self, rows: Any, col_max: int = 30, col_spacing: int = 2) -> None:  # noqa: ANN401 - as click
        """Write a list of commands or options with their descriptions."""
        painted = [(self.paint(Tone.COMMAND, first), second) for first, second in rows]
        super().write_dl(painted, col_max, col_spacing)


class ThemedContext(click.Context):
    """The context of a command whose help is colored."""

    def make_formatter(self) -> click.HelpFormatter:
        """Return the formatter for the help, for standard output."""
        formatter = ThemedFormatter(width=self.terminal_width, max_width=self.max_content_width)
        if sys.stdout.isatty() and not self.obj.flags.no_color:
            formatter.paint = paint_for(sys.stdout)
        return formatter
