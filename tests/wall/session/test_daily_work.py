"""Daily work behind the wall: each step works, or works with one option that the failure names."""

from __future__ import annotations

import os
import re
import socket
import subprocess
import sys
import urllib.request

import pytest

from rootsd.wall.session.daily_work import daily_work
from rootsd.wall.session.options import Opening
from support import git_hosts
from support.git_project import Project

pytestmark = [pytest.mark.needs("wall")]

_SIGN = "git commit -q -S --allow-empty -m signed"


def test_git_works_in_a_root(project: Project) -> None:
    script = """set -e
    echo one >> README; git add README; git commit -q -m one
    git checkout -q -b topic HEAD~1; echo two > TWO; git add TWO; git commit -q -m two
    git rebase -q main; git branch -d main 2>/dev/null || git branch -D main
    git worktree add -q .worktrees/fix; git -C .worktrees/fix commit -q --allow-empty -m fix
    git stash list; git gc -q; git log --format=%s topic; git -C .worktrees/fix log -1 --format=%s
    """
    assert project.succeed(script).split()[-4:] == ["two", "one", "first", "fix"]
    assert project.git("log", "-1", "--format=%s", "fix") == "fix\n"


def test_a_worktree_beside_the_root_is_made_outside(project: Project) -> None:
    said = project.fail("git worktree add ../fix")
    assert "Read-only file system" in said
    assert "new folders beside a root, as git worktree add ../NAME makes (--worktrees)" in said
    assert not (project.folder.parent / "fix").exists()
    assert project.git("worktree", "list").count("\n") == 1


def test_nothing_is_made_beside_the_root_where_a_tool_is_visible(project: Project) -> None:
    """It would be in the private home, and gone at the end."""
    tool = project.home / "src" / "tools" / "bin"
    tool.mkdir(parents=True)
    read = ("--read", str(tool))
    assert "Read-only file system" in project.fail("ls ../tools/bin && touch ../new", *read)
    assert "Read-only file system" in project.fail("touch ../tools/new", *read)


def test_tools_write_their_state_beside_visible_settings(project: Project) -> None:
    settings = project.home / ".config" / "tool" / "settings"
    settings.parent.mkdir(parents=True)
    settings.touch()
    project.succeed("cd; touch .config/state .config/tool/state", "--read", str(settings))


def test_a_program_that_makes_mounts_fails_and_the_start_names_the_options(
    project: Project,
) -> None:
    options = "--nested", "--on-revoke", "kill"
    said = project.fail("unshare -Um true")
    assert f"sandboxes inside, such as unshare -rm ({' '.join(options)})" in said
    project.succeed("unshare -Um true", *options)


def test_harmless_changes_of_the_configuration_of_git_leave_and_the_others_are_listed(
    project: Project,
) -> None:
    config = project.folder / ".git" / "config"
    before = config.read_text()
    script = "git config core.fsmonitor ./run-me; git config core.sparseCheckout false"
    done = project.confine(script)
    assert done.returncode == 0
    assert "git hooks and most git settings (change them outside)" in done.stderr
    assert "stay behind the wall: core.fsmonitor;" in done.stderr
    assert config.read_text() == before + "[core]\n\tsparsecheckout = false\n"
    assert "git hooks" not in project.confine("git config a.b c", "--no-protect").stderr
    assert project.git("config", "a.b") == "c\n"


@pytest.mark.needs("sshd")
def test_ssh_signs_and_pushes_anywhere_with_the_agent_and_without_it_names_the_option(
    project: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    remote = project.remote("remote")
    with (
        git_hosts.own_ssh_host(project.home, monkeypatch) as host,
        git_hosts.ssh_agent(project.home, host.key) as agent,
    ):
        monkeypatch.setenv("SSH_AUTH_SOCK", agent)
        project.git("remote", "add", "other", host.url(remote))
        project.git("config", "gpg.format", "ssh")
        project.git("config", "user.signingkey", f"{host.key}.pub")
        push = "git push -q other HEAD:pushed"
        said = project.fail(f"{_SIGN} || ssh {host.options} 127.0.0.1 true")
        assert "outside the wall; try: rootsd confine --ssh-agent" in said
        assert "ssh keys, except at the origins of the roots (--ssh-agent)" in said
        assert "ssh keys (--ssh-agent)" in project.fail("false", "--push", "off")
        project.succeed(f"{_SIGN} && {push} && ! cat {host.key}", "--ssh-agent")
    assert project.git("-C", str(remote), "branch") == "  pushed\n"
    assert "BEGIN SSH SIGNATURE" in project.git("cat-file", "commit", "HEAD")


@pytest.mark.needs("gpg")
def test_gpg_signs_with_the_agent_and_exports_nothing(
    project: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    keys = project.home / "keys"
    keys.mkdir(mode=0o700)
    monkeypatch.setenv("GNUPGHOME", str(keys))
    make = ("--quick-gen-key", "Ann <ann@example.org>", "ed25519", "sign", "never")
    gpg = ("gpg", "--batch", "--quiet", "--passphrase", "")
    subprocess.run([*gpg, *make], check=True, capture_output=True)
    project.git("config", "user.signingkey", "ann@example.org")
    try:
        assert "gpg keys (--gpg)" in project.fail(_SIGN)
        said = project.fail("echo text | gpg --sign --armor")
        assert "/outside-the-wall/try:rootsd-confine--gpg" in said
        project.succeed(_SIGN, "--gpg")
        assert project.git("log", "-1", "--format=%G? %s") == "G signed\n"
        export = "gpg --batch --passphrase '' --export-secret-keys"
        assert subprocess.run(["sh", "-c", export], capture_output=True, check=True).stdout
        assert project.confine(export, "--gpg").stdout == ""
    finally:
        subprocess.run(["gpgconf", "--kill", "gpg-agent"], check=True)


@pytest.mark.needs("openssl")
def test_https_pushes_with_a_stored_password_and_without_it_names_the_file(
    project: Project,
) -> None:
    project.git("config", "credential.helper", "store")
    with git_hosts.https_origin(project) as stored:
        push = "GIT_TERMINAL_PROMPT=0 git push -q origin HEAD:pushed"
        said = project.fail(push, "--push", "off")
        assert "could not read Username" in said
        assert "passwords of git (--read ~/.git-credentials)" in said
        assert "rootsd confine --push allow" in project.fail(push)
        project.succeed(push, "--read", str(stored))
    remote = project.home / "hosted" / "remote.git"
    assert project.git("-C", str(remote), "branch") == "  pushed\n"


@pytest.mark.needs("gh")
def test_gh_opens_a_pull_request_with_a_token(
    project: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder, address = project.home / ".config" / "gh", project.folder / "api.sock"
    folder.mkdir(parents=True)
    (folder / "hosts.yml").write_text(f"github.com:\n    oauth_token: {git_hosts.GITHUB_TOKEN}\n")
    (folder / "config.yml").write_text(f"http_unix_socket: {address}\n")
    create = "gh pr create --repo ann/api --head topic --base main --title t --body b"
    with git_hosts.github(address) as wanted:
        assert "the token of gh (--gh)" in project.fail(create)
        assert git_hosts.PULL_REQUEST in project.succeed(create, "--gh")
        monkeypatch.setenv("GH_TOKEN", git_hosts.GITHUB_TOKEN)
        monkeypatch.setenv("GH_CONFIG_DIR", str(project.folder / "gh"))
        (project.folder / "gh").mkdir()
        (project.folder / "gh" / "config.yml").write_text(f"http_unix_socket: {address}\n")
        assert git_hosts.PULL_REQUEST in project.succeed(create)
    assert [each["headRefName"] for each in wanted] == ["topic"] * 2


def test_docker_is_reached_with_its_option_and_without_it_the_variable_names_it(
    project: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    address = project.home / "docker.sock"
    monkeypatch.setenv("DOCKER_HOST", f"unix://{address}")
    ping = (
        f"{sys.executable} -c 'import os, socket; s = socket.socket(socket.AF_UNIX);"
        ' s.connect(os.environ["DOCKER_HOST"].removeprefix("unix://"));'
        ' s.sendall(b"GET /_ping HTTP/1.0\\r\\n\\r\\n"); print(s.recv(99).split()[1].decode())\''
    )
    with git_hosts.docker(address):
        done = project.confine(f"echo $DOCKER_HOST; {ping}")
        assert "rootsd-confine--docker" in done.stdout
        assert "FileNotFoundError" in done.stderr
        assert "docker (--docker)" in done.stderr
        assert project.succeed(ping, "--docker") == "200\n"


def test_a_development_server_is_reached_from_outside(project: Project) -> None:
    serve = [sys.executable, "-m", "rootsd", "confine", "--", "python3", "-u", "-m", "http.server"]
    with subprocess.Popen(
        [*serve, "--bind", "127.0.0.1", "0"], cwd=project.folder, stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL, text=True,
    ) as server:  # fmt: skip
        assert server.stdout is not None
        found = re.search(r"port (\d+)", server.stdout.readline())
        assert found is not None
        with urllib.request.urlopen(f"http://127.0.0.1:{found[1]}/README") as answer:
            assert answer.read() == b"hello\n"
        server.terminate()


def test_without_the_network_a_server_is_reached_from_inside_only(project: Project) -> None:
    with socket.create_server(("127.0.0.1", 0)) as outside:
        connect = f"import socket; socket.create_connection({outside.getsockname()})"
        own = (
            "s = socket.create_server(('127.0.0.1', 0)); socket.create_connection(s.getsockname())"
        )
        python = f'{sys.executable} -c "{{}}"'
        assert "refused" in project.fail(python.format(connect), "--no-network")
        project.succeed(python.format(f"import socket; {own}"), "--no-network")
        project.succeed(python.format(connect))


def test_a_program_outside_the_view_is_named_with_the_option_that_shows_it(
    project: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    program = project.home / "tools" / "mine" / "hidden"
    program.parent.mkdir(parents=True)
    program.write_text("#!/bin/sh\necho shown\n")
    program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{program.parent}:{os.environ['PATH']}")
    for verb in (("confine",), ("run", "--confine")):
        done = subprocess.run(
            [sys.executable, "-m", "rootsd", *verb, "--", "hidden"], stdin=subprocess.DEVNULL,
            cwd=project.folder, capture_output=True, text=True, check=False,
        )  # fmt: skip
        assert done.returncode == 127
        assert f"outside the wall: {program}; try: --read {program.parent}" in done.stderr
        assert "Traceback" not in done.stderr
    assert project.succeed("hidden", "--read", str(program.parent)) == "shown\n"


def test_a_hint_never_touches_what_the_user_shows(project: Project) -> None:
    ssh = project.home / ".ssh"
    ssh.mkdir(mode=0o700)
    (ssh / "config").write_text("Host mine\n")
    assert "Match exec" in project.succeed("cat ~/.ssh/config")
    assert project.succeed("cat ~/.ssh/config", "--read", f"{ssh}/config") == "Host mine\n"
    assert project.succeed("cat ~/.ssh/config", "--keep", str(ssh)) == "Host mine\n"
    (ssh / "config").unlink()
    project.succeed("true", "--write", str(ssh))
    assert list(ssh.iterdir()) == []


def test_an_agent_without_a_limited_socket_is_described_as_it_is(
    project: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = project.home / "keys"
    folder.mkdir()
    monkeypatch.setenv("GNUPGHOME", str(folder))  # not the one of this machine's user
    home = os.fsencode(project.home)
    said: list[str] = []
    for name in ("S.gpg-agent", "S.gpg-agent.extra"):
        (folder / name).touch()
        said += daily_work(frozenset({Opening.GPG}), home, ()).stays_open
    assert "export, and delete" in said[0]
    assert "sign and decrypt" in said[1]


def test_an_explicitly_shown_path_is_not_closed(
    project: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("DOCKER_HOST", f"unix://{project.home}/nothing")
    (project.home / ".netrc").touch()
    (project.home / ".ssh").mkdir()
    home = os.fsencode(project.home)
    closed = daily_work(frozenset(), home, ()).closed
    assert closed == ("ssh keys (--ssh-agent)", "passwords of git and curl (--read ~/.netrc)")
    assert daily_work(frozenset(), home, (home,)).closed == closed[:1]
