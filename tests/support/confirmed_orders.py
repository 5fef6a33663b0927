"""Give an order about several projects, as a person who reads the list and confirms it."""

from __future__ import annotations

from typing import Any

from msgspec.structs import replace

from rootsd.cli.answers.confirm import ConfirmedOrder, with_tokens
from rootsd.cli.answers.control_client import call
from rootsd.wire.decisions import ApplyMode


def call_confirmed(order: ConfirmedOrder) -> dict[str, Any]:
    """Send the order for exactly the projects that its dry run lists. Raises RootsdError."""
    return call(with_tokens(order, call(replace(order, effect=ApplyMode.DRY_RUN))))
