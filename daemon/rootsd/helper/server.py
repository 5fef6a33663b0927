"""Run the supervisor, the helper, and its workers.

The supervisor (`supervise`) is a process between the daemon and the helper. When a helper dies, it
starts another one, after a delay that grows. The daemon cannot do this itself: it has confined
itself by then, and its children inherit the confinement. The supervisor also keeps the channel
open, so the next helper answers the questions that still wait in it.

The helper (`serve`) is a fork server with one thread. It only forks, waits, and kills. It reads no
file and no question, so nothing that a worker reads can hang it. Some tasks have a caller that
waits; for these, it forks the next worker ahead of the question. When the daemon's end of the
channel closes, the helper kills its workers and exits.

A worker (`work`) answers one question and exits. Before it reads the question, it drops the rights
that it does not need. So a hostile repository that takes over a parser gains little: the worker
can write no file, and its memory and time are limited.
"""

from __future__ import annotations

import gc
import math
import os
import resource
import select
import signal
import socket
import sys
import time
from collections import Counter, deque
from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import suppress
from importlib import import_module
from typing import NoReturn

from msgspec import Struct

from rootsd.helper.protocol import (
    QUESTION_LIMIT,
    TASK_SPECS,
    AnswerStatus,
    HelperEvent,
    HelperProtocolError,
    HelperTask,
    TaskSpec,
    WorkerAccess,
    frame,
    read_to_end,
    receive_header,
    send_header,
)
from rootsd.wall.kernel.landlock import READ, Ruleset
from rootsd.wall.kernel.landlock import version as landlock_version

_DESCRIPTORS = 256


def work(answer: Callable[[bytes], bytes], spec: TaskSpec, orders: socket.socket) -> None:
    """Wait for a header on `orders`, then answer the question that belongs to it.

    Raises OSError if the caller is gone.
    """
    _drop_rights(spec)
    if spec.rehearsal and not select.select([orders], [], [], 0)[0]:
        with suppress(Exception):
            answer(spec.rehearsal)
    with orders:
        header = receive_header(orders)
    if header is None:
        return  # the helper exited
    _, seconds, reply = header
    # If the helper dies first, the kernel still ends this process in time.
    signal.alarm(int(seconds) + 2)
    with reply:
        try:
            sent = frame(AnswerStatus.ANSWERED, answer(read_to_end(reply, QUESTION_LIMIT)))
        except Exception as error:  # noqa: BLE001 - reported to the caller; this process exits
            sent = frame(AnswerStatus.FAILED, type(error).__name__.encode("ascii", "replace"))
        reply.sendall(sent)
        # End the stream now: the exit of this process takes another 1 to 2 ms.
        reply.shutdown(socket.SHUT_WR)


def close_all_but(kept: Collection[int]) -> None:
    """Close every descriptor of this process except `kept`."""
    for name in os.listdir("/dev/fd"):
        if int(name) not in kept:
            try:
                os.close(int(name))
            except OSError:  # the descriptor of the listing itself
                continue


def _drop_rights(spec: TaskSpec) -> None:
    _limit(resource.RLIMIT_CORE, 0)
    _limit(resource.RLIMIT_FSIZE, 0)
    _limit(resource.RLIMIT_NOFILE, _DESCRIPTORS)
    if sys.platform == "linux":  # elsewhere it has no effect, or counts reserved memory
        _limit(resource.RLIMIT_AS, _address_space() + spec.memory)
    if spec.access is WorkerAccess.FILES and landlock_version():
        rules = Ruleset()
        rules.allow(b"/", READ)
        rules.restrict()


def _limit(what: int, value: int) -> None:
    _, hard = resource.getrlimit(what)
    if hard != resource.RLIM_INFINITY:
        value = min(value, hard)
    resource.setrlimit(what, (value, value))


def _address_space() -> int:
    with open("/proc/self/statm", "rb") as file:
        return int(file.read().split()[0]) * resource.getpagesize()


# More than all `max_workers` together, because a worker that waits for a dead disk cannot be
# killed until the disk answers.
_MAX_WORKERS = 32
_MAX_WAITING = 64


class _Request(Struct, frozen=True):
    task: HelperTask
    reply: socket.socket
    seconds: float
    due: float


class _Worker(Struct):
    """A process that waits for its one request on `orders`, or handles it.

    The descriptor `ended` reports a hangup when the process exits.
    """

    pid: int
    task: HelperTask
    ended: int
    orders: socket.socket
    due: float = math.inf
    killed: bool = False


def _load(name: str) -> Callable[[bytes], bytes]:
    module, _, function = name.partition(":")
    loaded: Callable[[bytes], bytes] = getattr(import_module(module), function)
    return loaded


def serve(channel: socket.socket, specs: Mapping[HelperTask, TaskSpec] = TASK_SPECS) -> None:
    """Answer the questions on `channel` until its other end is closed."""
    answers = {task: _load(spec.function) for task, spec in specs.items()}
    gc.freeze()
    gc.disable()  # a collection would copy the pages that the workers share
    _Server(channel, specs, answers).serve()


class _Server:
    def __init__(
        self,
        channel: socket.socket,
        specs: Mapping[HelperTask, TaskSpec],
        answers: Mapping[HelperTask, Callable[[bytes], bytes]],
    ) -> None:
        self._channel = channel
        self._specs = specs
        self._answers = answers
        self._waiting: dict[HelperTask, deque[_Request]] = {task: deque() for task in specs}
        self._preforked: dict[HelperTask, _Worker] = {}
        self._workers: dict[int, _Worker] = {}  # busy workers, by `ended`
        self._poll = select.poll()
        self._poll.register(channel, select.POLLIN)

    def serve(self) -> None:
        try:
            self._prefork()
            while self._serve_once():
                pass
        finally:
            for worker in (*self._workers.values(), *self._preforked.values()):
                os.kill(worker.pid, signal.SIGKILL)
                worker.orders.close()

    def _serve_once(self) -> bool:
        for fd, _ in self._poll.poll(self._milliseconds_left()):
            if fd != self._channel.fileno():
                self._reap(fd)
            elif not self._receive():
                return False
        self._enforce_deadlines()
        for task in self._waiting:
            self._start_waiting(task)
        return True

    def _milliseconds_left(self) -> int | None:
        dues = [worker.due for worker in self._workers.values() if not worker.killed]
        dues += [queue[0].due for queue in self._waiting.values() if queue]
        return max(0, int((min(dues) - time.monotonic()) * 1000) + 1) if dues else None

    def _receive(self) -> bool:
        """Queue the next request. Return False at the end of the channel."""
        try:
            received = receive_header(self._channel)
        except (HelperProtocolError, OSError):
            return False
        if received is None:
            return False
        number, seconds, reply = received
        if number in self._waiting and len(self._waiting[HelperTask(number)]) < _MAX_WAITING:
            request = _Request(HelperTask(number), reply, seconds, time.monotonic() + seconds)
            self._waiting[request.task].append(request)
        else:
            reply.close()
        return True

    def _start_waiting(self, task: HelperTask) -> None:
        queue = self._waiting[task]
        while queue and len(self._workers) < _MAX_WORKERS:
            # A killed worker that the kernel still holds does not count. It must not delay other
            # questions.
            busy = Counter(w.task for w in self._workers.values() if not w.killed)
            if busy[task] >= self._specs[task].max_workers:
                return
            self._start(queue.popleft())

    def _start(self, request: _Request) -> None:
        with request.reply:  # the worker has its own copy
            preforked = self._preforked.pop(request.task, None)
            if preforked is not None and self._assign(preforked, request):
                return
            if (fresh := self._make_worker(request.task)) is not None:
                self._assign(fresh, request)

    def _assign(self, worker: _Worker, request: _Request) -> bool:
        """Hand a request to a worker. Return False if the worker has exited."""
        worker.due = request.due
        self._workers[worker.ended] = worker
        self._poll.register(worker.ended, 0)  # poll(2) always reports POLLHUP
        with worker.orders:
            try:
                left = request.due - time.monotonic()
                send_header(worker.orders, request.task, left, request.reply)
            except OSError:
                return False
        return True

    def _prefork(self) -> None:
        """Fork the workers that have to be ready before their question.

        Call this only at the start and after a question. If a worker that exits by itself were
        replaced at once, a worker that always fails would be forked without end.
        """
        for task, spec in self._specs.items():
            if spec.rehearsal and task not in self._preforked:
                worker = self._make_worker(task)
                if worker is not None:
                    self._preforked[task] = worker

    def _make_worker(self, task: HelperTask) -> _Worker | None:
        ended, lifeline = os.pipe()
        ours, theirs = socket.socketpair()
        with theirs:
            pid = _fork()
            if pid == 0:
                self._run_worker(task, theirs, lifeline)
        os.close(lifeline)
        if pid is None:
            os.close(ended)
            ours.close()
            return None
        return _Worker(pid, task, ended, ours)

    def _run_worker(self, task: HelperTask, orders: socket.socket, lifeline: int) -> None:
        status = 1
        try:
            # This includes the reply sockets of waiting questions. Their callers must see an end
            # of file as soon as the helper closes its own copy.
            close_all_but({0, 1, 2, lifeline, orders.fileno()})
            work(self._answers[task], self._specs[task], orders)
            status = 0
        except OSError:
            status = 2  # the caller is gone
        finally:
            os._exit(status)

    def _reap(self, ended: int) -> None:
        self._poll.unregister(ended)
        os.close(ended)
        os.waitpid(self._workers.pop(ended).pid, 0)
        self._prefork()

    def _enforce_deadlines(self) -> None:
        now = time.monotonic()
        for worker in self._workers.values():
            if worker.due <= now and not worker.killed:
                os.kill(worker.pid, signal.SIGKILL)
                worker.killed = True
        for queue in self._waiting.values():
            late = [request for request in queue if request.due <= now]
            for request in late:
                queue.remove(request)
                request.reply.close()


def _fork() -> int | None:
    try:
        return os.fork()
    except OSError:
        return None


REPLACE_SIGNAL = signal.SIGUSR1
"""The daemon sends this signal to the supervisor when the helper hangs and has to be replaced."""

# Delays before the next helper. If a helper runs for as long as the last one of these, the delays
# start over.
RESTART_DELAYS_S = (0.0, 0.2, 1.0, 5.0, 30.0)


def supervise(
    channel: socket.socket,
    helper: Callable[[socket.socket], None] = serve,
    delays_s: Sequence[float] = RESTART_DELAYS_S,
) -> None:
    """Run `helper` on the channel, in a new process each time, until the daemon closes its end.

    Call this in its own process that has one thread. It reports each start and each loss to
    the daemon as a `HelperEvent`.
    """
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, REPLACE_SIGNAL):
        # A terminal or a service manager sends these to all processes. The daemon decides when to
        # stop.
        signal.signal(number, signal.SIG_IGN)
    lost = 0
    while not _daemon_is_gone(channel, delays_s[min(lost, len(delays_s)) - 1] if lost else 0.0):
        begin = time.monotonic()
        pid = os.fork()
        if not pid:
            _run_helper(helper, channel)
        _send_event(channel, HelperEvent.STARTED)
        if _wait_for_helper(pid):
            return
        _send_event(channel, HelperEvent.LOST)
        lost = 1 if time.monotonic() - begin >= delays_s[-1] else lost + 1


def _wait_for_helper(pid: int) -> bool:
    """Wait until the helper exits; kill it on REPLACE_SIGNAL. Return whether it ended normally."""

    def kill(*_: object) -> None:
        with suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)

    signal.signal(REPLACE_SIGNAL, kill)
    _, status = os.waitpid(pid, 0)
    signal.signal(REPLACE_SIGNAL, signal.SIG_IGN)
    return status == 0


def become_supervisor(channel: socket.socket) -> NoReturn:
    """Run the supervisor in this newly forked process. Never returns."""
    status = 1
    try:
        null = os.open(os.devnull, os.O_RDWR)
        os.dup2(null, 0)
        os.dup2(null, 1)
        # The other descriptors belong to the daemon: locks that it will release, and the pipe on
        # which it reports that it is ready.
        close_all_but({0, 1, 2, channel.fileno()})
        supervise(channel)
        status = 0
    except BaseException:  # noqa: BLE001 - this process must not return into the daemon's code
        sys.excepthook(*sys.exc_info())
    finally:
        os._exit(status)


def _run_helper(helper: Callable[[socket.socket], None], channel: socket.socket) -> NoReturn:
    status = 1
    try:
        helper(channel)
        status = 0
    except BaseException:  # noqa: BLE001 - this process must not return into the supervisor's code
        sys.excepthook(*sys.exc_info())
    finally:
        os._exit(status)


def _daemon_is_gone(channel: socket.socket, delay_s: float) -> bool:
    """Wait up to `delay_s` seconds, and return whether the daemon is gone."""
    poll = select.poll()
    poll.register(channel, select.POLLRDHUP if sys.platform == "linux" else 0)
    return bool(poll.poll(int(delay_s * 1000)))


def _send_event(channel: socket.socket, event: HelperEvent) -> None:
    with suppress(OSError):  # the daemon is gone, or has not read for a long time
        channel.send(event, socket.MSG_DONTWAIT)
