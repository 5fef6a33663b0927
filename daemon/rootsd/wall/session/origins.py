"""Find the origins of roots, and remember which of them a program could not have written.

Git is asked outside, so `insteadOf`, `includeIf`, and `core.sshCommand` of the person's own
settings count. What the repository itself says is a *claim*: whoever could write its settings
chose it. A claim is known if it stood there before any program behind a wall could write.
`OriginRecord` keeps the known ones for each folder that programs ever saw. Any other claim needs a
person: a program can make a repository in its root, or add a remote that rootsd carries over.

Source: `alias_all_urls` in git's remote.c.
"""

from __future__ import annotations

import fcntl
import os
import socket
import stat
import time
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from typing import NamedTuple

from rootsd.core.access import Access
from rootsd.core.labels import safe_label
from rootsd.core.mount_plan import ConfinedRoot
from rootsd.core.paths import bytes_of, contains
from rootsd.core.record import BadRecord, Text, from_line
from rootsd.wall.git.shared_folder import shared_git_folder
from rootsd.wall.git.state_files import read_record, replace_record
from rootsd.wall.git.system_git import GitSetting, settings_in
from rootsd.wall.kernel.root_news import ANSWER, NewsKind, SeenRoot, SeenRoots
from rootsd.wall.outside_program import ProgramOutput
from rootsd.wall.session.git_requests import (
    HttpsPlace,
    SshRequest,
    https_place,
    ssh_request,
)
from rootsd.wall.session.written_folders import WrittenFolders

_TIMEOUT_S = 2.0
_CHUNK = 1 << 16
_MAX_AT_ONCE = 32
_HELPERS = rb"^(credential\..*|core\.askpass)$"
_HOW = (b"--show-scope", b"--show-origin", b"-z")
_MAX_SETTINGS_BYTES = 1 << 20
_KEYS = rb"^(remote\.origin\.(url|pushurl)|core\.sshcommand|url\..*\.(insteadof|pushinsteadof))$"
_OF_REPOSITORY = (b"local", b"worktree")
_OTHER_REPOSITORY = (
    b"GIT_CONFIG", b"GIT_COMMON_DIR", b"GIT_DIR", b"GIT_WORK_TREE", b"GIT_INDEX_FILE",
    b"GIT_OBJECT_DIRECTORY", b"GIT_NAMESPACE", b"GIT_PREFIX",
)  # fmt: skip


class Claim(NamedTuple):
    """What the settings of a repository say about its origin."""

    urls: tuple[Text, ...] = ()
    push_urls: tuple[Text, ...] = ()
    ssh_command: Text = b""


class Origin(NamedTuple):
    """Where a repository fetches from and pushes to, and the person's command for ssh.

    `is_known` says that no program can have chosen it, or that a person has confirmed it.
    """

    claim: Claim
    fetch: bytes
    push: tuple[bytes, ...]
    ssh_command: bytes
    is_known: bool = False

    def rights(self, access: Access) -> list[SshRequest | HttpsPlace]:
        """Return what git may ask for in a root with this access. A password can always push."""
        found = [ssh_request(self.fetch, b"git-upload-pack")]
        if access is Access.READ_WRITE:
            found += [ssh_request(url, b"git-receive-pack") for url in self.push]
            found += [https_place(url) for url in (self.fetch, *self.push)]
        return [each for each in found if each is not None]

    def words(self) -> list[bytes]:
        """Return everything that this may run or reach, for people."""
        found = dict.fromkeys((self.fetch, *self.push, self.claim.ssh_command))
        return [each for each in found if each]


class KnownOrigins(NamedTuple):
    """The claims that are known, by each folder that programs could ever write."""

    claims: Mapping[bytes, tuple[Claim, ...]]


def runs_what_programs_wrote(written: WrittenFolders, environment: Mapping[bytes, bytes]) -> bool:
    """Return whether git would take a helper for passwords from a `written` folder."""
    output = ProgramOutput(
        (b"git", b"config", *_HOW, b"--get-regexp", _HELPERS), environment, _MAX_SETTINGS_BYTES
    )
    settings = _parsed(output.read(time.monotonic() + _TIMEOUT_S))
    return settings is None or any(
        written.hold(each.file)
        or written.are_named_in(each.value)
        or any(map(written.hold, _helper_places(each.value, environment)))
        for each in settings
    )


def _helper_places(helper: bytes, environment: Mapping[bytes, bytes]) -> Iterator[bytes]:
    """Yield where git would look for a helper: a command after `!`, or a part of a name."""
    name = helper.partition(b" ")[0]
    name = name[1:] if name.startswith(b"!") else b"git-credential-" + name
    for folder in environment.get(b"PATH", b"").split(b":"):
        yield folder + b"/" + name


class OriginRecord:
    """The known claims, in a file that all walls of the user share."""

    def __init__(self, file: bytes) -> None:
        self._file = file

    def written(self, folders: Iterable[bytes]) -> WrittenFolders:
        """Return what programs could ever write, with some `folders` that they may write now."""
        with self._locked() as claims:
            return WrittenFolders({*claims, *folders})

    def find(
        self,
        roots: Collection[SeenRoot],
        environment: Mapping[bytes, bytes],
        written: Iterable[bytes] = (),
    ) -> dict[SeenRoot, Origin]:
        """Ask git for the origins of roots, and look which are known.

        `written` are other folders that programs may write.
        """
        outside = self.written({*written, *(root.path for root in roots)})
        found = find_origins(roots, environment, outside)
        with self._locked() as claims:
            return {
                root: origin._replace(is_known=_is_known(claims, root, origin.claim))
                for root, origin in found.items()
            }

    def remember(
        self,
        roots: Iterable[SeenRoot],
        found: Mapping[SeenRoot, Origin],
        written: Iterable[bytes] = (),
    ) -> None:
        """Remember that programs may write these roots, and those origins that are known.

        `written` are other folders that they may write. Call it before programs see the roots.
        """
        with self._locked() as before:
            after = dict.fromkeys(written, ()) | before
            for root in roots:
                for folder in {root.path, git_directory(root) or root.path}:
                    after.setdefault(folder, ())
                    if root in found and found[root].is_known:
                        after[folder] = (*dict.fromkeys((*after[folder], found[root].claim)),)
            if after != before:
                replace_record(self._file, KnownOrigins(after))

    @contextmanager
    def _locked(self) -> Iterator[dict[bytes, tuple[Claim, ...]]]:
        lock = os.open(self._file + b".lock", os.O_CREAT | os.O_RDWR | os.O_CLOEXEC, 0o600)
        try:
            fcntl.flock(lock, fcntl.LOCK_EX)
            record = read_record(KnownOrigins, self._file)
            yield dict(record.claims) if record else {}
        finally:
            os.close(lock)


class GrantedRequest(NamedTuple):
    """What a request asks for, and the root that gives the right to it."""

    root: SeenRoot
    origin: Origin
    right: SshRequest | HttpsPlace


class OriginsInView:
    """The origins of the roots that programs see. The warden tells these over `news`.

    `record` is the file with the known claims. Programs may write the `writable` folders, too.
    """

    def __init__(self, news: socket.socket, record: bytes, writable: frozenset[bytes]) -> None:
        self.news = news
        self._record = OriginRecord(record)
        self._writable = writable
        self._lines = bytearray()
        self._shown: frozenset[SeenRoot] = frozenset()
        self._origins: dict[SeenRoot, Origin] = {}

    def take_news(self) -> None:
        """Take what the warden tells, which must be readable."""
        data = b""
        try:
            data = self.news.recv(_CHUNK)
            *lines, self._lines = (self._lines + data).split(b"\n")
            for line in lines:
                news = from_line(SeenRoots, bytes(line))
                if news.kind is NewsKind.SHOWN:
                    self._shown = frozenset(news.roots)
                else:
                    self._look(news.roots)
                    self.news.send(ANSWER)
        except (OSError, BadRecord):
            data = b""
        if not data:
            self.news.close()
            self._shown = frozenset()

    def _look(self, roots: tuple[SeenRoot, ...]) -> None:
        """Find the origins of roots that programs do not see yet."""
        found = self._record.find(roots, os.environb, self._writable)
        self._record.remember(roots, found, self._writable)
        kept = self._shown.difference(roots) & self._origins.keys()
        self._origins = {root: self._origins[root] for root in kept} | found

    def grant(self, words: tuple[bytes, ...]) -> GrantedRequest | None:
        """Return what gives the right to exactly this request, or None."""
        found = [
            GrantedRequest(root, self._origins[root], right)
            for root in sorted(self._shown & self._origins.keys())
            for right in self._origins[root].rights(root.access)
            if right.is_asked_by(words)
        ]
        return min(found, key=lambda each: not each.origin.is_known, default=None)

    def accept(self, grant: GrantedRequest) -> None:
        """Remember that a person has confirmed an origin."""
        accepted = grant.origin._replace(is_known=True)
        self._record.remember((grant.root,), {grant.root: accepted})
        if self._origins.get(grant.root) == grant.origin:  # and not another one by now
            self._origins[grant.root] = accepted

    def written(self) -> WrittenFolders:
        """Return what programs could ever write."""
        return self._record.written(self._writable)


def describe_origins(roots: Iterable[ConfinedRoot], record: bytes) -> Iterator[str]:
    """Yield a sentence about each origin that programs reach in these roots."""
    for root, origin in OriginRecord(record).find(_seen(roots), os.environb).items():
        asks = "" if origin.is_known else ", after a question: a program may have set this"
        where = ", ".join(safe_label(each, None) for each in origin.words())
        if origin.rights(root.access):
            yield f"git in {safe_label(root.path, None)} reaches {where}{asks}"


def _seen(roots: Iterable[ConfinedRoot]) -> list[SeenRoot]:
    return [
        SeenRoot(root.path, root.access, shared_git_folder(root.path) if root.shared_git else None)
        for root in roots
    ]


def find_origins(
    roots: Iterable[SeenRoot], environment: Mapping[bytes, bytes], written: WrittenFolders
) -> dict[SeenRoot, Origin]:
    """Ask git for the origin of each root that is a repository. All others are left out.

    Settings of the person that lie in a `written` folder do not count.
    """
    clean = outside_environment(environment, written)
    folders = {root: folder for root in roots if (folder := git_directory(root)) is not None}
    answers: dict[bytes, list[GitSetting] | None] = {}
    waiting = sorted({*folders.values()})
    while waiting:
        batch, waiting = waiting[:_MAX_AT_ONCE], waiting[_MAX_AT_ONCE:]
        asked = {folder: _ask(folder, clean) for folder in batch}
        end = time.monotonic() + _TIMEOUT_S
        answers |= {folder: _parsed(git.read(end)) for folder, git in asked.items()}
    return {
        root: _origin_of(answers[folder], environment, written)
        for root, folder in folders.items()
        if answers[folder] is not None
    }


def outside_environment(
    environment: Mapping[bytes, bytes], written: WrittenFolders
) -> dict[bytes, bytes]:
    """Return the environment without what programs wrote, or leads git to another repository."""
    trusted = written.environment(environment)
    return {name: text for name, text in trusted.items() if name not in _OTHER_REPOSITORY}


def git_directory(root: SeenRoot) -> bytes | None:
    """Return the git directory whose settings hold for a root, or None."""
    own = root.path + b"/.git"
    for folder in (root.git, own, root.path):
        if folder is None or (folder == own and os.path.islink(own)):
            continue
        with suppress(OSError):
            found = os.lstat(folder + b"/config")
            if stat.S_ISREG(found.st_mode) and found.st_size <= _MAX_SETTINGS_BYTES:
                return folder
    return None


def _ask(folder: bytes, environment: Mapping[bytes, bytes]) -> ProgramOutput:
    words = (b"git", b"--git-dir=" + folder, b"config", *_HOW, b"--get-regexp", _KEYS)
    return ProgramOutput(words, environment, _MAX_SETTINGS_BYTES)


def _parsed(output: bytes | None) -> list[GitSetting] | None:
    """Return the settings that git has printed, or None if it did not answer in time."""
    return None if output is None else [*settings_in(output, fields=3)]


def _origin_of(
    settings: Sequence[GitSetting] | None,
    environment: Mapping[bytes, bytes],
    written: WrittenFolders,
) -> Origin:
    own: dict[str, list[bytes]] = {}
    person: dict[str, list[bytes]] = {}
    for each in settings or ():
        if each.scope in _OF_REPOSITORY:
            own.setdefault(each.key, []).append(each.value)
        elif not written.hold(each.file):
            person.setdefault(each.key, []).append(each.value)
    claim = Claim(
        tuple(own.get("remote.origin.url", ())),
        tuple(own.get("remote.origin.pushurl", ())),
        own.get("core.sshcommand", [b""])[-1],
    )
    instead = _replacements(person, ".insteadof")
    for_push = _replacements(person, ".pushinsteadof")
    if claim.push_urls:
        push = [_replaced(url, instead) or url for url in claim.push_urls]
    else:
        push = [_replaced(url, for_push) or _replaced(url, instead) or url for url in claim.urls]
    fetch = next((_replaced(url, instead) or url for url in claim.urls), b"")
    ssh = environment.get(b"GIT_SSH_COMMAND") or claim.ssh_command
    return Origin(claim, fetch, tuple(push), ssh or person.get("core.sshcommand", [b""])[-1])


def _replacements(settings: Mapping[str, list[bytes]], ending: str) -> dict[bytes, bytes]:
    return {
        start: bytes_of(key[len("url.") : -len(ending)])
        for key, starts in settings.items()
        if key.startswith("url.") and key.endswith(ending)
        for start in starts
    }


def _replaced(url: bytes, replacements: Mapping[bytes, bytes]) -> bytes | None:
    """Return `url` with the longest start that is to be replaced, or None if there is none."""
    starts = [start for start in replacements if url.startswith(start)]
    if not starts:
        return None
    longest = max(starts, key=len)
    return replacements[longest] + url[len(longest) :]


def _is_known(known: Mapping[bytes, tuple[Claim, ...]], root: SeenRoot, claim: Claim) -> bool:
    """Return whether no program can have written the claim, or a person has confirmed it."""
    folder = git_directory(root) or root.path
    writable = [each for each in known if contains(each, folder)]
    return not writable or any(claim in known[each] for each in writable)
