"""With sockets that a supervisor holds, no client is refused while the daemon starts or
restarts.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from support.bridges import bridge, request
from support.person import HANG_GUARD, Person
from support.socket_activation import hand_over_to_daemon, listening


@pytest.fixture
def person(tmp_path: Path) -> Iterator[Person]:
    person = Person(tmp_path)
    person.clone("api")
    person.rootsd("up", str(person.parent))
    person.rootsd("approve", "api")
    person.rootsd("down")
    yield person
    person.run("down")


def test_clients_wait_for_a_daemon_that_gets_the_sockets_and_for_the_next_one(
    person: Person, rootsd_dir: Path
) -> None:
    paths = [rootsd_dir / "run" / "pub" / "mcp.sock", rootsd_dir / "run" / "ctl" / "control.sock"]
    with ExitStack() as stack:
        sockets = [stack.enter_context(listening(path)) for path in paths]
        client = stack.enter_context(bridge(HOME=str(person.home)))
        for id_ in range(2):
            client.say(request(id_, "roots/list"))  # no process is there to accept it
            daemon = hand_over_to_daemon("mcp:control", sockets)
            stack.callback(daemon.communicate, HANG_GUARD)
            stack.callback(daemon.kill)
            answer = client.hear()
            while "id" not in answer:
                answer = client.hear()
            assert answer["id"] == id_
            assert [root["name"] for root in answer["result"]["roots"]] == ["api"]
            assert person.names("ls", "--published") == ["api"]
            if id_ == 0:
                daemon.kill()
                daemon.wait(HANG_GUARD)
        person.rootsd("down")
        assert daemon.wait(HANG_GUARD) == 0
        assert all(path.is_socket() for path in paths)
        assert client.leave() == 0
