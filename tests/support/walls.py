"""A wall for tests: a warden that takes orders, and a program inside that runs lines of Python.

Most of what a wall costs is to load Python and our modules. So the process that builds it is a
fork of `support.preloaded`, which has loaded this module alone. It sends the warden's channel, and
starts the interpreter inside.
"""

from __future__ import annotations

import errno
import os
import socket
import subprocess
import sys
from ast import literal_eval
from collections.abc import Iterable, Mapping
from contextlib import suppress
from enum import Enum
from pathlib import Path
from types import MappingProxyType, TracebackType
from typing import Any, Self

from rootsd.core import mount_plan
from rootsd.core.access import Access
from rootsd.core.mount_plan import ConfinedRoot, Mask, ViewEntry, ViewEntryKind
from rootsd.core.record import from_json, to_json, to_line
from rootsd.core.wall import ProtectionPolicy, RevokePolicy, WallEngine
from rootsd.wall.git import carried_settings, protected
from rootsd.wall.git.name_watch import WallWatch
from rootsd.wall.kernel import (
    base_view,
    covers,
    holders,
    mounted_view,
    own_storage,
    pause,
    points,
    private_settings,
    root_folder,
    skeleton,
    stand_ins,
    tree,
    worktrees,
)
from rootsd.wall.kernel.engine import Engine, NamespaceEngine, StaticEngine
from rootsd.wall.kernel.orders import (
    ChangeNews,
    OrderKind,
    WardenOrder,
    WardenReport,
    decode_news,
)
from rootsd.wall.kernel.supervision import CellOptions, Layer, Network, exit_status
from rootsd.wall.kernel.warden import WardenSettings, WardenStart
from rootsd.wall.session import worktree_front
from rootsd.wall.session.worktree_front import GitFront, git_entries
from rootsd.wall.system_calls import close_from
from rootsd.wall.view import default_view, denied_base
from rootsd.wall.view import person_view as person
from rootsd.wall.view.default_view import base_entries
from rootsd.wall.view.person_view import _Finder, person_view
from support.polling import until
from support.preloaded import Process

_CHANNEL = 3
# The engine loads these only once it needs them, which is in each wall.
_ENGINE = ("cell", "disk_room", "root_news", "seccomp", "static_cell", "warden_loop")
_LOADS = f"""
sys.path[:] = {sys.path!r}
for each in ("support.walls", *map("rootsd.wall.kernel.".__add__, {_ENGINE!r})):
    import_module(each)
"""


def make_root(path: Path, access: Access = Access.READ_WRITE) -> ConfinedRoot:
    """Make a folder with a file, which is a root."""
    path.mkdir(parents=True, exist_ok=True)
    (path / "file").write_text("text")
    return root_at(path, access)


def root_at(
    path: Path, access: Access = Access.READ_WRITE, denied: Iterable[Path] = ()
) -> ConfinedRoot:
    """Return the folder at a path as a root."""
    return ConfinedRoot(bytes(path), access, denied=frozenset(map(bytes, denied)))


class Weakness(Enum):
    """A part of the engine that a control goes without."""

    NO_WATCH = "no watch of names"
    KILL_ONCE = "holders are killed once"
    FOLLOW_LINKS = "the warden follows links"
    NO_HOLD = "folders above covers are not held"
    NO_REPAIR = "a lost cover is not found"
    TOKENS_SHOWN = "token files in the base are not hidden"
    ANY_PATH = "what settings name is shown, even secrets"
    NO_POINT = "the point of a hidden root stays"
    EVERY_MOUNT = "each root has a mount of its own"
    CLOSED_WORKTREES = "the entry of each worktree is protected"
    BUSY_POINT = "the point of a hidden root cannot be removed"
    BASE_SHOWN = "denied folders in the base are not masked"
    BASE_COVERED = "a denied folder in the base is covered in place"
    FILES_ONLY = "of what holds a folder, only open files are found"
    FIRST_THREAD = "only the first thread of a holder is looked at"
    LATE_WATCH = "names are watched once a file `late` in the root is gone"
    NO_SEARCH = "worktrees of deeper repositories are not searched"
    NO_CLEARING = "what an earlier program left is in the way of mounts"
    NO_OVERLAY = "the kernel has no overlays"
    CARRY_ALL = "each changed setting of git is carried over"
    NO_GIT = "there is no git that only root can change"
    NO_PLACEHOLDERS = "hidden worktrees have no placeholder"


# Runs each line of standard input, a literal, and prints what came of it as another.
INTERPRETER = r"""
import ctypes, errno, fcntl, os, stat, struct, sys
SPACE = globals()
libc = ctypes.CDLL(None, use_errno=True)

# Modules that few lines need: to load them takes as long as all else of the start. A line that has
# the word gets the module before it runs, so nothing that it does can keep the module away.
LATE = {name: name for name in ("json", "signal", "socket", "subprocess")}
LATE |= {"connect": "socket", "take": "socket"}

def call(number, *arguments):
    # A system call that is refused, or does not exist, is an OSError; any other error reached it.
    ctypes.set_errno(0)
    result = libc.syscall(ctypes.c_long(number), *arguments)
    error = ctypes.get_errno()
    if result < 0 and error in (errno.EPERM, errno.EACCES, errno.ENOSYS):
        raise OSError(error, os.strerror(error))
    return result

def checked(result):
    if result < 0:
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))
    return result

def read(path):
    with open(path, "rb") as file:
        return file.read()

def content(path):
    # An empty file over a secret is a refusal, too.
    if not read(path):
        raise OSError(errno.ENODATA, "")

def append(path):
    os.close(os.open(path, os.O_WRONLY | os.O_APPEND))

def append_file(path):
    # The file itself, and no copy to which a link leads.
    os.close(os.open(path, os.O_WRONLY | os.O_APPEND | os.O_NOFOLLOW))

def make(path):
    os.close(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL))
    os.unlink(path)

def there_and_back(path, other):
    os.rename(path, other)
    os.rename(other, path)

def connect(family, address):
    with socket.socket(family) as channel:
        channel.settimeout(10)
        channel.connect(address)

def in_child(action):
    # Run it in a child, because it changes the namespaces; its OSError is ours.
    child = os.fork()
    if child == 0:
        try:
            action()
            os._exit(0)
        except OSError as error:
            os._exit(error.errno or 255)
        except BaseException:
            os._exit(254)
    status = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    if status:
        raise OSError(status, os.strerror(status))

def reached(result, *fine):
    # A call that got past the checks may still fail, because its arguments lead nowhere.
    if result < 0 and ctypes.get_errno() not in fine:
        raise OSError(ctypes.get_errno(), "")

def memory(call, pid):
    local, far = ctypes.create_string_buffer(8), (ctypes.c_void_p * 2)(4096, 8)
    near = (ctypes.c_void_p * 2)(ctypes.addressof(local), 8)
    one, none = ctypes.c_ulong(1), ctypes.c_ulong(0)
    reached(call(pid, near, one, far, one, none), errno.EFAULT)

def exchange(path, other):
    for _ in range(2):
        checked(libc.renameat2(-100, os.fsencode(path), -100, os.fsencode(other), 2))

def names(path, word):
    if os.fsencode(word) not in read(path):
        raise OSError(errno.ENODATA, "")

def watch(path):
    fd = checked(libc.inotify_init1(0))
    try:
        checked(libc.inotify_add_watch(fd, os.fsencode(path), 0x100))
    finally:
        os.close(fd)

def take(path):
    # Receive a descriptor from a program outside.
    with socket.socket(socket.AF_UNIX) as channel:
        channel.connect(path)
        return socket.recv_fds(channel, 1, 1)[1][0]

def nested(action, namespaces=0):
    # Run it in a user and a mount namespace of its own, with all capabilities there.
    in_child(lambda: (checked(libc.unshare(0x10020000 | namespaces)), action()))

def mount(source, target, kind, flags, data=None):
    encoded = [None if each is None else os.fsencode(each) for each in (source, target, kind)]
    checked(libc.mount(*encoded, ctypes.c_ulong(flags), data and os.fsencode(data)))

def is_mounted(path):
    lines = read("/proc/self/mountinfo").splitlines()
    return any(line.split(b" ")[4] == os.fsencode(path) for line in lines)

def unmount(path):
    # What is mounted by the same namespace can be unmounted; so outside, mount it first.
    if not is_mounted(path):
        mount(path, path, None, 0x1000)
    checked(libc.umount2(os.fsencode(path), 2 | 8))  # a link is not followed

def remount_writable(path):
    if not is_mounted(path):
        mount(path, path, None, 0x1000)
    mount(None, path, None, 0x1020)

def cut_off(path, depth=0):
    # Make mounts private with mount_setattr, for which Landlock has no hook.
    private = struct.pack("=QQQQ", 0, 0, 1 << 18, 0)
    checked(libc.syscall(442, -100, os.fsencode(path), depth, private, ctypes.c_size_t(32)))

def new_mount(kind):
    # Return a detached mount of a new file system.
    context = checked(libc.syscall(430, kind.encode(), 0))
    checked(libc.syscall(431, context, 6, None, None, 0))
    return checked(libc.syscall(432, context, 0, 0))

def terminal_call(number):
    # An ioctl on the controlling terminal of a new session.
    def action():
        master, slave = os.openpty()
        os.setsid()
        fcntl.ioctl(slave, 0x540E, 0)
        if libc.ioctl(slave, ctypes.c_ulong(number), None) < 0:
            if ctypes.get_errno() == errno.EPERM:
                raise OSError(errno.EPERM, "")
    in_child(action)

print({"ready": os.getpid()}, flush=True)
for line in sys.stdin:
    SPACE |= {name: __import__(name) for word, name in LATE.items() if word in line}
    try:
        SPACE["result"] = None
        exec(eval(line), SPACE)
        result = SPACE["result"]
        answer = {"result": result if isinstance(result, (str, int, list)) else None}
    except OSError as error:
        answer = {"error": errno.errorcode.get(error.errno, str(error))}
    except BaseException as error:
        answer = {"failure": repr(error)}
    print(ascii(answer), flush=True)
"""


class Refused(Exception):
    """The line ended with an OSError. `name` is the name of its number."""

    def __init__(self, name: str) -> None:
        super().__init__(name)
        self.name = name


class Interpreter:
    """A process that runs lines of Python, outside the wall."""

    process: subprocess.Popen[str] | Front

    def __init__(self, folder: Path, env: Mapping[str, str] | None = None) -> None:
        self._use(
            subprocess.Popen(
                [sys.executable, "-SP", "-c", INTERPRETER],
                stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, cwd=folder, env=env,
            )
        )  # fmt: skip

    def _use(self, process: subprocess.Popen[str] | Front) -> None:
        self.process = process
        first = self._read()
        assert "ready" in first, first

    def run(self, line: str) -> Any:  # noqa: ANN401 - whatever the line leaves in `result`
        """Run a line, and return its `result`. Raises Refused."""
        assert self.process.stdin is not None
        self.process.stdin.write(f"{line!a}\n")
        self.process.stdin.flush()
        answer = self._read()
        if "error" in answer:
            raise Refused(answer["error"])
        assert "failure" not in answer, (line, answer["failure"])
        return answer["result"]

    def error_of(self, line: str) -> str:
        """Run a line, and return the name of its error, or the empty string."""
        try:
            self.run(line)
        except Refused as refused:
            return refused.name
        return ""

    def _read(self) -> dict[str, Any]:
        assert self.process.stdout is not None
        line = self.process.stdout.readline()
        assert line, "the interpreter has ended"
        answer: dict[str, Any] = literal_eval(line)
        return answer

    def close(self) -> None:
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        with suppress(BrokenPipeError):
            self.process.stdin.close()
        self.process.stdout.close()
        self.process.kill()
        self.process.wait()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()


class Front(Process):
    """The first process of a wall."""

    def __init__(self, spec: Mapping[str, Any], channel: socket.socket) -> None:
        text = (
            "import socket, sys; from support import walls;"
            f" sys.exit(walls.build({dict(spec)!r}, socket.socket(fileno={_CHANNEL})))"
        )
        (inside, to), (out, output) = os.pipe(), os.pipe()
        descriptors = {0: inside, 1: output, 2: 2, _CHANNEL: channel.fileno()}
        environment = {**os.environ, "HOME": spec["home"], "PYTHONPATH": os.pathsep.join(sys.path)}
        super().__init__([], environment, descriptors, _LOADS, text=text, within=spec["home"])
        os.close(inside)
        os.close(output)
        self.stdin, self.stdout = os.fdopen(to, "w"), os.fdopen(out)


class Wall(Interpreter):
    """A running wall with an interpreter inside. `order` changes its roots."""

    def __init__(  # noqa: PLR0913 - one for each part of a wall
        self,
        folder: Path,
        home: Path,
        roots: Iterable[ConfinedRoot] = (),
        *,
        without: Iterable[Layer] = (),
        network: Network = Network.SHARED,
        protection: ProtectionPolicy = ProtectionPolicy.UNTRACKED,
        on_revoke: RevokePolicy = RevokePolicy.TELL,
        engine: WallEngine = WallEngine.NAMESPACES,
        landlock: int | None = None,
        denied: Iterable[Path] = (),
        entries: Iterable[ViewEntry] = (),
        weaknesses: Iterable[Weakness] = (),
        variables: Mapping[str, str] = MappingProxyType({}),
        kept: Path | None = None,
        has_new_worktrees: bool = False,
    ) -> None:
        self._number = 0
        spec = {
            "kept": "" if kept is None else str(kept),
            "folder": str(folder), "home": str(home), "roots": [to_json(r) for r in roots],
            "without": [layer.value for layer in without], "network": network.value,
            "protection": protection.value, "on_revoke": on_revoke.value,
            "engine": engine.value, "landlock": landlock,
            "denied": [str(path) for path in denied],
            "entries": [(os.fsdecode(e.path), e.kind.value, e.reason) for e in entries],
            "weaknesses": [weakness.value for weakness in weaknesses],
            "variables": dict(variables),
            "has_new_worktrees": has_new_worktrees,
        }  # fmt: skip
        ours, theirs = socket.socketpair()
        with ours, theirs:
            self._use(Front(spec, theirs))
            theirs.close()
            message, fds, _, _ = socket.recv_fds(ours, 64, 1)
        self.warden_pid = int(message)
        self._channel = socket.socket(fileno=fds[0])
        self._channel.setblocking(True)
        self._reports = self._channel.makefile("rb")

    def order(
        self,
        kind: OrderKind,
        *roots: ConfinedRoot,
        paths: Iterable[Path] = (),
        denied: Iterable[Path] | None = None,
    ) -> WardenReport:
        """Give the warden an order, and return its report."""
        self._number += 1
        removed = tuple(os.fsencode(path) for path in paths)
        closed = None if denied is None else frozenset(map(os.fsencode, denied))
        order = WardenOrder(self._number, kind, roots, removed, closed)
        self._channel.sendall(to_line(order))
        while (report := self.next_report()).number != self._number:
            pass
        return report

    def next_report(self) -> WardenReport:
        """Return the next report, after an order or a change that the warden made by itself."""
        while not isinstance(report := decode_news(self._reports.readline()), WardenReport):
            pass
        return report

    def next_changes(self) -> tuple[str, ...]:
        """Return the names of changed files that the warden tells next."""
        while not isinstance(news := decode_news(self._reports.readline()), ChangeNews):
            pass
        return news.names

    def close(self) -> None:
        self._reports.close()
        self._channel.close()
        super().close()


def interpreter_entries() -> list[ViewEntry]:
    """Return the files that the interpreter needs and that the default view may lack."""
    places = {os.path.realpath(place) for place in (sys.prefix, sys.base_prefix)}
    return [
        ViewEntry(os.fsencode(place), ViewEntryKind.READ, "the tests' interpreter")
        for place in sorted(places)
        if place.count("/") > 1
    ]


def _weaken(weakness: Weakness) -> None:
    """Take a part of the engine away, in this process and those that it forks."""
    for owner, name, replacement in _PATCHES[weakness]:
        setattr(owner, name, replacement)


def _remove_busy(_: object) -> None:
    raise OSError(errno.EBUSY, "Device or resource busy")


def _cover_in_place(self: base_view.BaseView, path: bytes, masks: Iterable[Mask]) -> None:
    for mask in masks:
        self._stand_ins.mask(self._base_mounts[path].fd, path, mask, b"")


def _carry_all(versions: carried_settings.Versions) -> carried_settings.Carried:
    keys = carried_settings.differing(versions.equal, versions.inside)
    changes = {key: versions.inside.get(key, ()) for key in keys}
    return carried_settings.Carried(changes, ())


def _watch_late(self: tree.SharedTree, path: bytes) -> None:
    late = path + b"/late"
    if os.path.exists(late):
        os.rename(late, late + b"-now")
        until(lambda: not os.path.exists(late + b"-now"))
    _WATCH(self, path)


_WATCH = tree.SharedTree._watch


def _open_following(path: bytes, flags: int = 0) -> int:
    return os.open(path, os.O_PATH | os.O_CLOEXEC | flags)


def _open_below_following(folder: int, path: bytes, flags: int = 0) -> int:
    return os.open(path, os.O_PATH | os.O_CLOEXEC | flags, dir_fd=folder)


_PATCHES: dict[Weakness, tuple[tuple[object, str, object], ...]] = {
    Weakness.NO_WATCH: ((WallWatch, "add", lambda *_: -1),),
    Weakness.KILL_ONCE: (
        (holders, "_QUIET_LOOKS", 1),
        (holders, "_activity", lambda _: {}),
        (pause.ProgramPause, "stop", lambda *_: None),
    ),
    Weakness.FILES_ONLY: ((mounted_view, "_footholds", lambda _: frozenset()),),
    Weakness.FIRST_THREAD: ((holders, "_threads", lambda pid: [b"/proc/%d/" % pid]),),
    Weakness.FOLLOW_LINKS: (
        *(
            (module, "open_path", _open_following)
            for module in (tree, points, skeleton, stand_ins, base_view, root_folder)
        ),
        *(
            (module, "open_below", _open_below_following)
            for module in (tree, worktrees, base_view, covers)
        ),
    ),
    Weakness.NO_HOLD: ((covers, "hold_above", lambda *_: None),),
    Weakness.NO_REPAIR: (
        (tree.SharedTree, "find_broken", lambda *_: {}),
        (base_view.BaseView, "_broken", lambda _: []),
    ),
    Weakness.TOKENS_SHOWN: ((default_view, "hidden_tokens", lambda _: ()),),
    Weakness.ANY_PATH: (
        (_Finder, "_refusal", lambda *_: None),
        (person, "without_secrets", lambda text: text),
        (person, "has_literal_secret", lambda _: False),
    ),
    Weakness.BASE_SHOWN: ((denied_base.DeniedBase, "masks", lambda *_: ()),),
    Weakness.BASE_COVERED: ((base_view.BaseView, "_replace", _cover_in_place),),
    Weakness.CARRY_ALL: ((private_settings, "carry_over", _carry_all),),
    Weakness.NO_GIT: ((private_settings, "find_git", lambda: None),),
    Weakness.NO_PLACEHOLDERS: ((stand_ins.StandIns, "_add_placeholder", lambda *_: None),),
    Weakness.NO_CLEARING: ((skeleton.Skeleton, "clear_way_below", lambda *_: None),),
    Weakness.NO_OVERLAY: ((own_storage, "_OVERLAY", b"none"),),
    Weakness.LATE_WATCH: ((tree.SharedTree, "_watch", _watch_late),),
    Weakness.NO_SEARCH: ((worktrees, "search_repositories", lambda *_: iter(())),),
    Weakness.NO_POINT: ((points, "_remove", lambda _: None),),
    Weakness.BUSY_POINT: ((points, "_remove", _remove_busy),),
    Weakness.EVERY_MOUNT: ((mount_plan, "_within", lambda *_: b""),),
    Weakness.CLOSED_WORKTREES: ((protected, "_is_open_worktree", lambda *_: False),),
}


def build(spec: Mapping[str, Any], channel: socket.socket) -> int:
    """Build a wall, and run the interpreter inside. Return its exit status."""
    home = os.fsencode(os.path.realpath(spec["home"]))
    for weakness in spec["weaknesses"]:
        _weaken(Weakness(weakness))
    os.makedirs(spec["folder"], exist_ok=True)
    variables = {os.fsencode(name): os.fsencode(text) for name, text in spec["variables"].items()}
    without = frozenset(Layer(name) for name in spec["without"])
    settings = WardenSettings(
        os.fsencode(os.path.realpath(spec["folder"])),
        (
            *person_view(home, os.geteuid(), variables, base_entries(home, os.geteuid())).entries,
            *interpreter_entries(),
            *(
                ViewEntry(os.fsencode(path), ViewEntryKind(kind), reason)
                for path, kind, reason in spec["entries"]
            ),
        ),
        home,
        ProtectionPolicy(spec["protection"]),
        RevokePolicy(spec["on_revoke"]),
        without,
        os.fsencode(spec["kept"]),
        has_new_worktrees=spec["has_new_worktrees"],
    )
    if settings.has_new_worktrees:
        program = os.path.dirname(os.fsencode(worktree_front.__file__))
        shown = ViewEntry(program, ViewEntryKind.READ, "the tests")
        entries = (*settings.entries, shown, *git_entries(GitFront.ASKS, settings.folder))
        settings = settings._replace(entries=entries)
    engine: Engine = NamespaceEngine()
    if WallEngine(spec["engine"]) is WallEngine.STATIC:
        engine = StaticEngine(spec["landlock"])
    roots = tuple(from_json(ConfinedRoot, root) for root in spec["roots"])
    denied = frozenset(map(os.fsencode, spec["denied"]))
    warden = engine.fork_warden().start(WardenStart(settings, roots, denied))
    options = CellOptions(
        Network(spec["network"]),
        without,
        folder=home,
        home=home,
    )
    waiter = os.fork()
    if waiter == 0:
        try:
            engine.enter(warden, options)
            close_from(3)
            os.environ.update(warden.variables)
            os.execv(sys.executable, [sys.executable, "-SP", "-c", INTERPRETER])  # noqa: S606
        finally:
            os._exit(126)
    socket.send_fds(channel, [b"%d" % warden.pid], [warden.channel.fileno()])
    return exit_status(os.waitpid(waiter, 0)[1])
