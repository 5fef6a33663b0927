"""The one error of an edit that cannot be made."""

from __future__ import annotations


class NotEditable(ValueError):
    """The text cannot be edited. The message is a clause that says why."""
