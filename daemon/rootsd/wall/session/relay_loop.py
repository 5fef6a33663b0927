"""Let git inside fetch from and push to the origins of its roots, without a key inside.

The relay is a process outside. Git inside starts `git_inside`, which connects to its socket. The
relay compares each request with the origins of the roots that programs see now. It runs the
person's own ssh, or asks their own credential helpers. What it runs is built from the origin
alone; nothing of a request gets there. A request that is not exactly what git would ask for an
origin is refused.

    git ── git_inside ──socket──> relay ──> ssh user@host "git-receive-pack 'path'"
                 └───────────── pipes ─────┘

The relay passes the pipes of ssh to `git_inside`, so it copies nothing itself and never waits. It
ends ssh when `git_inside` goes away, and when no root gives the right to it any more.

The warden tells the roots (`root_news`). The owner shows the relay's questions on the person's
terminal, and prints at the end what was refused.
"""

from __future__ import annotations

import math
import os
import select
import signal
import socket
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from functools import partial
from typing import NamedTuple

from rootsd.core.labels import safe_label
from rootsd.core.wall import PushPolicy
from rootsd.wall.git.session_record import EventKind, note
from rootsd.wall.outside_program import OutsideProgram
from rootsd.wall.session.git_requests import PROTOCOL_OPTION, HttpsPlace, SshRequest
from rootsd.wall.session.origins import (
    GrantedRequest,
    Origin,
    OriginsInView,
    outside_environment,
    runs_what_programs_wrote,
)
from rootsd.wall.session.relay_questions import MAX_PACKET, QUESTION, YES, Asked
from rootsd.wall.session.written_folders import WrittenFolders

_MAX_CLIENTS = 64
_CHUNK = 1 << 16
_REQUEST_TIMEOUT_S = 10.0
_MAX_REFUSED, _MAX_NOTED, _MAX_KEPT = 8, 100, 1000
_FAILED, _SSH_FAILED = b"255", 255
# Nothing that would lead back from the other machine, and no connection that outlives the request.
_SSH_OPTIONS = (
    b"-a", b"-x", b"-T", b"-oForwardAgent=no", b"-oClearAllForwardings=yes", b"-oTunnel=no",
    b"-oPermitLocalCommand=no", b"-oControlMaster=no",
)  # fmt: skip
# Nothing else leaves it, such as a token that renews others.
_FILL = (b"/bin/sh", b"-c", b"git credential fill 2>/dev/null | grep -E '^(username|password)='")
_MAX_SHOWN = 200


class _Question(NamedTuple):
    """Something to do if a person allows it, and what helps without a terminal."""

    text: str
    remedy: str
    do: Callable[[], None]


def without_users(text: bytes) -> bytes:
    """Leave out the users in URLs and in requests for passwords: many tokens are one."""
    import re  # noqa: PLC0415 - no start

    return re.sub(rb"(?<=://)[^/\s]*@|\n?(?:username|password)=[^\n]*", b"", text)


class _Client:
    """A program inside with a request. `words` are empty until it has arrived.

    It waits for the answer to its `question`, or for its `program`.
    """

    def __init__(self, connection: socket.socket) -> None:
        self.connection = connection
        self.deadline = time.monotonic() + _REQUEST_TIMEOUT_S
        self.words: tuple[bytes, ...] = ()
        self.question: _Question | None = None
        self.program: OutsideProgram | None = None

    def reply(self, status: bytes, text: str = "") -> None:
        """Send the last answer."""
        with suppress(OSError):
            self.connection.send(status + b"\0" + text.encode("utf-8", "replace"))


class Relay:
    """The loop of the relay's process."""

    def __init__(
        self,
        clients: socket.socket,
        owner: socket.socket,
        origins: OriginsInView,
        folder: bytes,
        push: PushPolicy,
        asked: Asked,
    ) -> None:
        self._folder = folder
        self._listening, self._owner, self._origins = clients, owner, origins
        self._push = push
        self._asked = asked
        self._clients: list[_Client] = []
        self._open = ""  # the question that the owner shows
        self._answers: dict[str, bool] = {}
        self._refused: list[str] = []
        self._used: set[bytes] = set()

    def serve(self) -> None:
        """Serve until the owner hangs up, and hang up then."""
        try:
            self._follow()
        finally:
            self._end()
            for each in (self._listening, self._owner, self._origins.news):
                each.close()  # the owner waits for this, and not for the end of the process

    def _follow(self) -> None:
        while True:
            ready = self._poll()
            if self._origins.news.fileno() in ready:
                self._take_news()
            if self._owner.fileno() in ready and not self._take_answer():
                return
            for client in [*self._clients]:
                if client.program is not None and client.program.ended in ready:
                    self._conclude(client, client.program)
                elif client.connection.fileno() in ready:
                    self._hear(client)
                elif not client.words and time.monotonic() > client.deadline:
                    self._drop(client)
            if self._listening.fileno() in ready:
                with suppress(OSError):
                    self._clients.append(_Client(self._listening.accept()[0]))

    def _end(self) -> None:
        """End all that runs, and tell the owner what was refused."""
        signal.signal(signal.SIGTERM, signal.SIG_IGN)  # it may come on top of the owner's end
        for client in [*self._clients]:
            self._drop(client)
        shown = self._refused[:_MAX_REFUSED]
        if more := len(self._refused) - len(shown):
            shown.append(f"{more} other requests")
        with suppress(OSError):
            for each in shown:
                self._owner.send(f"refused to git inside: {each}\n".encode())

    def _poll(self) -> dict[int, int]:
        poll = select.poll()
        for fd in (self._origins.news.fileno(), self._owner.fileno()):
            if fd >= 0:
                poll.register(fd, select.POLLIN)
        if len(self._clients) < _MAX_CLIENTS:
            poll.register(self._listening, select.POLLIN)
        deadline = math.inf
        for client in self._clients:
            poll.register(client.connection, select.POLLIN)
            if client.program is not None:
                poll.register(client.program.ended, select.POLLIN)
            if not client.words:
                deadline = min(deadline, client.deadline)
        left = None if deadline == math.inf else max(deadline - time.monotonic(), 0.0) * 1000 + 1
        return dict(poll.poll(left))

    def _take_news(self) -> None:
        self._origins.take_news()
        for client in [*self._clients]:
            if client.words and self._origins.grant(client.words) is None:
                client.reply(_FAILED, "the root was taken away, so this ended")
                self._drop(client)

    # Requests

    def _hear(self, client: _Client) -> None:
        """Take a request, or the end of a client."""
        try:
            data = client.connection.recv(MAX_PACKET)
        except OSError:
            data = b""
        if not data or client.words:
            self._drop(client)
            return
        client.words = tuple(data.split(b"\0"))
        grant = self._origins.grant(client.words)
        if grant is None:
            self._refuse(client)
        elif not grant.origin.is_known:
            origin = ", ".join(safe_label(each, None) for each in grant.origin.words())
            text = (
                f"May programs fetch and push as you by {origin}? That is the origin of"
                f" {safe_label(grant.root.path, None)}, and a program may have set it."
            )
            remedy = "rootsd confine on a terminal, which asks"
            self._ask(client, _Question(text, remedy, lambda: self._accept(client, grant)))
        else:
            self._begin(client, grant)

    def _accept(self, client: _Client, grant: GrantedRequest) -> None:
        self._origins.accept(grant)
        self._begin(client, grant)

    def _begin(self, client: _Client, grant: GrantedRequest) -> None:
        if not isinstance(right := grant.right, HttpsPlace):
            self._run_ssh(client, grant.origin, right)
        elif self._push is PushPolicy.ALLOW:
            self._fill(client, right)
        else:
            host = safe_label(right.host, None)
            text = (
                f"Give programs your password or token for {host}? They can then do there all that"
                " your account can, not only push to this repository."
            )
            remedy = "rootsd confine --push allow"
            self._ask(client, _Question(text, remedy, partial(self._fill, client, right)))

    def _run_ssh(self, client: _Client, origin: Origin, right: SshRequest) -> None:
        """Run the person's own command for ssh, as git would run it."""
        written = self._origins.written()
        if written.change_ssh() or written.are_named_in(origin.ssh_command):
            self._refuse_settings(client)
            return
        environment = self._environment(written)
        environment[b"GIT_PROTOCOL"] = protocol = client.words[1]
        words = (
            *_SSH_OPTIONS,
            *(() if self._asked is Asked.PERSON else (b"-oBatchMode=yes",)),
            *(PROTOCOL_OPTION if protocol else ()),
            *right.words,
        )
        command = (environment.get(b"GIT_SSH") or b"ssh", *words)
        if text := origin.ssh_command:
            command = (b"/bin/sh", b"-c", text + b' "$@"', text, *words)
        self._note_use(right.words[-2].rpartition(b"@")[2])
        self._run(client, command, environment)

    def _fill(self, client: _Client, place: HttpsPlace) -> None:
        """Ask the person's own helpers for a password."""
        written = self._origins.written()
        environment = self._environment(written)
        if runs_what_programs_wrote(written, environment):
            self._refuse_settings(client)
        else:
            self._note_use(place.host)
            self._run(client, _FILL, environment, place.description())

    def _environment(self, written: WrittenFolders) -> dict[bytes, bytes]:
        own = outside_environment(os.environb, written)
        return own | {b"GIT_TERMINAL_PROMPT": b"0", b"GIT_PROTOCOL": b""}

    def _run(
        self,
        client: _Client,
        command: tuple[bytes, ...],
        environment: Mapping[bytes, bytes],
        given: bytes = b"",
    ) -> None:
        """Run a program outside, and pass its pipes. It reads what is `given`, or from a pipe."""
        pipes = [os.pipe2(os.O_CLOEXEC) for _ in range(3)]
        (stdin, to_program), (output, stdout), (errors, stderr) = pipes
        passed = [output, errors]
        try:
            if given:
                os.write(to_program, given)
            else:
                passed.insert(0, to_program)
            client.program = OutsideProgram(command, environment, (stdin, stdout, stderr))
            socket.send_fds(client.connection, [b"0"], passed)
        except OSError as error:
            client.reply(_FAILED, f"it cannot be started outside: {error.strerror}")
            self._drop(client)
        finally:
            for fd in (each for pair in pipes for each in pair):
                os.close(fd)

    def _conclude(self, client: _Client, program: OutsideProgram) -> None:
        """Tell a client how its program has ended."""
        status = program.wait()
        client.program = None
        text = ""
        if status and client.words[0] == b"credential":
            text = "your credential helpers outside have no password for this"
        elif status == _SSH_FAILED:
            text = (
                "this ssh runs outside and cannot ask you anything; if your key has a passphrase,"
                " run ssh-add outside; if the host is new, run ssh to it once outside"
            )
        client.reply(b"%d" % status, text)
        self._drop(client)

    def _drop(self, client: _Client) -> None:
        """End the program of a client, and hang up."""
        if client.program is not None:
            client.program.kill()
        client.connection.close()
        self._clients.remove(client)
        self._show_question()

    def _note_use(self, host: bytes) -> None:
        """Note that git uses the person's credentials at a host, once in a session."""
        if host not in self._used:
            self._used.add(host)
            self._note(EventKind.USED, host)

    def _note(self, kind: EventKind, what: bytes) -> None:
        note(self._folder, kind, without_users(what))

    def _refuse(self, client: _Client) -> None:
        words = without_users(b" ".join(client.words))
        asked = safe_label(words, _MAX_SHOWN)
        if asked not in self._refused and len(self._refused) < _MAX_KEPT:
            self._refused.append(asked)
            if len(self._refused) <= _MAX_NOTED:  # no flood hides what comes later
                self._note(EventKind.REFUSED, words[:_MAX_SHOWN])
            if len(self._refused) <= _MAX_REFUSED:
                with suppress(OSError):
                    self._origins.news.send(asked.encode() + b"\n")
        remedy = "--ssh-agent" if client.words[0] == b"ssh" else "--read ~/.git-credentials"
        client.reply(
            _FAILED,
            "outside, git reaches only the origins of the roots, and pushes only from writable"
            f" ones; try: rootsd confine {remedy}",
        )
        self._drop(client)

    def _refuse_settings(self, client: _Client) -> None:
        why = "your settings of git or ssh lead into a folder that programs may write"
        client.reply(_FAILED, f"{why}; try: git push, outside")
        self._drop(client)

    # Questions

    def _ask(self, client: _Client, question: _Question) -> None:
        """Do something if a person allows it. Each question is asked once in a session."""
        answer = self._answers.get(question.text)
        if answer is None and self._asked is Asked.PERSON:
            client.question = question
            self._show_question()
        elif answer:
            question.do()
        else:
            why = "The answer was no"
            if answer is None:
                why = f"There is no terminal to ask on; try: {question.remedy}"
            client.reply(_FAILED, f"refused: {question.text} {why}")
            self._drop(client)

    def _show_question(self) -> None:
        """Let the owner show the first question, if it is another one now."""
        wanted = next((each.question.text for each in self._clients if each.question), "")
        if wanted != self._open:
            self._open = wanted
            with suppress(OSError):
                self._owner.send(QUESTION + wanted.encode("utf-8", "replace"))

    def _take_answer(self) -> bool:
        """Take an answer of the person. Return whether the owner is still there."""
        try:
            data = self._owner.recv(MAX_PACKET)
        except OSError:
            data = b""
        if self._open and data[1:] == self._open.encode("utf-8", "replace"):
            answered = self._open
            self._answers[answered] = is_yes = data.startswith(YES)
            self._note(EventKind.ALLOWED if is_yes else EventKind.FORBIDDEN, answered.encode())
            waiting = [(each, each.question) for each in self._clients]
            for client, question in waiting:
                if question is not None and question.text == answered:
                    client.question = None
                    self._ask(client, question)
            self._show_question()
        return bool(data)
