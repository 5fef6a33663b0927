"""Another machine for end-to-end tests of `--host`: a real sshd on loopback, with its own rootsd.

Neither sshd nor the commands of the near machine have pytest among their ancestors, so the guards
of both machines judge what they would judge without a test.
"""

from __future__ import annotations

import os
import pwd
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from support.git_hosts import make_key, prepare_sshd
from support.person import Person
from support.polling import until
from support.process_launcher import ROOTSD, ProcessLauncher

# Without a daemon, the command judges its caller itself.
LOGIN_START = Path(__file__).with_name("login_start")
_SSH = """\
Host build
  HostName 127.0.0.1
Host *
  Port {port}
  IdentityFile {folder}/key
  IdentitiesOnly yes
  UserKnownHostsFile {folder}/known
  GlobalKnownHostsFile /dev/null
  HostKeyAlias far
  ConnectTimeout 60
  # The default one, against quantum computers, takes longer than all the rest.
  KexAlgorithms curve25519-sha256
"""


class RemoteHost:
    """The machine `build`, with the rootsd of `person`, and a near machine without a daemon."""

    def __init__(self, person: Person, folder: Path, launcher: ProcessLauncher) -> None:
        self.person = person
        self.near = launcher
        self._folder = folder
        self._programs = folder / "programs"

    def install(self, name: str, script: str) -> None:
        """Install a program there."""
        program = self._programs / name
        program.write_text(f"#!/bin/sh\n{script}\n")
        program.chmod(0o755)

    def uninstall_rootsd(self) -> None:
        """Remove the program rootsd there."""
        (self._programs / "rootsd").unlink()

    def know_host_key(self) -> None:
        """Let the near machine know the right host key."""
        public = (self._folder / "host.pub").read_text()
        (self._folder / "known").write_text(f"far {public}")

    def forget_host_key(self) -> None:
        """Let the near machine know no host key."""
        (self._folder / "known").write_text("")

    def change_host_key(self) -> None:
        """Let the near machine know another host key."""
        (self._folder / "known").write_text(f"far {make_key(self._folder / 'other')}")

    def refuse_keys(self) -> None:
        """Let sshd accept no key."""
        (self._folder / "authorized").write_text("")

    def shut_down(self) -> None:
        """End sshd. Running logins go on."""
        pid = int((self._folder / "pid").read_text())
        os.kill(pid, signal.SIGTERM)
        until(lambda: not Path(f"/proc/{pid}").exists())


@contextmanager
def remote_host(folder: Path, person: Person) -> Iterator[RemoteHost]:
    """Run sshd for the machine of `person`, whose guard is on."""
    ssh = folder / "ssh"
    (ssh / "programs").mkdir(parents=True)
    there = {
        "HOME": str(person.home), "ROOTSD_DIR": person.environment()["ROOTSD_DIR"],
        "PATH": f"{ssh}/programs:/usr/bin:/bin",
    }  # fmt: skip
    variables = " ".join(f"{name}={value}" for name, value in there.items())
    port = prepare_sshd(ssh, make_key(ssh / "key"), f"SetEnv {variables}")
    (ssh / "config").write_text(_SSH.format(port=port, folder=ssh))
    # ssh does not look at HOME, so its configuration needs an option.
    near_home = folder / "near"
    near_programs = near_home / "bin"
    near_programs.mkdir(parents=True)
    # For ssh, -l goes before the USER of USER@HOST: sshd accepts only the user who runs it.
    user = pwd.getpwuid(os.geteuid()).pw_name
    for name, words in (
        ("ssh", f"/usr/bin/ssh -F {ssh}/config -l {user}"),
        ("rootsd", " ".join(ROOTSD)),
    ):
        (near_programs / name).write_text(f'#!/bin/sh\nexec {words} "$@"\n')
        (near_programs / name).chmod(0o755)
    near = {
        **os.environ, "HOME": str(near_home), "ROOTSD_DIR": str(near_home / "rootsd"),
        "PATH": f"{near_programs}:{os.environ['PATH']}", "TERM": "xterm", "NO_COLOR": "1",
        "PYTHONPATH": os.pathsep.join([str(LOGIN_START), *sys.path]), "PYTHON": sys.executable,
    }  # fmt: skip
    # Without -D, sshd becomes an orphan, as a service is.
    subprocess.run(["/usr/sbin/sshd", "-f", ssh / "sshd_config"], check=True, capture_output=True)
    with ProcessLauncher(folder, near) as launcher:
        host = RemoteHost(person, ssh, launcher)
        host.know_host_key()
        host.install("rootsd", f'exec {" ".join(ROOTSD)} "$@"')
        until(lambda: _accepts(port))
        try:
            yield host
        finally:
            if (ssh / "pid").exists():
                host.shut_down()


def _accepts(port: int) -> bool:
    with socket.socket() as attempt:
        return attempt.connect_ex(("127.0.0.1", port)) == 0
