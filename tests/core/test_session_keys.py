"""The keys of sessions, which approvals for one session bind to."""

from __future__ import annotations

from rootsd.core.model import SessionKey
from rootsd.core.processes import Process
from rootsd.core.session_keys import membership_of, process_of

PUMP = Process(30, 300, 20, b"rootsd", (b"/usr/bin/rootsd", b"bridge"))
WRAPPER = Process(20, 200, 10, b"sh", (b"sh", b"-c", b"rootsd bridge"))
AGENT = Process(10, 100, 5, b"claude", (b"claude",))
TERMINAL = Process(5, 50, 1, b"kitty", (b"kitty",))


def test_the_session_of_a_bridge_is_the_program_that_started_it() -> None:
    member = membership_of((PUMP, WRAPPER, AGENT, TERMINAL), "boot", "c1")
    assert member.key == SessionKey("process:boot:10:100", "claude, pid 10")
    assert "process:boot:30:300" in member.ids
    assert process_of(member.key, "boot") == (10, 100)


def test_a_server_belongs_to_the_session_of_the_agent_that_started_it() -> None:
    server = Process(40, 400, 10, b"python", (b"python", b"server.py"))
    member = membership_of((server, AGENT), "boot", "c1")
    assert member.key.id == "process:boot:40:400"
    assert "process:boot:10:100" in member.ids


def test_a_connection_with_an_unknown_process_is_its_own_session() -> None:
    for lineage, boot in (((), "boot"), ((PUMP, AGENT), "")):
        member = membership_of(lineage, boot, "c1")
        assert member.key.id == "connection:c1"
        assert member.ids == {"connection:c1"}
        assert process_of(member.key, boot) is None


def test_a_key_from_another_boot_names_no_process() -> None:
    key = SessionKey("process:boot:10:100", "claude")
    assert process_of(key, "later") is None
    for text in ("process:boot:x:1", "process:boot:1", "", "connection:boot:1:2"):
        assert process_of(SessionKey(text, ""), "boot") is None
