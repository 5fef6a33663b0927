"""Hosts that a project pushes to, on loopback: sshd, git over https, and GitHub."""

from __future__ import annotations

import base64
import http.server
import json
import os
import socket
import socketserver
import ssl
import subprocess
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from support.git_project import Project

USER, PASSWORD = "ann", "pass"
GITHUB_TOKEN = "the-token"  # noqa: S105  # of a fake
PULL_REQUEST = "https://github.com/ann/api/pull/1"
_SSHD = """\
Port {port}
ListenAddress 127.0.0.1
HostKey {folder}/host
AuthorizedKeysFile {folder}/authorized
PidFile {folder}/pid
UsePAM no
StrictModes no
PasswordAuthentication no
KbdInteractiveAuthentication no
PermitRootLogin yes
"""


def make_key(path: Path) -> str:
    """Make a key of ssh without a passphrase, and return its public line."""
    subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", path], check=True)
    return path.with_name(path.name + ".pub").read_text()


def prepare_sshd(folder: Path, public_key: str, *settings: str) -> int:
    """Write `sshd_config`, with more settings, for an sshd that lets the key in. Return its port.

    The file `pid` says who runs, and `host.pub` is the key of the host.
    """
    folder.mkdir(exist_ok=True)
    make_key(folder / "host")
    (folder / "authorized").write_text(public_key)
    with socket.create_server(("127.0.0.1", 0)) as free:
        port: int = free.getsockname()[1]
    text = _SSHD.format(port=port, folder=folder)
    (folder / "sshd_config").write_text("\n".join((text, *settings, "")))
    if os.geteuid() == 0:
        os.makedirs("/run/sshd", exist_ok=True)  # as the service of the system does
    return port


@contextmanager
def ssh_host(folder: Path, public_key: str, *settings: str) -> Iterator[tuple[int, str]]:
    """A running sshd that lets the key in. Yields its port and its line for `known_hosts`."""
    port = prepare_sshd(folder, public_key, *settings)
    with subprocess.Popen(
        ["/usr/sbin/sshd", "-D", "-e", "-f", folder / "sshd_config"],
        stderr=subprocess.PIPE, text=True,
    ) as server:  # fmt: skip
        assert server.stderr is not None
        assert "Server listening" in server.stderr.readline()
        host = (folder / "host.pub").read_text()
        try:
            yield port, f"[127.0.0.1]:{port} {' '.join(host.split()[:2])}\n"
        finally:
            server.kill()


@contextmanager
def ssh_agent(folder: Path, key: Path) -> Iterator[str]:
    """A running ssh-agent with one key. Yields the path of its socket."""
    address = str(folder / "agent")
    with subprocess.Popen(["ssh-agent", "-D", "-a", address], stdout=subprocess.PIPE) as agent:
        assert agent.stdout is not None
        try:
            assert agent.stdout.readline(), "it names its socket as soon as it listens"
            environment = {**os.environ, "SSH_AUTH_SOCK": address}
            subprocess.run(["ssh-add", "-q", key], env=environment, check=True)
            yield address
        finally:
            agent.kill()


class SshHost(NamedTuple):
    """A host, the key that a person has for it, and the options with which ssh gets there."""

    address: str
    key: Path
    options: str

    def url(self, repository: Path) -> str:
        return f"{self.address}{repository}"


@contextmanager
def own_ssh_host(home: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[SshHost]:
    """Run sshd, and let git and ssh of the person with this home reach it."""
    ssh = home / ".ssh"
    ssh.mkdir(mode=0o700)
    key = ssh / "id_ed25519"
    public = make_key(key)
    # Else the user's own name and keys would count, since ssh does not look at HOME.
    options = f"-F {ssh}/config -o UserKnownHostsFile={ssh}/known_hosts"
    monkeypatch.setenv("GIT_SSH_COMMAND", f"ssh {options}")
    (ssh / "config").write_text(f"IdentityFile {key}\n")
    with ssh_host(home / "sshd", public) as (port, known):
        (ssh / "known_hosts").write_text(known)
        yield SshHost(f"ssh://127.0.0.1:{port}", key, options)


@contextmanager
def https_origin(project: Project) -> Iterator[Path]:
    """Serve the origin of a project, whose password is in the file that this yields."""
    remote = project.remote("hosted/remote")
    project.git("-C", str(remote), "config", "http.receivepack", "true")
    certificate, stored = project.folder / "certificate", project.home / ".git-credentials"
    with https_host(remote.parent, certificate) as port:
        stored.write_text(f"https://{USER}:{PASSWORD}@127.0.0.1:{port}\n")
        project.git("config", "http.sslCAInfo", str(certificate))
        project.git("remote", "add", "origin", f"https://127.0.0.1:{port}/remote.git")
        yield stored


@contextmanager
def https_host(folder: Path, certificate: Path) -> Iterator[int]:
    """Serve the repositories in `folder` over https. Yields the port."""
    command = [
        "openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1",
        "-nodes", "-days", "30", "-subj", "/CN=127.0.0.1", "-addext",
        "subjectAltName=IP:127.0.0.1", "-keyout", "-", "-out", str(certificate),
    ]  # fmt: skip
    key = subprocess.run(command, check=True, capture_output=True).stdout
    both = certificate.with_suffix(".both")
    both.write_bytes(key + certificate.read_bytes())
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), _handler_of(folder)) as server:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(both)
        server.socket = context.wrap_socket(server.socket, server_side=True)
        with _serving(server):
            yield server.server_port


@contextmanager
def github(address: Path) -> Iterator[list[dict[str, Any]]]:
    """The part of GitHub's API that `gh pr create` needs, on a Unix socket.

    Yields the requests for pull requests.
    """
    wanted: list[dict[str, Any]] = []

    class Handler(_Quiet):
        def do_POST(self) -> None:
            body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            if self.headers["Authorization"] != f"token {GITHUB_TOKEN}":
                self.reply(401, b"{}")
                return
            self.reply(200, json.dumps({"data": self.answer(body)}).encode())

        def answer(self, body: dict[str, Any]) -> dict[str, Any]:
            query = body["query"]
            if "createPullRequest" in query:
                wanted.append(body["variables"]["input"])
                return {"createPullRequest": {"pullRequest": {"id": "P", "url": PULL_REQUEST}}}
            main = {"name": "main"}
            if "PullRequestForBranch" in query:
                return {"repository": {"pullRequests": {"nodes": []}, "defaultBranchRef": main}}
            return {
                "repository": {
                    "id": "R", "name": "api", "owner": {"login": USER}, "defaultBranchRef": main,
                    "viewerPermission": "ADMIN",
                },
            }  # fmt: skip

    with socketserver.ThreadingUnixStreamServer(str(address), Handler) as server, _serving(server):
        yield wanted


@contextmanager
def docker(address: Path) -> Iterator[None]:
    """The answer of docker's API to a ping, on a Unix socket."""

    class Handler(_Quiet):
        def do_GET(self) -> None:
            self.reply(200, b"OK")

    with socketserver.ThreadingUnixStreamServer(str(address), Handler) as server, _serving(server):
        yield


@contextmanager
def _serving(server: socketserver.BaseServer) -> Iterator[None]:
    thread = threading.Thread(target=server.serve_forever, args=(0.05,))
    thread.start()
    try:
        yield
    finally:
        server.shutdown()
        thread.join()


class _Quiet(http.server.BaseHTTPRequestHandler):
    """Answers with a body and its length, and logs nothing."""

    protocol_version = "HTTP/1.1"

    def log_message(self, *_: object) -> None:
        pass

    def reply(self, status: int, body: bytes, *headers: tuple[str, str]) -> None:
        self.send_response(status)
        for name, text in (*headers, ("Content-Length", str(len(body)))):
            self.send_header(name, text)
        self.end_headers()
        self.wfile.write(body)


def _handler_of(folder: Path) -> type[_Quiet]:
    password = base64.b64encode(f"{USER}:{PASSWORD}".encode()).decode()

    class Handler(_Quiet):
        def do_GET(self) -> None:
            self.serve()

        def do_POST(self) -> None:
            self.serve()

        def serve(self) -> None:
            body = self.rfile.read(int(self.headers.get("Content-Length", "0")))
            if self.headers.get("Authorization") != f"Basic {password}":
                self.reply(401, b"", ("WWW-Authenticate", 'Basic realm="git"'))
                return
            path, _, query = self.path.partition("?")
            environment = {
                "PATH": os.environ["PATH"],
                "GIT_PROJECT_ROOT": str(folder),
                "GIT_HTTP_EXPORT_ALL": "1",
                "PATH_INFO": path,
                "QUERY_STRING": query,
                "REQUEST_METHOD": self.command,
                "CONTENT_TYPE": self.headers.get("Content-Type", ""),
                "CONTENT_LENGTH": str(len(body)),
                "REMOTE_USER": USER,
            }
            done = subprocess.run(
                ["git", "http-backend"], input=body, env=environment, capture_output=True,
                check=True,
            )  # fmt: skip
            head, _, content = done.stdout.partition(b"\r\n\r\n")
            fields = dict(line.split(": ", 1) for line in head.decode().split("\r\n"))
            status = int(fields.pop("Status", "200 OK").split()[0])
            self.reply(status, content, *fields.items())

    return Handler
