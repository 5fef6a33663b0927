"""Git behind the wall, with a real host: it fetches and pushes, and no key is inside."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator

import pexpect
import pytest

from support import git_hosts
from support.git_hosts import SshHost
from support.git_project import Project
from support.terminal_programs import on_terminal

pytestmark = [pytest.mark.needs("wall")]

_HANG_GUARD_S = 120
_MANY_BYTES = 3 << 20
_CONFINE = (sys.executable, "-m", "rootsd", "confine", "--", "sh", "-c")


@pytest.fixture
def forge(project: Project, monkeypatch: pytest.MonkeyPatch) -> Iterator[SshHost]:
    """A host that the project has its origin on."""
    with git_hosts.own_ssh_host(project.home, monkeypatch) as forge:
        project.git("remote", "add", "origin", forge.url(project.remote("remote")))
        yield forge


@pytest.fixture
def web(project: Project, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """An origin over https, whose password the person has stored."""
    settings = project.home / ".gitconfig"
    settings.write_text("[credential]\n helper = store\n[user]\n name = a\n email = a@b.c\n")
    monkeypatch.setenv("GIT_CONFIG_GLOBAL", str(settings))
    with git_hosts.https_origin(project):
        yield


@pytest.mark.needs("sshd")
def test_git_clones_fetches_and_pushes_over_ssh_without_an_option(
    project: Project, forge: SshHost
) -> None:
    script = f"""set -e
    head -c {_MANY_BYTES} /dev/urandom > many; git add many; git commit -q -m many
    git push -q origin HEAD:pushed
    git clone -q -b pushed {forge.url(project.home / "remote.git")} again
    cmp many again/many; rm -rf again
    git fetch -q; git log -1 --format=%s origin/pushed
    git push -q origin :pushed HEAD:kept; git push -q --dry-run origin HEAD:x
    ! cat {forge.key}; ! env | grep SSH_AUTH_SOCK; ! git fetch {forge.address}/elsewhere
    """
    assert project.succeed(script) == "many\n"
    assert project.git("-C", str(project.home / "remote.git"), "branch") == "  kept\n"


@pytest.mark.needs("sshd")
def test_another_repository_on_the_same_host_is_refused_and_reported(
    project: Project, forge: SshHost
) -> None:
    other = project.remote("other")
    project.git("push", "-q", forge.url(other), "HEAD:first")
    for url in (forge.url(other), forge.url(other).replace("127.0.0.1", "localhost")):
        said = project.fail(f"git push -q {url} HEAD:x || git fetch -q {url}")
        assert "only the origins of the roots" in said
        assert "refused to git inside: ssh" in said
    assert project.git("-C", str(other), "branch") == "  first\n"
    ssh = '$GIT_SSH_COMMAND -p 22 -oProxyCommand="touch ran" 127.0.0.1 id'
    assert "only the origins of the roots" in project.fail(ssh)
    assert not (project.folder / "ran").exists()


@pytest.mark.needs("sshd")
def test_an_origin_that_is_set_inside_opens_nothing(project: Project, forge: SshHost) -> None:
    other = project.remote("other")
    project.succeed(f"git remote set-url origin {forge.url(other)}", "--no-protect")
    said = project.fail("git push -q origin HEAD:x")
    assert "a program may have set it" in said
    assert str(other) in said
    shown = project.confine("true", "--show").stderr
    assert f"git in {project.folder} reaches {forge.url(other)}, after a question" in shown
    project.git("remote", "set-url", "origin", forge.url(project.home / "remote.git"))
    project.succeed("git push -q origin HEAD:x")
    shown = project.confine("true", "--show").stderr
    assert f"reaches {forge.url(project.home / 'remote.git')}\n" in shown
    assert project.git("-C", str(other), "branch") == ""


@pytest.mark.needs("sshd")
@pytest.mark.parametrize("flags", [("--push", "off"), ("--static",)])
def test_an_origin_that_is_set_without_a_relay_opens_nothing_later(
    project: Project, forge: SshHost, flags: tuple[str, ...]
) -> None:
    other = project.remote("other")
    project.succeed(f"git remote set-url origin {forge.url(other)}", *flags, "--no-protect")
    assert "a program may have set it" in project.fail("git push -q origin HEAD:x")
    assert project.git("-C", str(other), "branch") == ""


@pytest.mark.needs("sshd")
def test_an_origin_that_is_set_in_a_root_that_came_with_push_off_opens_nothing_later(
    project: Project, forge: SshHost
) -> None:
    project.deny()
    url = forge.url(project.remote("other"))
    script = (
        f"echo started; until cd {project.folder} && git remote set-url origin {url}; do :; done"
    )
    flags = ("--all", "--push", "off", "--no-protect", "--", "sh", "-c", script)
    words = (sys.executable, "-m", "rootsd", "confine", *flags)
    with subprocess.Popen(words, cwd=project.home, stdout=subprocess.PIPE) as program:
        assert program.stdout is not None
        assert program.stdout.readline() == b"started\n"
        project.approve()
        assert program.wait(_HANG_GUARD_S) == 0
    assert project.git("remote", "get-url", "origin") == f"{url}\n"
    assert "a program may have set it" in project.fail("git push -q origin HEAD:x")


@pytest.mark.needs("sshd")
def test_there_is_no_relay_without_the_network_and_with_push_off(
    project: Project, forge: SshHost
) -> None:
    push = "git push -q origin HEAD:pushed"
    for flags in (("--no-network",), ("--push", "off"), ("--static",)):
        project.fail(push, *flags)
    project.succeed(push)


@pytest.mark.needs("sshd")
def test_a_server_has_the_relay_too(project: Project, forge: SshHost) -> None:
    script = "git push -q origin HEAD:pushed && git push -q elsewhere:x HEAD"
    done = subprocess.run(
        [sys.executable, "-m", "rootsd", "run", "--confine", "--", "sh", "-c", script],
        cwd=project.folder, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False,
        timeout=_HANG_GUARD_S,
    )  # fmt: skip
    assert "refused to git inside: ssh" in done.stderr
    assert project.git("-C", str(project.home / "remote.git"), "branch") == "  pushed\n"


@pytest.mark.needs("openssl")
def test_git_pushes_over_https_if_passwords_are_allowed(project: Project, web: None) -> None:
    push = "git push -q origin HEAD:pushed && ! cat ~/.git-credentials"
    assert "rootsd confine --push allow" in project.fail(push)
    project.succeed(push, "--push", "allow")
    remote = project.home / "hosted" / "remote.git"
    assert project.git("-C", str(remote), "branch") == "  pushed\n"


@pytest.mark.needs("openssl")
@pytest.mark.parametrize("word", ["yes", "y", "no", ""])
def test_on_a_terminal_a_person_is_asked_once(project: Project, web: None, word: str) -> None:
    script = (
        "git push -q origin HEAD:one; echo one=$?; git push -q origin HEAD:two; echo two=$?; cat"
    )
    terminal = on_terminal([*_CONFINE, script], project.folder, {"GIT_TERMINAL_PROMPT": "0"})
    terminal.expect("all that your account can.*Type yes or no: ")
    terminal.send(f"{word}\r")
    status = "0" if word == "yes" else "128"
    terminal.expect(f"one={status}")
    terminal.expect(f"two={status}")
    terminal.send("typed\r")
    terminal.expect("typed")
    terminal.sendeof()
    terminal.expect(pexpect.EOF)
    assert (terminal.before or "").count("Type yes or no") == 0


@pytest.mark.needs("openssl")
def test_a_program_cannot_hide_the_question(project: Project, web: None) -> None:
    script = r"printf '\033[8m\033]0;hidden'; git push -q origin HEAD:one; cat"
    terminal = on_terminal([*_CONFINE, script], project.folder, {"GIT_TERMINAL_PROMPT": "0"})
    terminal.expect("hidden")
    terminal.expect("rootsd: Give programs")
    between = terminal.before or ""
    for ends in ("\x18", "\x1b\\", "\x1b[?2026l", "\x1b(B", "\x1b[0m"):
        assert ends in between
    terminal.close(force=True)


@pytest.mark.needs("sshd")
def test_what_a_program_puts_into_path_does_not_run_outside(
    project: Project, forge: SshHost, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A virtual environment in the project is often the first folder of PATH."""
    planted, ran = project.folder / "venv" / "bin", project.home / "ran"
    planted.mkdir(parents=True)
    linked, trusted = project.home / "linked", project.home / "trusted"
    linked.symlink_to(planted)
    trusted.mkdir()
    usual = os.environ["PATH"]
    tools = project.home / "tools"
    tools.mkdir()
    for folder in (planted, linked, tools):
        monkeypatch.setenv("PATH", f"{folder}:{trusted}:{usual}")
        project.succeed(
            f"""
        for each in ssh git grep; do
            printf '#!/bin/sh\\necho "$0" >> {ran}\\n' > {folder}/$each; chmod +x {folder}/$each
        done
        /usr/bin/git push -q origin HEAD:pushed""",
            "--write",
            str(tools),
        )
    assert not ran.exists()
    (trusted / "ssh").write_text(f'#!/bin/sh\necho ran >> {ran}; exec /usr/bin/ssh "$@"\n')
    (trusted / "ssh").chmod(0o755)
    project.succeed("/usr/bin/git push -q origin HEAD:again")
    assert ran.read_text() == "ran\n", "the control: the person's own ssh in PATH"


@pytest.mark.needs("sshd")
def test_settings_that_a_program_may_write_run_nothing_outside(
    project: Project, forge: SshHost, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A repository of dotfiles is a root, and a person's settings lead into it."""
    ran, push = project.home / "ran", "git push -q origin HEAD:pushed"
    ssh = project.home / ".ssh" / "config"
    own, inside = ssh.read_text(), project.folder / "dotfile"
    inside.write_text(f"ProxyCommand touch {ran}\n")
    for text in (f"Include {inside}\n", "Include ~/src/api/*\n", own):
        ssh.write_text(text)
        if text is own:
            ssh.rename(inside)
            ssh.symlink_to(inside)
        assert "a folder that programs may write" in project.fail(push)
    ssh.unlink()
    ssh.write_text(own)
    command = os.environ["GIT_SSH_COMMAND"]
    for planted in (str(inside), f"ssh -F '{inside}'", "ssh -F ~/src/api/dotfile"):
        monkeypatch.setenv("GIT_SSH_COMMAND", planted)
        assert "a folder that programs may write" in project.fail(push)
    monkeypatch.delenv("GIT_SSH_COMMAND")
    inside.write_text(f'[core]\n sshCommand = "touch {ran};"\n')
    settings = project.home / ".gitconfig"
    monkeypatch.setenv("GIT_CONFIG_GLOBAL", str(settings))
    settings.symlink_to(inside)
    project.fail(push)
    assert not ran.exists()
    monkeypatch.setenv("GIT_SSH_COMMAND", command)
    project.succeed(push)
    monkeypatch.delenv("GIT_SSH_COMMAND")
    settings.unlink()
    settings.write_text(inside.read_text())
    project.fail(push)
    assert ran.exists(), "the control: the person's own settings, which no program can write"
