"""Random sessions: no call reaches a server that is not where its client works."""

from __future__ import annotations

import random
from collections import Counter

from rootsd.proxy.run.readiness import ServerProfile
from rootsd.proxy.run.root_policies import ClientRootsPolicy
from support.bridges import reply
from support.run_session_harness import API, DOCS, WEB, FollowingHarness, SessionHarness, call
from support.sizes import Sizes

PLACES = ("/src/api", "/src/web", "/src/docs/lib", "/src/new")
HAS_ROOTS: dict[str, object] = {"roots": {}}


class Agent:
    """A client whose agent moves, calls, and sometimes does not answer. It moves between calls."""

    def __init__(self, kind: type[SessionHarness], seed: int) -> None:
        self.chance = random.Random(seed)  # noqa: S311 - a test
        self.session = kind(
            API, WEB, DOCS, words=("server", "{root}"), here=b"/src/api",
            use=ClientRootsPolicy.REPORT, profile=ServerProfile.SILENT,
        )  # fmt: skip
        self.session.shake_hands(HAS_ROOTS)
        self.place = PLACES[0]
        self.outcomes: Counter[str] = Counter()
        self._ids = 0

    def step(self) -> None:
        """Move or stay, and make some calls at once."""
        if self.chance.random() < 0.5:
            self.place = self.chance.choice(PLACES)
        is_silent = self.chance.random() < 0.1
        waiting = set[object]()
        for _ in range(self.chance.randrange(1, 4)):
            self._ids += 1
            waiting.add(self._ids)
            self.session.client(call(self._ids))
        while waiting:
            waiting -= self._turn(is_silent)

    def _turn(self, is_silent: bool) -> set[object]:
        """Let everybody act once. Return the calls that are answered."""
        answered = set[object]()
        for message in self.session.to_client():
            if message.get("method") == "roots/list" and not is_silent:
                roots = {"roots": [{"uri": f"file://{self.place}"}]}
                self.session.client(reply(message["id"], roots))
            elif "error" in message:
                self.outcomes["refused"] += 1
                answered.add(message["id"])
        if self.session.out.restart_requested:
            self.session.another()
        for message in self.session.to_server():
            if message.get("method") == "tools/call":
                is_right = self.place.startswith(self.session.launch.words[-1])
                self.outcomes["right" if is_right else "wrong"] += 1
                answered.add(message["id"])
            if "id" in message:
                self.session.server(reply(message["id"], {"capabilities": {}}))
        if not answered:
            self.session.wait(0.5)
        return answered


def outcomes(kind: type[SessionHarness], sessions: int) -> Counter[str]:
    """Return how the calls of so many sessions ended."""
    total: Counter[str] = Counter()
    for seed in range(sessions):
        agent = Agent(kind, seed)
        for _ in range(20):
            agent.step()
        total += agent.outcomes
    return total


def test_no_call_reaches_a_server_elsewhere(sizes: Sizes) -> None:
    ended = outcomes(FollowingHarness, sizes.pick(test=30, check=200, soak=600))
    assert ended["wrong"] == 0
    assert ended["right"] > ended["refused"] > 0


def test_control_servers_that_stay_are_elsewhere() -> None:
    assert outcomes(SessionHarness, 5)["wrong"] > 0
