"""Give an order about several projects, as a person who reads the list and confirms it."""

from __future__ import annotations

from typing import Any

from rootsd.cli.answers.control_client import call
from rootsd.cli.answers.decision_flow import Facts, Order, as_plan


def call_confirmed(order: Order) -> dict[str, Any]:
    """Send the order for exactly the projects that its dry run lists. Raises RootsdError."""
    return call(Facts(order, call(as_plan(order))).confirmed(order))
