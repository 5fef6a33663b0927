"""The relay for git: only what git asks for the origin of a visible root gets outside."""

from __future__ import annotations

import json
import os
import select
import shutil
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from rootsd.core.access import Access
from rootsd.core.record import from_line, to_line
from rootsd.core.wall import PushPolicy
from rootsd.net.unix_socket import address_of
from rootsd.wall.git.session_record import EventKind, JournalEntry
from rootsd.wall.kernel.root_news import ANSWER, NewsKind, RootTeller, SeenRoot, SeenRoots
from rootsd.wall.session import git_inside
from rootsd.wall.session.push_relay import PushRelay
from rootsd.wall.session.relay_loop import without_users
from rootsd.wall.session.relay_questions import NO, YES, Asked
from support.polling import until
from support.sizes import Sizes

pytestmark = [pytest.mark.needs("linux")]

_HOST = "ann@forge.example"
_PULL, _PUSH = (f"git-{name}-pack '/srv/api.git'" for name in ("upload", "receive"))
_PORT = ("-p", "2222")
_PROTOCOL = ("-o", "SendEnv=GIT_PROTOCOL")
_HTTPS = "protocol=https\nhost=web.example:8443\n"
_HANG_GUARD_S = 60


class Relayed:
    """A relay with a recorder in place of ssh, and a test in place of the warden."""

    def __init__(self, folder: Path, push: PushPolicy, asked: Asked) -> None:
        self.folder = folder
        self._push, self._asked = push, asked
        self.started = folder / "started"
        self.relay = self._start()

    def prepare(self) -> PushRelay:
        state = os.fsencode(self.folder)
        return PushRelay(state, state + b"/origins.json", self._push, self._asked)

    def _start(self) -> PushRelay:
        relay = self.prepare()
        relay.start()
        return relay

    def restart(self) -> None:
        """Start a second session, which has the memory of the first."""
        self.relay.end()
        self.relay = self._start()

    def root(self, name: str, url: str = "", access: Access = Access.READ_WRITE) -> SeenRoot:
        """Make a root, with a repository if there is a URL."""
        folder = self.folder / name
        folder.mkdir(parents=True, exist_ok=True)
        if url:
            self.set_origin(folder, url)
        return SeenRoot(os.fsencode(folder), access)

    def set_origin(self, folder: Path, url: str) -> None:
        subprocess.run(["git", "init", "-q", folder], check=True)
        subprocess.run(["git", "-C", folder, "config", "remote.origin.url", url], check=True)

    def show(self, *roots: SeenRoot) -> None:
        """Show exactly these roots, as a warden does."""
        self.relay.listener.settimeout(_HANG_GUARD_S)
        self.relay.listener.sendall(to_line(SeenRoots(NewsKind.ABOUT_TO_SHOW, roots)))
        while self.next_line() != ANSWER:
            pass
        self.keep(*roots)

    def next_line(self) -> bytes:
        """Return the next line for the warden."""
        line = b""
        while not line.endswith(b"\n"):
            line += self.relay.listener.recv(1)
        return line

    def keep(self, *roots: SeenRoot) -> None:
        """Show no others than these, which were shown already."""
        self.relay.listener.sendall(to_line(SeenRoots(NewsKind.SHOWN, roots)))

    def connect(self) -> socket.socket:
        client = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        with address_of(self.relay.entries[0].target) as address:
            client.connect(address)
        client.settimeout(_HANG_GUARD_S)
        return client

    def send(self, packet: bytes) -> tuple[str, str]:
        """Return the status and the text that answer a request."""
        with self.connect() as client:
            client.send(packet)
            answer, fds, _, _ = socket.recv_fds(client, 1 << 16, 3)
            printed = b""
            if fds:
                with open(fds[-2], "rb") as output:
                    printed = output.read()
                answer = client.recv(1 << 16)
                for fd in (*fds[:-2], fds[-1]):
                    os.close(fd)
        status, _, text = answer.decode().partition("\0")
        return status, printed.decode() + text

    def ssh(self, *words: str, protocol: str = "") -> tuple[str, str]:
        return self.send("\0".join(("ssh", protocol, *words)).encode())

    def password(self, fields: str) -> tuple[str, str]:
        return self.send(f"credential\0{fields}".encode())

    @property
    def runs(self) -> list[list[str]]:
        """The arguments of each program that the relay started."""
        text = self.started.read_text() if self.started.exists() else ""
        return [line.split("\x1f")[:-1] for line in text.splitlines()]


@pytest.fixture(scope="module")
def place() -> Iterator[Path]:
    with TemporaryDirectory(prefix="p") as short:
        yield Path(short)


@pytest.fixture
def relayed(
    place: Path, monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest
) -> Iterator[Relayed]:
    folder = place / "now"
    (folder / "home").mkdir(parents=True)
    monkeypatch.setenv("HOME", str(folder / "home"))
    monkeypatch.setenv("GIT_CONFIG_GLOBAL", str(folder / "home" / ".gitconfig"))
    record = f"printf '%s\\037' \"$@\" >> {folder}/started; echo >> {folder}/started"
    (folder / "ssh").write_text(f"#!/bin/sh\n{record}\n. {folder}/then\n")
    (folder / "ssh").chmod(0o755)
    (folder / "then").touch()
    monkeypatch.setenv("GIT_SSH_COMMAND", f"{folder}/ssh")
    push, asked = getattr(request, "param", (PushPolicy.ASK, Asked.NOBODY))
    made = Relayed(folder, push, asked)
    yield made
    made.relay.end()
    shutil.rmtree(folder)


@pytest.fixture
def api(relayed: Relayed) -> SeenRoot:
    """A visible root with an origin."""
    root = relayed.root("api", f"ssh://{_HOST}:2222/srv/api.git")
    relayed.show(root)
    return root


@pytest.mark.parametrize("command", [_PULL, _PUSH])
@pytest.mark.parametrize("protocol", [(), _PROTOCOL])
def test_what_git_asks_for_the_origin_runs(
    relayed: Relayed, api: SeenRoot, command: str, protocol: tuple[str, ...]
) -> None:
    version = "version=2" if protocol else ""
    assert relayed.ssh(*protocol, *_PORT, _HOST, command, protocol=version) == ("0", "")
    [words] = relayed.runs
    assert words[-4 - len(protocol) :] == [*protocol, *_PORT, _HOST, command]
    assert {"-a", "-x", "-T", "-oBatchMode=yes", "-oClearAllForwardings=yes"} <= {*words}


def test_the_process_starts_with_the_first_request_and_has_the_origins_that_its_owner_found(
    relayed: Relayed,
) -> None:
    root = relayed.root("api", f"ssh://{_HOST}:2222/srv/api.git")
    relayed.relay.end()
    relayed.relay = lazy = relayed.prepare()
    warden, channel = socket.socketpair()
    with warden, channel:
        lazy.listener.sendall(to_line(SeenRoots(NewsKind.ABOUT_TO_SHOW, (root,))))
        lazy.listener.sendall(to_line(SeenRoots(NewsKind.SHOWN, (root,))))
        warden.send(b"ready")
        lazy.find_until(channel)
    assert lazy.listener.recv(1) == ANSWER
    # What stands there once programs see the root may be theirs.
    relayed.set_origin(relayed.folder / "api", "ssh://evil.example/srv/api.git")
    assert select.select(lazy.interest(), (), (), 0)[0] == [], "the control: nothing is asked"
    assert lazy.pid == 0
    with relayed.connect():
        assert select.select(lazy.interest(), (), (), _HANG_GUARD_S)[0]
        lazy.start()
    assert lazy.interest() == ()
    assert relayed.ssh(*_PORT, _HOST, _PUSH) == ("0", "")
    assert relayed.ssh("evil.example", _PUSH)[0] == "255"


def journal(relayed: Relayed) -> list[tuple[EventKind, str]]:
    """What the relay has told the report about the session."""
    lines = (relayed.folder / "changes" / "journal").read_bytes().splitlines()
    events = (from_line(JournalEntry, line).event for line in lines)
    return [(each.kind, os.fsdecode(each.what)) for each in events if each is not None]


def test_the_report_has_hosts_questions_with_answers_and_refusals(
    relayed: Relayed, api: SeenRoot
) -> None:
    for _ in range(2):  # each is there once, or a program could flood the report
        relayed.ssh(*_PORT, _HOST, _PUSH)
        relayed.ssh("evil.example", "\x1b[2J")
    assert journal(relayed) == [
        (EventKind.USED, "forge.example"),
        (EventKind.REFUSED, "ssh  evil.example \x1b[2J"),
    ]


def test_a_report_has_no_token(relayed: Relayed, api: SeenRoot) -> None:
    relayed.password("protocol=https\nhost=else.example\nusername=ghp_token\nwwwauth[]=Basic\n")
    [(kind, what)] = journal(relayed)
    assert kind is EventKind.REFUSED
    assert what == "credential protocol=https\nhost=else.example\nwwwauth[]=Basic\n"
    question = b"May programs push as you by https://ann:to@ken@forge.example/x, git@forge:x?"
    asked = b"May programs push as you by https://forge.example/x, git@forge:x?"
    assert without_users(question) == asked


_ATTACKS: dict[str, tuple[str, ...]] = {
    "another host": (*_PORT, "ann@evil.example", _PUSH),
    "another spelling of the host": (*_PORT, "ann@FORGE.example", _PUSH),
    "another user": (*_PORT, "root@forge.example", _PUSH),
    "no user": (*_PORT, "forge.example", _PUSH),
    "another port": ("-p", "22", _HOST, _PUSH),
    "no port": (_HOST, _PUSH),
    "a port in one word": ("-p2222", _HOST, _PUSH),
    "two ports": (*_PORT, *_PORT, _HOST, _PUSH),
    "another path": (*_PORT, _HOST, "git-receive-pack '/srv/other.git'"),
    "a path without its ending": (*_PORT, _HOST, "git-receive-pack '/srv/api'"),
    "a path with a slash at the end": (*_PORT, _HOST, "git-receive-pack '/srv/api.git/'"),
    "a path with two slashes": (*_PORT, _HOST, "git-receive-pack '/srv//api.git'"),
    "a path through ..": (*_PORT, _HOST, "git-receive-pack '/srv/x/../api.git'"),
    "a path in a home": (*_PORT, _HOST, "git-receive-pack '~/api.git'"),
    "a path that is not quoted": (*_PORT, _HOST, "git-receive-pack /srv/api.git"),
    "two commands": (*_PORT, _HOST, f"{_PUSH}; id"),
    "two lines": (*_PORT, _HOST, f"{_PUSH}\nid"),
    "a command in the path": (*_PORT, _HOST, "git-receive-pack '$(id)'"),
    "an archive": (*_PORT, _HOST, "git-upload-archive '/srv/api.git'"),
    "a token for large files": (*_PORT, _HOST, "git-lfs-authenticate '/srv/api.git' upload"),
    "another spelling of the command": (*_PORT, _HOST, "git receive-pack '/srv/api.git'"),
    "any command": (*_PORT, _HOST, "id"),
    "a shell": (*_PORT, _HOST),
    "nothing": (),
    "a word more": (*_PORT, _HOST, _PUSH, "id"),
    "the agent": ("-A", *_PORT, _HOST, _PUSH),
    "a proxy command": ("-oProxyCommand=id", *_PORT, _HOST, _PUSH),
    "a proxy command in two words": ("-o", "ProxyCommand=id", *_PORT, _HOST, _PUSH),
    "a local command": ("-oPermitLocalCommand=yes", "-oLocalCommand=id", *_PORT, _HOST, _PUSH),
    "another configuration": ("-F", "/tmp/config", *_PORT, _HOST, _PUSH),
    "a forwarded address": ("-W", "localhost:22", *_PORT, _HOST, _PUSH),
    "a forwarded port": ("-L", "1:localhost:22", *_PORT, _HOST, _PUSH),
    "another identity": ("-i", "/tmp/key", *_PORT, _HOST, _PUSH),
    "another variable": ("-o", "SendEnv=TOKEN", *_PORT, _HOST, _PUSH),
    "an option as the host": (*_PORT, "-oProxyCommand=id", _PUSH),
    "an option after the host": (*_PORT, _HOST, "-oProxyCommand=id", _PUSH),
    "the end of options": (*_PORT, "--", _HOST, _PUSH),
    "IPv6 only": ("-6", *_PORT, _HOST, _PUSH),
    "a null": (*_PORT, f"{_HOST}\0", _PUSH),
}


def test_every_other_request_is_refused(relayed: Relayed, api: SeenRoot) -> None:
    for number, (name, words) in enumerate(_ATTACKS.items()):
        status, text = relayed.ssh(*words)
        assert (status, len(relayed.runs)) == ("255", number), name
        assert "only the origins" in text
        assert relayed.ssh(*_PORT, _HOST, _PUSH)[0] == "0", f"the control after {name}"
    with relayed.relay.listener.dup() as channel:
        warden = RootTeller(channel)
        while len(warden.refused) < 8:
            warden.attend()
    said = relayed.relay.end()
    assert len(said) == 9, "not all of them are named"
    assert said[:8] == [f"refused to git inside: {each}" for each in warden.refused]
    assert all(line.startswith("refused to git inside: ") for line in said)
    assert "".join(said).isprintable()


def test_a_failure_of_ssh_says_what_to_do_outside(relayed: Relayed, api: SeenRoot) -> None:
    (relayed.folder / "then").write_text("exit 255\n")
    status, text = relayed.ssh(*_PORT, _HOST, _PUSH)
    assert (status, "run ssh-add outside" in text) == ("255", True)
    (relayed.folder / "then").write_text("exit 1\n")
    assert relayed.ssh(*_PORT, _HOST, _PUSH) == ("1", ""), "the command there failed, not ssh"


def test_another_protocol_is_refused(relayed: Relayed, api: SeenRoot) -> None:
    for protocol in ("version=2\nX=1", "version=3", "x", "version=2:a=b"):
        assert relayed.ssh(*_PORT, _HOST, _PULL, protocol=protocol)[0] == "255"
    assert relayed.runs == []
    assert relayed.ssh(*_PORT, _HOST, _PULL, protocol="version=2")[0] == "0"


_WORDS = st.one_of(
    st.sampled_from([*_PORT, *_PROTOCOL, _HOST, _PULL, _PUSH, "ssh", "credential", "-oX=y", ""]),
    st.text(max_size=20),
)


def test_of_many_random_requests_none_runs(relayed: Relayed, api: SeenRoot, sizes: Sizes) -> None:
    examples = sizes.pick(test=200, check=1_000, soak=20_000)
    right = [
        (*protocol, *_PORT, _HOST, command)
        for protocol in ((), _PROTOCOL)
        for command in (_PULL, _PUSH)
    ]
    asked = 0

    @settings(
        max_examples=examples, database=None, deadline=None,
        suppress_health_check=list(HealthCheck),
    )  # fmt: skip
    @given(
        kind=st.sampled_from(["ssh", "credential", "", "exec"]), words=st.lists(_WORDS, max_size=7)
    )
    def ask(kind: str, words: list[str]) -> None:
        nonlocal asked
        packet = "\0".join((kind, "", *words)).encode("utf-8", "replace")
        split = packet.decode().split("\0")
        if split[0] == "ssh" and tuple(split[2:]) in right:
            return
        asked += 1
        assert relayed.send(packet)[0] == "255"

    ask()
    assert asked > examples / 2
    assert relayed.runs == []


def test_an_empty_request_and_an_early_end_leave_nothing(relayed: Relayed, api: SeenRoot) -> None:
    with relayed.connect() as client:
        client.send(b"")
        assert client.recv(1) == b""
    for _ in range(100):
        relayed.connect().close()
    assert relayed.ssh(*_PORT, _HOST, _PULL)[0] == "0"


def test_many_silent_clients_do_not_keep_git_out(relayed: Relayed, api: SeenRoot) -> None:
    silent = [relayed.connect() for _ in range(60)]
    assert relayed.ssh(*_PORT, _HOST, _PULL)[0] == "0"
    for each in silent:
        each.close()


def test_a_read_only_root_fetches_and_does_not_push(relayed: Relayed) -> None:
    root = relayed.root("api", f"ssh://{_HOST}:2222/srv/api.git", Access.READ)
    relayed.show(root)
    assert relayed.ssh(*_PORT, _HOST, _PUSH)[0] == "255"
    assert relayed.ssh(*_PORT, _HOST, _PULL)[0] == "0"
    relayed.show(root._replace(access=Access.READ_WRITE))
    assert relayed.ssh(*_PORT, _HOST, _PUSH)[0] == "0"


def running(relayed: Relayed, words: Sequence[str]) -> tuple[socket.socket, int]:
    """Start a request whose ssh waits. Return its connection and the process id of that ssh."""
    pid = relayed.folder / "pid"
    pid.unlink(missing_ok=True)
    (relayed.folder / "then").write_text(f"echo $$ > {pid}\nexec sleep 1000\n")
    client = relayed.connect()
    client.send("\0".join(("ssh", "", *words)).encode())
    _, fds, _, _ = socket.recv_fds(client, 1 << 16, 3)
    assert len(fds) == 3
    for fd in fds:
        os.close(fd)
    until(lambda: pid.exists() and pid.read_text().strip())
    return client, int(pid.read_text())


def is_alive(pid: int) -> bool:
    try:
        os.readlink(f"/proc/{pid}/exe")
    except OSError:  # also of a zombie
        return False
    return True


def test_a_revoke_ends_what_runs_and_an_approval_lets_it_start_again(
    relayed: Relayed, api: SeenRoot
) -> None:
    client, pid = running(relayed, (*_PORT, _HOST, _PUSH))
    relayed.keep(api)
    other = relayed.root("other", f"ssh://{_HOST}/other.git")
    relayed.show(api, other)
    assert is_alive(pid), "the control: the root is still there"
    relayed.keep(other)
    assert b"taken away" in client.recv(1 << 16)
    until(lambda: not is_alive(pid))
    (relayed.folder / "then").write_text("")
    assert relayed.ssh(*_PORT, _HOST, _PUSH)[0] == "255"
    relayed.show(api, other)
    assert relayed.ssh(*_PORT, _HOST, _PUSH)[0] == "0"
    client.close()


def test_a_change_to_read_only_ends_a_push_and_no_fetch(relayed: Relayed, api: SeenRoot) -> None:
    push, pid_of_push = running(relayed, (*_PORT, _HOST, _PUSH))
    fetch, pid_of_fetch = running(relayed, (*_PORT, _HOST, _PULL))
    relayed.show(api._replace(access=Access.READ))
    until(lambda: not is_alive(pid_of_push))
    assert is_alive(pid_of_fetch)
    for each in (push, fetch):
        each.close()


def test_ssh_ends_with_the_program_inside_and_with_the_relay(
    relayed: Relayed, api: SeenRoot
) -> None:
    client, pid = running(relayed, (*_PORT, _HOST, _PULL))
    client.close()
    until(lambda: not is_alive(pid))
    client, pid = running(relayed, (*_PORT, _HOST, _PULL))
    os.kill(relayed.relay.pid, signal.SIGTERM)
    until(lambda: not is_alive(pid))
    client.close()


def test_without_the_warden_nothing_runs(relayed: Relayed, api: SeenRoot) -> None:
    relayed.relay.listener.shutdown(socket.SHUT_RDWR)
    until(lambda: relayed.ssh(*_PORT, _HOST, _PULL)[0] == "255")


def test_the_status_of_ssh_reaches_git(relayed: Relayed, api: SeenRoot) -> None:
    (relayed.folder / "then").write_text("exit 3")
    assert relayed.ssh(*_PORT, _HOST, _PULL) == ("3", "")
    (relayed.folder / "then").write_text("kill -9 $$")
    assert relayed.ssh(*_PORT, _HOST, _PULL) == ("137", "")


# What git starts inside


def client_words(relayed: Relayed, command: str = _PULL) -> list[str]:
    address = os.fsdecode(relayed.relay.entries[0].target)
    return [
        sys.executable,
        "-I",
        "-S",
        git_inside.__file__,
        address,
        "ssh",
        *_PORT,
        _HOST,
        command,
    ]


def test_what_git_sends_arrives_and_comes_back_whole(relayed: Relayed, api: SeenRoot) -> None:
    (relayed.folder / "then").write_text("cat; echo end >&2; exit 5\n")
    sent = os.urandom(5 << 20)
    done = subprocess.run(
        client_words(relayed), input=sent, capture_output=True, timeout=_HANG_GUARD_S, check=False
    )
    assert (done.returncode, done.stderr) == (5, b"end\n")
    assert done.stdout == sent


def test_ssh_ends_if_nobody_reads_any_more(relayed: Relayed, api: SeenRoot) -> None:
    pid = relayed.folder / "pid"
    (relayed.folder / "then").write_text(f"echo $$ > {pid}; exec cat /dev/zero\n")
    with subprocess.Popen(
        client_words(relayed), stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as client:
        assert client.stdout is not None
        assert len(client.stdout.read(1 << 20)) == 1 << 20
        assert is_alive(int(pid.read_text())), "the control: it waits for its reader"
        client.stdout.close()
        assert client.wait(_HANG_GUARD_S) == 141
    until(lambda: not is_alive(int(pid.read_text())))


def test_ctrl_c_ends_the_client_and_ssh_without_a_word(relayed: Relayed, api: SeenRoot) -> None:
    pid = relayed.folder / "pid"
    (relayed.folder / "then").write_text(f"echo $$ > {pid}; echo; exec sleep 1000\n")
    with subprocess.Popen(
        client_words(relayed), stdin=subprocess.PIPE, stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    ) as client:  # fmt: skip
        assert client.stdout is not None
        assert client.stdout.readline() == b"\n"
        client.send_signal(signal.SIGINT)
        assert client.communicate(timeout=_HANG_GUARD_S) == (b"", b"")
        assert client.returncode == -signal.SIGINT
    until(lambda: not is_alive(int(pid.read_text())))


def test_a_refusal_names_an_option(relayed: Relayed, api: SeenRoot) -> None:
    done = subprocess.run(
        client_words(relayed, "id"), stdin=subprocess.DEVNULL, capture_output=True, check=False
    )
    assert done.returncode == 255
    assert b"try: rootsd confine --ssh-agent" in done.stderr
    relayed.relay.end()
    done = subprocess.run(
        client_words(relayed), stdin=subprocess.DEVNULL, capture_output=True, check=False
    )
    assert done.returncode == 255
    assert b"the relay for git outside has ended" in done.stderr


@pytest.mark.parametrize(
    ("url", "words"),
    [
        ("ann@forge.example:api.git", ("ann@forge.example", "'api.git'")),
        ("forge.example:/srv/api", ("forge.example", "'/srv/api'")),
        ("forge.example:~ann/api", ("forge.example", "'~ann/api'")),
        ("ssh://forge.example/~ann/api", ("forge.example", "'~ann/api'")),
        ("git+ssh://forge.example:22/a", ("-p", "22", "forge.example", "'/a'")),
        ("forge.example:it's!", ("forge.example", "'it'\\''s'\\!''")),
    ],
)
def test_the_forms_of_urls_are_those_of_git(
    relayed: Relayed, url: str, words: tuple[str, ...]
) -> None:
    """Git itself says what it gives to ssh."""
    root = relayed.root("api", url)
    *others, path = words
    wanted = [*others, f"git-upload-pack {path}"]
    environment = {**os.environ, "GIT_SSH_VARIANT": "ssh", "GIT_PROTOCOL_FROM_USER": "1"}
    subprocess.run(
        ["git", "-C", root.path, "-c", "protocol.version=0", "ls-remote", "origin"],
        env=environment, capture_output=True, check=False,
    )  # fmt: skip
    assert relayed.runs == [wanted], "the control: git's own request"
    relayed.show(root)
    assert relayed.ssh(*wanted)[0] == "0"
    assert relayed.runs[1][-len(wanted) :] == wanted


_OTHER_URLS = (
    "-oProxyCommand=id:x", "ssh://-oProxyCommand=id/x", "ext::sh -c id", "/srv/api.git",
    "file:///srv/api.git", "git://forge.example/x", "http://forge.example/x", "forge.example:",
    "forge.example:-x", "ssh://forge.example/a%0ab", "ssh://a b/x", "ssh://[::1]/x",
)  # fmt: skip


def test_a_url_of_another_form_opens_nothing(relayed: Relayed) -> None:
    for number, url in enumerate(_OTHER_URLS):
        relayed.show(relayed.root(f"{number}", url))
        host, _, path = url.removeprefix("ssh://").partition("/")
        for words in ((host, f"git-upload-pack '/{path}'"), (url, _PULL), url.split(":", 1)):
            assert relayed.ssh(*words)[0] == "255"
    assert relayed.runs == []


def test_the_settings_of_the_person_count(
    relayed: Relayed, monkeypatch: pytest.MonkeyPatch
) -> None:
    own = relayed.folder / "own-ssh"
    own.write_text(f"#!/bin/sh\necho own >> {relayed.folder}/own\n")
    own.chmod(0o755)
    (relayed.folder / "home" / ".gitconfig").write_text(
        '[url "ssh://ann@forge.example/"]\n insteadOf = forge:\n'
        '[url "ssh://bob@forge.example/"]\n pushInsteadOf = forge:\n'
        f'[includeIf "gitdir:{relayed.folder}/job/"]\n path = {relayed.folder}/job.config\n'
    )
    (relayed.folder / "job.config").write_text(f"[core]\n sshCommand = {own}\n")
    monkeypatch.delenv("GIT_SSH_COMMAND")
    relayed.restart()
    relayed.show(relayed.root("job/api", "forge:api.git"))
    assert relayed.ssh("ann@forge.example", "git-upload-pack '/api.git'")[0] == "0"
    assert relayed.ssh("bob@forge.example", "git-receive-pack '/api.git'")[0] == "0"
    assert relayed.ssh("ann@forge.example", "git-receive-pack '/api.git'")[0] == "255"
    assert (relayed.folder / "own").read_text() == "own\n" * 2


def test_a_push_goes_where_the_settings_of_the_repository_say(relayed: Relayed) -> None:
    root = relayed.root("api", "forge.example:pulled")
    git = ("git", "-C", os.fsdecode(root.path), "config")
    subprocess.run([*git, "remote.origin.pushurl", "forge.example:pushed"], check=True)
    subprocess.run([*git, "--add", "remote.origin.pushurl", "short:also"], check=True)
    settings = relayed.folder / "home" / ".gitconfig"
    settings.write_text('[url "other.example:"]\n insteadOf = short:\n')
    relayed.show(root)
    for host, path, pulls, pushes in (
        ("forge.example", "pulled", "0", "255"),
        ("forge.example", "pushed", "255", "0"),
        ("other.example", "also", "255", "0"),
        ("short", "also", "255", "255"),
    ):
        assert relayed.ssh(host, f"git-upload-pack '{path}'")[0] == pulls
        assert relayed.ssh(host, f"git-receive-pack '{path}'")[0] == pushes


# What a program could have written


def test_an_origin_that_a_program_may_have_set_needs_a_person(
    relayed: Relayed, api: SeenRoot
) -> None:
    plain = relayed.root("plain")
    relayed.show(api, plain)
    relayed.set_origin(relayed.folder / "plain", "evil.example:x")
    relayed.set_origin(relayed.folder / "api", "evil.example:y")
    relayed.restart()
    relayed.show(api, plain)
    for path in ("x", "y"):
        status, text = relayed.ssh("evil.example", f"git-receive-pack '{path}'")
        assert status == "255"
        assert f"evil.example:{path}" in text
        assert "a terminal" in text
    assert relayed.runs == []
    relayed.set_origin(relayed.folder / "api", f"ssh://{_HOST}:2222/srv/api.git")
    relayed.restart()
    relayed.show(api, plain)
    assert relayed.ssh(*_PORT, _HOST, _PUSH)[0] == "0", "the control: it is the first one again"


def test_a_repository_that_is_made_in_a_root_is_no_new_origin(relayed: Relayed) -> None:
    outer = relayed.root("outer")
    relayed.show(outer)
    inner = relayed.root("outer/inner", "evil.example:x")
    relayed.show(outer, inner)
    assert relayed.ssh("evil.example", "git-receive-pack 'x'")[0] == "255"
    beside = relayed.root("beside", "forge.example:x")
    relayed.show(outer, inner, beside)
    assert relayed.ssh("forge.example", "git-receive-pack 'x'")[0] == "0", "the control"


@pytest.mark.parametrize("relayed", [(PushPolicy.ALLOW, Asked.PERSON)], indirect=True)
@pytest.mark.parametrize("word", [YES, NO])
def test_a_person_decides_about_such_an_origin_once(relayed: Relayed, word: bytes) -> None:
    plain = relayed.root("plain")
    relayed.show(plain)
    relayed.set_origin(relayed.folder / "plain", "forge.example:x")
    relayed.show()
    relayed.show(plain)
    asked = ("forge.example", "git-receive-pack 'x'")
    with relayed.connect() as client:
        client.send("\0".join(("ssh", "", *asked)).encode())
        question = relayed.relay.channel.recv(1 << 16)
        assert b"forge.example:x" in question
        relayed.relay.channel.send(word + b"another question")
        relayed.relay.channel.send(word + question[1:])
        allowed = word == YES
        assert client.recv(1 << 16).startswith(b"0" if allowed else b"255\0")
    assert relayed.ssh(*asked)[0] == ("0" if allowed else "255")
    relayed.restart()
    relayed.show(plain)
    if allowed:
        assert relayed.ssh(*asked)[0] == "0"


@pytest.mark.parametrize("relayed", [(PushPolicy.ALLOW, Asked.PERSON)], indirect=True)
def test_a_yes_is_not_for_settings_that_changed_after_the_question(relayed: Relayed) -> None:
    plain = relayed.root("plain")
    relayed.show(plain)
    relayed.set_origin(relayed.folder / "plain", "forge.example:x")
    relayed.show(plain)
    request = "\0".join(("ssh", "", "forge.example", "git-receive-pack 'x'")).encode()
    with relayed.connect() as client:
        client.send(request)
        question = relayed.relay.channel.recv(1 << 16)
        git = ("git", "-C", os.fsdecode(plain.path), "config", "core.sshCommand", "evil")
        subprocess.run(git, check=True)
        relayed.show(plain)
        relayed.relay.channel.send(YES + question[1:])
        assert client.recv(1 << 16).startswith(b"0"), "the control: what the question said"
    assert relayed.relay.channel.recv(1 << 16) == b"?"
    with relayed.connect() as client:
        client.send(request)
        assert b"evil" in relayed.relay.channel.recv(1 << 16)


# Passwords


@pytest.fixture
def stored(relayed: Relayed) -> SeenRoot:
    """A root with an origin over https, whose password the person has stored."""
    home = relayed.folder / "home"
    (home / ".gitconfig").write_text("[credential]\n helper = store\n")
    (home / ".git-credentials").write_text(
        "https://ann:secret@web.example:8443\nhttps://ann:other@else.example\n"
    )
    root = relayed.root("web", "https://web.example:8443/srv/api.git")
    relayed.show(root)
    return root


_ALLOWED = pytest.mark.parametrize("relayed", [(PushPolicy.ALLOW, Asked.NOBODY)], indirect=True)


@_ALLOWED
def test_git_gets_the_password_for_the_origin(relayed: Relayed, stored: SeenRoot) -> None:
    for more in ("", "path=srv/api.git\n", "wwwauth[]=Basic\n", "username=ann\n"):
        assert relayed.password(_HTTPS + more) == ("0", "username=ann\npassword=secret\n")


_OTHER_PASSWORDS = (
    "protocol=https\nhost=else.example\n",
    "protocol=http\nhost=web.example:8443\n",
    "protocol=https\nhost=web.example\n",
    "protocol=https\nhost=web.example:443\n",
    "protocol=https\nhost=WEB.example:8443\n",
    "protocol=https\nhost=web.example:8443.evil.example\n",
    "protocol=https\nhost=web.example:8443\nhost=else.example\n",
    "host=else.example\nprotocol=https\nhost=web.example:8443\n",
    "protocol=https\nhost=web.example:8443\npath=other\n",
    "protocol=https\nhost=web.example:8443\0host=else.example\n",
    "protocol=ssh\nhost=web.example:8443\n",
    "url=https://else.example\n",
    "protocol=https\n",
    "",
)


@_ALLOWED
def test_every_other_password_is_refused(relayed: Relayed, stored: SeenRoot) -> None:
    for fields in _OTHER_PASSWORDS:
        status, text = relayed.password(fields)
        assert status == "255", fields
        assert "secret" not in text
        assert "other" not in text
    assert relayed.password(_HTTPS)[0] == "0", "the control"


@_ALLOWED
def test_a_password_needs_a_visible_writable_root(relayed: Relayed, stored: SeenRoot) -> None:
    relayed.show(stored._replace(access=Access.READ))
    assert relayed.password(_HTTPS)[0] == "255"
    relayed.show()
    assert relayed.password(_HTTPS)[0] == "255"
    relayed.show(stored)
    assert relayed.password(_HTTPS)[0] == "0"


@_ALLOWED
def test_no_helper_runs_that_a_program_may_write(
    relayed: Relayed, stored: SeenRoot, monkeypatch: pytest.MonkeyPatch
) -> None:
    ran, planted = relayed.folder / "ran", Path(os.fsdecode(stored.path)) / "helper"
    planted.write_text(f"#!/bin/sh\ntouch {ran}\n")
    planted.chmod(0o755)
    settings = relayed.folder / "home" / ".gitconfig"
    own = settings.read_text()
    monkeypatch.setenv("PATH", f"{relayed.folder}/places:{os.environ['PATH']}")
    relayed.restart()
    relayed.show(stored)
    for helper in (planted, f"!{planted} x", f"!sh -c '. {planted}'"):
        settings.write_text(f'[credential]\n helper = "{helper}"\n')
        assert "may write" in relayed.password(_HTTPS)[1]
    places = relayed.folder / "places"
    places.mkdir()
    for name, helper in (("git-credential-mine", "mine"), ("own", "!own get")):
        (places / name).symlink_to(planted)
        settings.write_text(f'[credential]\n helper = "{helper}"\n')
        assert "may write" in relayed.password(_HTTPS)[1]
    settings.write_text(own)
    assert relayed.password(_HTTPS)[0] == "0", "the control"
    planted.write_text(f"[credential]\n helper = !touch {ran}\n")
    settings.unlink()
    settings.symlink_to(planted)
    assert "may write" in relayed.password(_HTTPS)[1]
    assert not ran.exists()


def test_without_a_terminal_the_option_is_named(relayed: Relayed, stored: SeenRoot) -> None:
    status, text = relayed.password(_HTTPS)
    assert status == "255"
    assert "rootsd confine --push allow" in text


@pytest.mark.parametrize("relayed", [(PushPolicy.ASK, Asked.PERSON)], indirect=True)
def test_the_question_about_a_password_is_asked_once_a_session(
    relayed: Relayed, stored: SeenRoot
) -> None:
    request = f"credential\0{_HTTPS}".encode()
    with relayed.connect() as gone:
        gone.send(request)
        question = relayed.relay.channel.recv(1 << 16)
        assert b"web.example:8443" in question
        assert b"all that your account can" in question
    assert relayed.relay.channel.recv(1 << 16) == b"?", "it is taken back"
    with relayed.connect() as client:
        client.send(request)
        assert relayed.relay.channel.recv(1 << 16) == question
        relayed.relay.channel.send(YES + question[1:])
        _, fds, _, _ = socket.recv_fds(client, 1 << 16, 2)
        with open(fds[0], "rb") as output:
            assert b"password=secret" in output.read()
        os.close(fds[1])
    assert relayed.password(_HTTPS)[0] == "0"


def test_the_known_origins_are_in_a_private_file(relayed: Relayed, api: SeenRoot) -> None:
    record = relayed.folder / "origins.json"
    assert record.stat().st_mode & 0o077 == 0
    assert os.fsdecode(api.path) in json.loads(record.read_text())["claims"]
