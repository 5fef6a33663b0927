"""The relay between an ACP client and its agent: what passes, and what stays as it is."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from rootsd.core.errors import RootsdError
from rootsd.proxy.acp import messages
from support.acp_relay import (
    TOOLS,
    AcpRelay,
    FakeApprovals,
    FakeWall,
    new_session,
    request,
    root_at,
)
from support.sizes import Sizes

FILES = [
    ("fs/read_text_file", {}),
    ("fs/write_text_file", {"content": ""}),
]


@pytest.fixture
def disk(tmp_path: Path) -> Path:
    """Make approved folders `api` and `web`, and others beside them."""
    for name in ("api/sub", "api-old", "web", "secret"):
        (tmp_path / name).mkdir(parents=True)
    (tmp_path / "api/out").symlink_to(tmp_path / "secret")
    (tmp_path / "way-in").symlink_to(tmp_path / "api")
    return tmp_path


@pytest.fixture
def relay(disk: Path) -> AcpRelay:
    """Return a relay whose agent takes more folders."""
    relay = AcpRelay(FakeApprovals((root_at(disk / "api"), root_at(disk / "web"))))
    relay.initialize()
    return relay


def test_a_session_begins_in_an_approved_folder_with_the_tools_of_rootsd(
    relay: AcpRelay, disk: Path
) -> None:
    assert relay.begin(disk / "api") == {"cwd": str(disk / "api"), "mcpServers": [TOOLS]}


@pytest.mark.parametrize("method", sorted(messages.SETUPS))
@pytest.mark.parametrize("field", ["cwd", "additionalDirectories"])
def test_a_folder_that_is_not_approved_does_not_pass_and_is_pending(
    relay: AcpRelay, disk: Path, method: str, field: str
) -> None:
    secret = str(disk / "secret")
    folders = {"cwd": str(disk / "api"), "sessionId": "s", "mcpServers": []}
    params = {**folders, field: secret if field == "cwd" else [secret]}
    assert relay.client_sends(request(method, params)) == []
    (answer,) = relay.client_gets()
    assert answer["error"]["code"] == -32602
    assert answer["error"]["message"] == f"{secret} is not approved; try: rootsd approve {secret}"
    assert relay.out.proposals == [secret.encode()]
    assert relay.client_sends(request(method, folders))  # the control: this one passes


def test_the_error_says_that_flags_may_leave_a_root_out(relay: AcpRelay, disk: Path) -> None:
    relay.folders.narrows = True
    assert relay.client_sends(new_session(disk / "secret")) == []
    assert (
        "is not approved, or --only does not name it"
        in (relay.client_gets()[0]["error"]["message"])
    )


def test_an_unknown_request_of_a_session_cannot_bring_a_folder_in(
    relay: AcpRelay, disk: Path
) -> None:
    bad = {"sessionId": "s", "additionalDirectories": [str(disk / "secret")]}
    good = {"sessionId": "s", "additionalDirectories": [str(disk / "web")]}
    assert relay.client_sends(request("session/move", bad)) == []
    assert relay.client_sends(request("session/move", good)) == [request("session/move", good)]
    assert relay.client_sends({"jsonrpc": "2.0", "method": "session/new", "params": bad}) == []


OTHER_WAYS: list[Callable[[str], dict[str, Any]]] = [
    lambda folder: {"additional_directories": [folder]},  # as the Python SDK writes it
    lambda folder: {"Cwd": folder},
    lambda folder: {"_meta": {"additionalRoots": [folder]}},  # both are for Claude
    lambda folder: {"_meta": {"claudeCode": {"options": {"additionalDirectories": [folder]}}}},
    lambda folder: {"_meta": [{"cwd": folder}]},
]


@pytest.mark.parametrize("way", OTHER_WAYS)
def test_no_other_member_that_agents_read_brings_a_folder_in(
    relay: AcpRelay, disk: Path, way: Callable[[str], dict[str, Any]]
) -> None:
    assert relay.client_sends(new_session(disk / "api", **way(str(disk / "secret")))) == []
    assert "is not approved" in relay.client_gets()[0]["error"]["message"]
    good = way(str(disk / "web"))
    assert relay.begin(disk / "api", **good) == {
        "cwd": str(disk / "api"), "mcpServers": [TOOLS], **good,
    }  # fmt: skip


@pytest.mark.parametrize("value", [7, [7], [None], {"path": "/etc"}])
def test_a_folder_is_a_text(relay: AcpRelay, disk: Path, value: object) -> None:
    assert relay.client_sends(new_session(disk / "api", additionalDirectories=value)) == []
    assert relay.client_sends(new_session(disk / "api", additionalDirectories=None))


def test_a_folder_that_depends_on_the_reader_does_not_pass(relay: AcpRelay, disk: Path) -> None:
    (disk / "api/deep/er").mkdir(parents=True)
    (disk / "to-deep").symlink_to(disk / "api/deep/er")
    for path in ("to-deep/../../sub", "api/sub/../sub"):  # the disk finds api/sub for both
        passed = relay.client_sends(new_session(f"{disk}/{path}"))
        assert bool(passed) is path.startswith("api")


@pytest.mark.parametrize("cwd", ["src", "", "/nowhere/at/all", None])
def test_a_session_needs_a_folder_that_exists(relay: AcpRelay, cwd: str | None) -> None:
    assert relay.client_sends(request("session/new", {"cwd": cwd, "mcpServers": []})) == []
    assert relay.client_gets()[0]["error"]["code"] == -32602


def test_without_a_daemon_no_session_begins(relay: AcpRelay, disk: Path) -> None:
    relay.folders.error = RootsdError("no daemon", "rootsd up")
    assert relay.client_sends(new_session(disk / "api")) == []
    assert relay.client_gets()[0]["error"]["message"] == "no daemon; try: rootsd up"


def test_the_other_roots_of_the_workspace_are_added(relay: AcpRelay, disk: Path) -> None:
    relay.folders.workspace = (root_at(disk / "api"), root_at(disk / "web"))
    assert relay.begin(disk / "api")["additionalDirectories"] == [str(disk / "web")]
    # A root around the folder of the session would open what the session left out.
    assert relay.begin(disk / "api/sub")["additionalDirectories"] == [str(disk / "web")]
    given = [str(disk / "web")]
    assert relay.begin(disk / "api", additionalDirectories=given)["additionalDirectories"] == given


def test_an_agent_that_takes_no_more_folders_gets_none(disk: Path) -> None:
    roots = (root_at(disk / "api"), root_at(disk / "web"))
    relay = AcpRelay(FakeApprovals(roots, roots))
    relay.initialize({"agentCapabilities": {}})
    assert "additionalDirectories" not in relay.begin(disk / "api")


def test_a_read_only_root_needs_the_wall(disk: Path) -> None:
    approvals = FakeApprovals((root_at(disk / "api", writable=False),))
    relay, walled = AcpRelay(approvals), AcpRelay(approvals, wall=FakeWall())
    assert relay.client_sends(new_session(disk / "api")) == []
    assert "rootsd acp --confine" in relay.client_gets()[0]["error"]["message"]
    assert walled.client_sends(new_session(disk / "api"))


def test_the_wall_shows_the_folders_of_a_session_before_it_begins(disk: Path) -> None:
    wall = FakeWall()
    roots = (root_at(disk / "api"), root_at(disk / "web"))
    relay = AcpRelay(FakeApprovals(roots, roots[:1]), wall=wall)
    relay.begin(disk / "api", additionalDirectories=[str(disk / "web")])
    assert wall.opened == {"api", "web"}


@pytest.mark.parametrize(("method", "more"), FILES)
def test_the_client_serves_files_of_the_session_only(
    relay: AcpRelay, disk: Path, method: str, more: dict[str, str]
) -> None:
    relay.begin(disk / "api")

    def ask(path: str, session: str = "s") -> list[dict[str, Any]]:
        params = {"sessionId": session, "path": path, **more}
        return relay.agent_sends(request(method, params, id_=7))

    assert ask(f"{disk}/api/new.py")  # the control
    for path in ("api/out/key", "secret/key", "api/../secret/key", "api-old/x", "web/x"):
        assert ask(f"{disk}/{path}") == []
        assert relay.agent_gets()[0]["error"]["code"] == -32002
    assert ask("new.py") == []
    assert ask(f"{disk}/api/new.py", session="other") == []
    relay.folders.roots = ()  # the daemon is asked each time
    assert ask(f"{disk}/api/new.py") == []
    relay.agent_gets()
    relay.folders.error = RootsdError("no daemon", "rootsd up")
    assert ask(f"{disk}/api/new.py") == []
    assert relay.agent_gets()[0]["error"]["message"] == "no daemon; try: rootsd up"


@pytest.mark.parametrize("name", ["PATH", "Path", "session_id"])
def test_a_request_with_a_second_spelling_of_its_path_or_session_is_refused(
    relay: AcpRelay, disk: Path, name: str
) -> None:
    relay.begin(disk / "api")
    params = {"sessionId": "s", "path": f"{disk}/api/x", "line": 1}
    assert relay.agent_sends(request("fs/read_text_file", params))  # the control
    assert relay.agent_sends(request("fs/read_text_file", {**params, name: "/etc/x"})) == []


def test_an_agent_that_reads_no_refusals_is_not_read(relay: AcpRelay) -> None:
    def flood(count: int) -> None:
        for _ in range(count):
            refused = request("fs/read_text_file", {"path": "/etc/" + 2_000 * "x"})
            relay.session.from_server(json.dumps(refused).encode(), 0.0)

    flood(500)
    relay.agent_gets()
    relay.session.output_written()
    flood(1_000)
    assert not relay.session.is_flooded, "it has read some of them"
    flood(1_000)
    assert relay.session.is_flooded


def test_a_read_only_root_is_read_and_not_written(disk: Path) -> None:
    approvals = FakeApprovals((root_at(disk / "api"),))
    relay = AcpRelay(approvals)
    relay.begin(disk / "api")
    approvals.roots = (root_at(disk / "api", writable=False),)
    params = {"sessionId": "s", "path": f"{disk}/api/x"}
    assert relay.agent_sends(request("fs/read_text_file", params))
    assert relay.agent_sends(request("fs/write_text_file", params)) == []


def test_the_client_starts_commands_in_the_session_only(relay: AcpRelay, disk: Path) -> None:
    relay.begin(disk / "api")
    inside = {"sessionId": "s", "command": "ls"}
    assert relay.agent_sends(request("terminal/create", inside))
    assert relay.agent_sends(request("terminal/create", {**inside, "cwd": f"{disk}/api/sub"}))
    for refused in ({**inside, "cwd": str(disk)}, {"command": "ls"}, {**inside, "cwd": "."}):
        assert relay.agent_sends(request("terminal/create", refused)) == []
    assert relay.agent_sends({"jsonrpc": "2.0", "method": "terminal/create", "params": {}}) == []


def test_behind_the_wall_the_client_serves_nothing(disk: Path) -> None:
    approvals = FakeApprovals((root_at(disk / "api"),))
    relay = AcpRelay(approvals, wall=FakeWall())
    declared = {"fs": {"readTextFile": True}, "terminal": True, "session": {}}
    (sent,) = relay.client_sends(request("initialize", {"clientCapabilities": declared}))
    assert sent["params"]["clientCapabilities"] == {"session": {}}
    relay.begin(disk / "api")
    params = {"sessionId": "s", "path": f"{disk}/api/x", "command": "ls"}
    for method in ("fs/read_text_file", "fs/other", "terminal/create", "terminal/output"):
        assert relay.agent_sends(request(method, params)) == []
        assert relay.agent_gets()[0]["error"]["code"] == -32602


def test_sessions_in_other_folders_are_not_listed(relay: AcpRelay, disk: Path) -> None:
    relay.client_sends(request("session/list", {"cwd": str(disk / "secret")}))
    names = ("api", "secret", "way-in", "gone")
    sessions = [{"sessionId": name, "cwd": f"{disk}/{name}"} for name in names]
    result = {"sessions": [*sessions, {"sessionId": "x"}], "nextCursor": "c"}
    (listed,) = relay.agent_sends({"jsonrpc": "2.0", "id": 1, "result": result})
    assert [each["sessionId"] for each in listed["result"]["sessions"]] == ["api", "way-in"]
    assert listed["result"]["nextCursor"] == "c"


def test_servers_of_a_session_are_wrapped_on_request(disk: Path) -> None:
    approvals = FakeApprovals((root_at(disk / "api"),))
    relay = AcpRelay(approvals, wrapper=("/bin/rootsd", "run"))
    git = {
        "name": "git",
        "command": "/bin/git-mcp",
        "args": ["-v"],
        "env": [{"name": "A", "value": "1"}],
    }
    far = {"type": "http", "name": "far", "url": "https://example.com", "headers": []}
    wrapped = [
        {
            **git,
            "command": "/bin/rootsd",
            "args": ["run", "--name", "git", "--", "/bin/git-mcp", "-v"],
        },
        far,
        TOOLS,
    ]
    assert relay.begin(disk / "api", mcpServers=[git, far])["mcpServers"] == wrapped
    own = {**TOOLS, "command": "/opt/rootsd"}
    assert relay.begin(disk / "api", mcpServers=[own])["mcpServers"] == [own]


OTHERS = [
    b'{"jsonrpc":"2.0", "id":5,"method":"session/prompt","params":{"sessionId":"s","n":1e400}}',
    b'{"jsonrpc":"2.0","method":"session/cancel","params":{"sessionId":"s"}}',
    b' {"jsonrpc":"2.0","id":"a","method":"_vendor/x","params":{"cwd":"/etc","text":"\\ud83d"}}',
    b'{"jsonrpc":"2.0","id":6,"method":"session/request_permission","params":{"path":"/etc"}}',
    b'{"jsonrpc":"2.0","id":9,"result":{"content":"caf\\u00e9"}}',
    b'{"jsonrpc":"2.0","id":9,"error":{"code":-1,"message":"no"}}',
]


@pytest.mark.parametrize("line", OTHERS)
def test_everything_else_passes_byte_for_byte(relay: AcpRelay, line: bytes) -> None:
    relay.session.from_client(line, 0.0)
    relay.session.from_server(line, 0.0)
    assert bytes(relay.out.to_server) == bytes(relay.out.to_client) == line + b"\n"


LONG = {
    "jsonrpc": "2.0",
    "method": "session/update",
    "params": {"sessionId": "s", "text": "é\n" * 50_000},
}
TRICKS = [
    '"method": "fs/write_text_file"',
    '"Method": "fs/write_text_file"',
    r'"m\u0065thod": "fs/write_text_file"',
    '"CWD": "/etc"',
    '"additional_directories": ["/etc"]',
]


def test_long_messages_pass_unread_but_with_their_answers(relay: AcpRelay) -> None:
    prompt = {**LONG, "id": 7, "method": "session/prompt"}
    for form in ({"ensure_ascii": False}, {"ensure_ascii": False, "separators": (",", ":")}):
        line = json.dumps({"jsonrpc": "2.0", "id": 7, **prompt}, **form).encode()
        assert messages.long_call(line) is not None
        assert relay.client_sends(line) == [prompt]
        assert relay.session.pending_responses == 1
        relay.agent_sends({"jsonrpc": "2.0", "id": 7, "result": {}})
        assert relay.session.pending_responses == 0


@pytest.mark.parametrize("trick", TRICKS)
def test_a_long_message_with_a_second_method_or_a_folder_is_read(
    relay: AcpRelay, trick: str
) -> None:
    line = json.dumps(LONG, ensure_ascii=False)
    assert messages.long_call(line.encode()) is not None
    path = '"id": 9, "params": {"path": "/etc/passwd"}'
    passed = relay.agent_sends(f"{line[:-1]}, {trick}, {path}}}".encode())
    assert "fs/write_text_file" not in json.dumps(passed)
    assert messages.long_call(f"{line[:-1]}, {trick}}}".encode()) is None
    assert messages.long_call(line.encode().replace("é".encode(), b"\xe9")) is None
    assert messages.long_call(f"{line[:-1]}\r}}".encode()) is None


@pytest.mark.parametrize(
    "line",
    [
        b'[{"jsonrpc":"2.0","id":1,"method":"session/new","params":{}}]',
        b"Debugger attached.",
        b'{"jsonrpc":"2.0","id":1,"method":"x","params":[]}',
    ],
)
def test_lines_that_are_no_message_of_acp_never_pass(relay: AcpRelay, line: bytes) -> None:
    assert relay.client_sends(line) == []
    relay.client_gets()
    assert relay.agent_sends(line) == []
    assert len(relay.out.dropped_lines) == 2


def test_the_last_of_two_folders_with_one_name_counts(relay: AcpRelay, disk: Path) -> None:
    text = json.dumps(new_session(disk / "api"))
    both = text.replace('"cwd":', f'"cwd": "{disk}/secret", "cwd":').encode()
    (sent,) = relay.client_sends(both)
    assert sent["params"]["cwd"] == str(disk / "api")
    assert b"secret" not in relay.out.to_server
    other = text.replace('"mcpServers":', f'"cwd": "{disk}/secret", "mcpServers":').encode()
    assert relay.client_sends(other) == []


def test_open_requests_get_the_reason_when_the_agent_ends(relay: AcpRelay) -> None:
    relay.client_sends(request("session/prompt", {}, id_="p"))
    relay.client_sends(request("_other", {}, id_=3))
    relay.agent_sends({"jsonrpc": "2.0", "id": 3, "result": {}})
    assert relay.session.pending_responses == 1
    relay.session.fail_all(RootsdError("it ended", "again"))
    assert [(each["id"], each["error"]["message"]) for each in relay.client_gets()] == [
        ("p", "it ended; try: again")
    ]


# Paths as a client may write them, most of them to folders that are not approved.
PATHS = st.lists(
    st.sampled_from(["api", "web", "secret", "sub", "out", "way-in", "api-old", "..", ".", ""]),
    max_size=4,
).map("/".join)
SESSIONS = st.tuples(
    st.sampled_from([*sorted(messages.SETUPS), "session/x", "session/set_mode"]),
    PATHS,
    st.lists(PATHS, max_size=3),
)


def _passed_outside(disk: Path, session: tuple[str, str, list[str]]) -> list[str]:
    """Return the folders outside `api` and `web` that the agent gets."""
    relay = AcpRelay(FakeApprovals((root_at(disk / "api"), root_at(disk / "web"))))
    method, cwd, more = session
    paths = [f"{disk}/{path}" for path in more]
    params = {"cwd": f"{disk}/{cwd}", "additionalDirectories": paths, "sessionId": "s"}
    sent = relay.client_sends(request(method, params))
    found = [path for each in sent for path in [each["params"]["cwd"], *paths]]
    inside = (disk / "api", disk / "web")
    return [
        path for path in found if not any(Path(path).resolve().is_relative_to(p) for p in inside)
    ]


def test_no_random_session_passes_an_unapproved_folder(disk: Path, sizes: Sizes) -> None:
    @settings(
        max_examples=sizes.pick(test=200, check=1_000, soak=10_000),
        suppress_health_check=[HealthCheck.too_slow],
        deadline=None,
    )
    @given(SESSIONS)
    def try_session(session: tuple[str, str, list[str]]) -> None:
        assert _passed_outside(disk, session) == []

    try_session()


def test_the_random_sessions_find_a_relay_that_does_not_look(
    disk: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(messages, "sets_folders", lambda _: False)
    assert _passed_outside(disk, ("session/new", "secret", []))
    assert _passed_outside(disk, ("session/load", "api", ["api/out"]))
