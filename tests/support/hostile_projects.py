"""Hostile projects that try to hang, flood, redirect, or take over any program that reads them."""

from __future__ import annotations

import os
import shutil
import socket
import stat
from collections.abc import Callable, Iterator
from itertools import product
from pathlib import Path

from support.repositories import fake_repository, make_repository

_HUGE = 200 << 20
_LONG_PATH = 5_000
# Each makes git, or a tool beside it, run what it names; see git-config(1).
_COMMAND_KEYS = """
    core.fsmonitor core.hooksPath core.sshCommand core.gitProxy core.askPass core.editor
    core.pager core.alternateRefsCommand pager.status pager.log sequence.editor diff.external
    diff.e.textconv diff.e.command difftool.e.cmd difftool.e.path mergetool.e.cmd mergetool.e.path
    merge.e.driver filter.e.clean filter.e.smudge filter.e.process gpg.program gpg.ssh.program
    gpg.openpgp.program gpg.x509.program gpg.ssh.defaultKeyCommand credential.helper
    credential.e.helper alias.status alias.rev-parse remote.origin.uploadpack
    remote.origin.receivepack remote.origin.url remote.origin.pushurl remote.origin.vcs
    uploadpack.packObjectsHook submodule.e.update interactive.diffFilter browser.e.cmd
    browser.e.path man.e.cmd man.e.path instaweb.httpd sendemail.smtpServer sendemail.sendmailCmd
    sendemail.toCmd sendemail.ccCmd sendemail.headerCmd guitool.e.cmd trailer.e.command
    trailer.e.cmd tar.gz.command gc.recentObjectsHook hook.e.command imap.tunnel
    init.templateDir"""
_HOOKS = """
    applypatch-msg pre-applypatch post-applypatch pre-commit pre-merge-commit
    prepare-commit-msg commit-msg post-commit pre-rebase post-checkout post-merge pre-push
    pre-receive update proc-receive post-receive post-update reference-transaction push-to-checkout
    pre-auto-gc post-rewrite sendemail-validate fsmonitor-watchman post-index-change"""
_READ_IN_GIT = (
    "HEAD", "config", "index", "packed-refs", "commondir", "gitdir", "locked", "refs/heads/main",
    "objects/pack/pack-1.keep", "reftable/tables.list",
)  # fmt: skip
_REDIRECTIONS = {
    "worktree": ("config", "[core]\n\tworktree = {outside}\n"),
    "include": ("config", "[include]\n\tpath = {outside}/secret\n"),
    "include-if": ("config", '[includeIf "gitdir:/"]\n\tpath = {outside}/secret\n'),
    "alternates": ("objects/info/alternates", "{outside}/.git/objects\n"),
    "common": ("commondir", "{outside}/.git\n"),
    "common-above": ("commondir", "../../../../../../../../..\n"),
    "common-nul": ("commondir", "{outside}/.git\0x\n"),
    "back-link": ("gitdir", "{outside}/.git\n"),
    "head-above": ("HEAD", "ref: refs/../../../outside/secret\n"),
    "head-nul": ("HEAD", "ref: refs/heads/a\0b\n"),
    "head-absolute": ("HEAD", "ref: {outside}/secret\n"),
    "head-device": ("HEAD", "ref: /dev/zero\n"),
    "kept-by-nobody": ("objects/pack/pack-1.keep", "fetch-pack 99999999999999999999 on x\n"),
    "regex": ("config", "[" * 100_000),
    "regex-blanks": ("config", " \t" * 100_000 + "[remote"),
}
_GIT_FILES = {
    "away": "gitdir: ../outside/.git\n",
    "absolute": "gitdir: {outside}/.git\n",
    "nowhere": "gitdir: /nowhere\n",
    "itself": "gitdir: .git\n",
    "loop": "gitdir: ../git-file-loop\n",
    "root": "gitdir: /\n",
    "proc": "gitdir: /proc/self/root\n",
    "device": "gitdir: /dev/zero\n",
    "nul": "gitdir: a\0b\n",
    "escape": "gitdir: \x1b[2J\n",
    "long": "gitdir: " + "a/" * 100_000,
    "empty": "",
}
_MANIFESTS = {
    "pyproject.toml": "a." * 32_000 + "b = 1\n",
    "package.json": "[" * 100_000,
    "Cargo.toml": "[" + "a." * 100_000 + "b]\n",
    "deno.json": '{"name":"\\ud800"}',
    "composer.json": '{"name":' + "9" * 100_000 + "}",
    "go.mod": "module \x1b]0;owned\x07\n",
}
_NAMES = (
    "\x1b[2J\x1b[1;1H", "\x1b]0;owned\x07", "a\nb", "a\rb", "a\tb", "\u202egpj.exe", "\u2066a",
    "a\u200bb", "\U000e0041\U000e0042", "a" * 255, "é" * 127, "\u0301" * 100, "-rf", "--help",
    "~", "$(id)", "`id`", "a;b", "%s%n", "[red]a[/red]", "\\u{1b}", " a ", "\ufeffa", "a\x7fb",
    "\x9b2J", "CON", "\u2028", "\udcff\udcfe", "\udced\udca0\udc80", "\udcc0\udcaf",
)  # fmt: skip

_Spoil = Callable[[Path], object]


class HostileProjects:
    """Creates the projects below `parent`. Their links lead outside of it."""

    def __init__(self, top: Path) -> None:
        self.parent = top / "parent"
        self.outside = top / "outside"
        self.fired = top / "fired"
        self.payload = top / "payload"
        self.parent.mkdir()
        make_repository(self.outside)
        (self.outside / "secret").write_text("secret")
        self.payload.write_text(f'#!/bin/sh\necho "$0" >> {self.fired}\n')
        self.payload.chmod(0o755)
        self._make_all()

    def victim_of_git(self) -> Path:
        """A real repository that makes `git status` start a program."""
        place = make_repository(self.parent / "real")
        with (place / ".git" / "config").open("a") as config:
            config.write(f"[core]\n\tfsmonitor = {self.payload}\n")
        return place

    def _make_all(self) -> None:
        for key in _COMMAND_KEYS.split():
            self._with_setting("config", key)
            self._with_setting("config.worktree", key)
        for hook in _HOOKS.split():
            self._with_file(f"hook-{hook}", f"hooks/{hook}", self._runs_payload)
        for (kind, spoil), file in product(self._spoils(), _READ_IN_GIT):
            self._with_file(f"{kind}-as-{file.replace('/', '-')}", file, spoil)
        for kind, spoil in self._spoils():
            self._spoiled(f"{kind}-as-git", (".git",), spoil)
            self._spoiled(f"{kind}-as-jj", (".jj", "repo"), spoil)
            self._spoiled(f"{kind}-as-hg", (".hg", "requires"), spoil)
            for manifest in ("package.json", "pyproject.toml"):
                self._spoiled(f"{kind}-as-{manifest}", (manifest,), spoil)
        for name, (file, text) in _REDIRECTIONS.items():
            self._with_file(f"redirected-{name}", file, self._says(text))
        for name, text in _GIT_FILES.items():
            self._spoiled(f"git-file-{name}", (".git",), self._says(text))
        for manifest, text in _MANIFESTS.items():
            self._spoiled(f"manifest-{manifest}", (manifest,), self._says(text))
        for name in _NAMES:
            fake_repository(self.parent / name)
        self._make_deep()

    def _repository(self, name: str) -> Path:
        place = fake_repository(self.parent / name)
        (place / ".git" / "HEAD").write_text("ref: refs/heads/main\n")
        return place / ".git"

    def _with_setting(self, file: str, key: str) -> None:
        git = self._repository(f"{file}-{key}")
        *section, name = key.split(".")
        head = section[0] if len(section) == 1 else f'{section[0]} "{section[1]}"'
        value = f"!{self.payload}" if section[0] == "alias" else f"{self.payload}"
        setting = f"[{head}]\n\t{name} = {value}\n"
        extension = "[extensions]\n\tworktreeConfig = true\n[protocol.ext]\n\tallow = always\n"
        (git / "config").write_text(extension)
        with (git / file).open("a") as config:
            config.write(setting)
        (git.parent / ".gitattributes").write_text("* filter=e diff=e merge=e\n")

    def _with_file(self, name: str, file: str, spoil: _Spoil) -> None:
        place = self._repository(name) / file
        place.parent.mkdir(parents=True, exist_ok=True)
        place.unlink(missing_ok=True)
        spoil(place)

    def _spoiled(self, name: str, file: tuple[str, ...], spoil: _Spoil) -> None:
        place = self.parent.joinpath(name, *file)
        place.parent.mkdir(parents=True)
        spoil(place)

    def _spoils(self) -> Iterator[tuple[str, _Spoil]]:
        yield "fifo", os.mkfifo
        yield "socket", _make_socket
        yield "link-to-zero", lambda place: place.symlink_to("/dev/zero")
        yield "link-to-itself", lambda place: place.symlink_to(place.name)
        yield "link-to-secret", lambda place: place.symlink_to(self.outside / "secret")
        yield "link-to-folder", lambda place: place.symlink_to(self.outside / ".git")
        yield "folder", lambda place: place.mkdir()
        yield "huge", _make_huge
        yield "binary", lambda place: place.write_bytes(bytes(range(256)) * 64)
        yield "unreadable", _make_unreadable
        if os.geteuid() == 0:
            yield "device", lambda place: os.mknod(place, stat.S_IFCHR | 0o666, os.makedev(1, 5))

    def _says(self, text: str) -> _Spoil:
        whole = text.replace("{outside}", os.fspath(self.outside))
        return lambda place: place.write_text(whole)

    def _runs_payload(self, place: Path) -> None:
        shutil.copy(self.payload, place)

    def _make_deep(self) -> None:
        """A path longer than any call takes: it can only be made step by step."""
        fd = os.open(self.parent, os.O_RDONLY | os.O_DIRECTORY)
        for _ in range(_LONG_PATH // 250):
            os.mkdir(b"d" * 249, dir_fd=fd)
            below = os.open(b"d" * 249, os.O_RDONLY | os.O_DIRECTORY, dir_fd=fd)
            os.close(fd)
            fd = below
        os.mkdir(b".git", dir_fd=fd)
        os.close(fd)


def _make_socket(place: Path) -> None:
    # By name alone: the whole path is too long for an address.
    here = os.open(".", os.O_RDONLY)
    os.chdir(place.parent)
    try:
        with socket.socket(socket.AF_UNIX) as server:
            server.bind(place.name)
    finally:
        os.fchdir(here)
        os.close(here)


def _make_huge(place: Path) -> None:
    with place.open("wb") as file:
        file.truncate(_HUGE)


def _make_unreadable(place: Path) -> None:
    place.touch()
    place.chmod(0)


def snapshot(top: Path) -> dict[bytes, tuple[int, ...]]:
    """Return everything that would change if a program wrote anything below `top`."""
    found: dict[bytes, tuple[int, ...]] = {}
    for folder, _, names, fd in os.fwalk(os.fsencode(top)):
        for name in (b".", *names):
            look = os.stat(name, dir_fd=fd, follow_symlinks=False)
            found[folder + b"/" + name] = (
                look.st_ino, look.st_mode, look.st_size, look.st_mtime_ns, look.st_ctime_ns,
            )  # fmt: skip
    return found
