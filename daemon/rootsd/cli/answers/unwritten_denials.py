"""Say which denials do not get into the access lists of clients that `rootsd sync` follows."""

from __future__ import annotations

from collections.abc import Sequence

from rootsd.cli.answers.invocation import Invocation
from rootsd.sync.record import SyncRecord


def not_written(invocation: Invocation, paths: Sequence[str]) -> list[str]:
    """Return a sentence for each denial that the lists of a synced client do not get.

    They cannot express it, or the client's file could not be written last time.
    """
    record = SyncRecord(invocation.places.state)
    clients = record.clients()
    if not clients:
        return []
    from rootsd.sync.targets import TARGETS  # 30 ms, and most people sync no client

    outcomes = record.outcomes()
    found: list[str] = []
    for file, chosen in clients.items():
        if (target := TARGETS.get(chosen.client)) is None:
            continue
        if file in outcomes and (problem := outcomes[file].problem):
            found.append(f"{target.name}: its list could not be written last time: {problem}")
        found += [
            f"{target.name}: {path} is not denied there: {why}"
            for path in paths
            if isinstance(why := target.denial(path), str)
        ]
    return list(dict.fromkeys(found))
