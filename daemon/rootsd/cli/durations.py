"""How long something lasts, as people type it: `8h`, `90m`, `1h30m`, `2d`."""

from __future__ import annotations

import re

import click

from rootsd.wire.deciding import LONGEST_S

_UNITS = {"s": 1, "m": 60, "h": 3_600, "d": 86_400, "w": 7 * 86_400}
_WHOLE = re.compile(r"(?:[0-9]{1,9}[smhdw]){1,5}", re.ASCII)
_PART = re.compile(r"([0-9]+)([smhdw])", re.ASCII)


class Duration(click.ParamType[int]):
    """Turns what was typed into seconds."""

    name = "duration"

    def convert(
        self, value: str | int, param: click.Parameter | None, ctx: click.Context | None
    ) -> int:
        """The seconds; a usage error where it is no duration, or none that makes sense."""
        if isinstance(value, int):
            return value
        typed = value.strip().lower()
        if not _WHOLE.fullmatch(typed):
            self.fail(f"{value!r} is no duration such as 8h, 90m, 1h30m or 2d", param, ctx)
        seconds = sum(int(count) * _UNITS[unit] for count, unit in _PART.findall(typed))
        if not 0 < seconds <= LONGEST_S:
            self.fail(f"{value!r} is not between a second and ten years", param, ctx)
        return seconds
