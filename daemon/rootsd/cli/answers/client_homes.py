"""Find the homes of a client in which `rootsd connect` or `rootsd sync` wrote something.

A client has another home for each value of a variable such as `CLAUDE_CONFIG_DIR`. The shell names
one of them. The records know the others.
"""

from __future__ import annotations

from rootsd.connect.base import ClientEnvironment, ClientHome, McpClient
from rootsd.connect.record import ConnectRecord
from rootsd.connect.registry import all_clients
from rootsd.sync.record import SyncRecord
from rootsd.sync.targets import TARGETS


class ClientHomes:
    """The homes of all clients, in the surroundings of this shell.

    Reads the records once. Raises SyncRecordDamaged, ConnectRecordDamaged, and NotPrivate.
    """

    def __init__(self, state: bytes, environment: ClientEnvironment) -> None:
        self._environment = environment
        self._connected = ConnectRecord(state)
        self._synced = SyncRecord(state).clients()

    def clients(self) -> list[str]:
        """Return the names of the clients that were changed, sorted."""
        names = {*self._connected.names(), *(each.client for each in self._synced.values())}
        return sorted(names & all_clients().keys())

    def connected(self, client: McpClient) -> list[ClientEnvironment]:
        """Return the surroundings of each home that `connect` changed, in a fixed order."""
        homes = self._connected.homes(client.facts.name)
        return [self._environment.in_home(homes[place]) for place in sorted(homes)]

    def changed(self, client: McpClient) -> list[ClientEnvironment]:
        """Return the surroundings of each home that was changed, in a fixed order."""
        found = self.connected(client)
        target = TARGETS.get(client.facts.name)
        here = self._environment.home_of(client.facts)
        for each in self._synced.values():
            if target is not None and each.client == target.name:
                variables = dict.fromkeys(here.variables, "") | target.home_variables(each.file)
                found.append(self._environment.in_home(ClientHome(here.user_home, variables)))
        return _distinct(client, found)

    def all(self, client: McpClient) -> list[ClientEnvironment]:
        """Return the home that the shell names, and then the others that were changed."""
        return _distinct(client, [self._environment, *self.changed(client)])

    def synced_file(self, client: McpClient, home: ClientEnvironment) -> str | None:
        """Return the settings file with the access lists of a home, or None if none is synced."""
        target = TARGETS.get(client.facts.name)
        if target is None:
            return None
        file = target.settings_file(str(home.home), home.variables)
        return file if file in self._synced else None


def _distinct(client: McpClient, homes: list[ClientEnvironment]) -> list[ClientEnvironment]:
    """Return the homes with different settings, and the first of those with the same."""
    found: dict[str, ClientEnvironment] = {}
    for home in homes:
        found.setdefault(str(client.settings(home)), home)
    return list(found.values())
