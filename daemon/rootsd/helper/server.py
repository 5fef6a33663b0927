"""Run the helper: a supervisor, a fork server, and its workers.

A worker: the process that answers one question and ends.

Before it reads anything it gives up what it does not need, so that what a hostile repository makes
of a parser stays without effect: no file can be written, the memory and the time are bounded.

The helper itself: a fork server of one thread, which only forks, waits and kills.

It reads no file and no question, so nothing a worker meets can hang it. Where somebody waits for
the answers, the next worker is forked ahead of its question. It ends when the daemon's end of the
channel is closed, however the daemon ended, and takes its workers with it.

Keeps a helper at work: where one is lost another is started, ever later if that goes on.

A process of its own between daemon and helper, since what a confined daemon starts shares its
confinement. It holds the channel, too, so what waits there is answered by the next helper.
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
from dataclasses import dataclass
from importlib import import_module
from typing import NoReturn

from rootsd.confine.landlock import READ, Ruleset
from rootsd.confine.landlock import version as landlock_version
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

_DESCRIPTORS = 256


def work(answer: Callable[[bytes], bytes], terms: TaskSpec, orders: socket.socket) -> None:
    """Wait for the header that comes on `orders`, and answer the question to which it leads.
    Raises OSError where nobody listens."""
    _give_up(terms)
    with orders:
        order = receive_header(orders)
    if order is None:
        return  # the helper ended
    _, seconds, reply = order
    # Should the helper be gone by then, the kernel ends what goes on.
    signal.alarm(int(seconds) + 2)
    with reply:
        try:
            sent = frame(AnswerStatus.ANSWERED, answer(read_to_end(reply, QUESTION_LIMIT)))
        except Exception as error:  # noqa: BLE001 - the asker is told, and this process ends
            sent = frame(AnswerStatus.FAILED, type(error).__name__.encode("ascii", "replace"))
        reply.sendall(sent)
        # The asker need not wait for the end of this process, which takes a millisecond or two.
        reply.shutdown(socket.SHUT_WR)


def close_all_but(kept: Collection[int]) -> None:
    """Close every descriptor of this process that is not among `kept`."""
    for name in os.listdir("/dev/fd"):
        if int(name) not in kept:
            try:
                os.close(int(name))
            except OSError:  # that of the listing itself
                continue


def _give_up(terms: TaskSpec) -> None:
    _limit(resource.RLIMIT_CORE, 0)
    _limit(resource.RLIMIT_FSIZE, 0)
    _limit(resource.RLIMIT_NOFILE, _DESCRIPTORS)
    if sys.platform == "linux":  # elsewhere it limits nothing, or counts what is merely reserved
        _limit(resource.RLIMIT_AS, _address_space() + terms.memory)
    if terms.reach is WorkerAccess.FILES and landlock_version():
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


# A worker that waits for a dead disk cannot be killed before the disk answers.
_MOST_WORKERS = 32
_MOST_WAITING = 64


@dataclass(frozen=True, slots=True)
class _Request:
    duty: HelperTask
    reply: socket.socket
    seconds: float
    due: float


@dataclass(slots=True)
class _Worker:
    """A process that awaits its one request on `orders`, or is at work on it. The descriptor
    `ended` closes when it ends."""

    pid: int
    duty: HelperTask
    ended: int
    orders: socket.socket
    due: float = math.inf
    killed: bool = False


def _load(name: str) -> Callable[[bytes], bytes]:
    module, _, function = name.partition(":")
    loaded: Callable[[bytes], bytes] = getattr(import_module(module), function)
    return loaded


def serve(channel: socket.socket, terms: Mapping[HelperTask, TaskSpec] = TASK_SPECS) -> None:
    """Answer what comes over `channel` until its other end is closed."""
    answers = {task: _load(spec.function) for task, spec in terms.items()}
    gc.freeze()
    gc.disable()  # a collection would copy the pages that each worker shares
    _Server(channel, terms, answers).serve()


class _Server:
    def __init__(
        self,
        channel: socket.socket,
        terms: Mapping[HelperTask, TaskSpec],
        answers: Mapping[HelperTask, Callable[[bytes], bytes]],
    ) -> None:
        self._channel = channel
        self._terms = terms
        self._answers = answers
        self._waiting: dict[HelperTask, deque[_Request]] = {duty: deque() for duty in terms}
        self._standing: dict[HelperTask, _Worker] = {}
        self._workers: dict[int, _Worker] = {}  # at work, by `ended`
        self._poll = select.poll()
        self._poll.register(channel, select.POLLIN)

    def serve(self) -> None:
        try:
            self._stand_ready()
            while self._turn():
                pass
        finally:
            for worker in (*self._workers.values(), *self._standing.values()):
                os.kill(worker.pid, signal.SIGKILL)
                worker.orders.close()

    def _turn(self) -> bool:
        for fd, _ in self._poll.poll(self._milliseconds_left()):
            if fd != self._channel.fileno():
                self._bury(fd)
            elif not self._take():
                return False
        self._drop_late()
        for duty in self._waiting:
            self._start_waiting(duty)
        return True

    def _milliseconds_left(self) -> int | None:
        dues = [worker.due for worker in self._workers.values() if not worker.killed]
        dues += [queue[0].due for queue in self._waiting.values() if queue]
        return max(0, int((min(dues) - time.monotonic()) * 1000) + 1) if dues else None

    def _take(self) -> bool:
        """Queue the next request; whether there may be more."""
        try:
            received = receive_header(self._channel)
        except (HelperProtocolError, OSError):
            return False
        if received is None:
            return False
        number, seconds, reply = received
        if number in self._waiting and len(self._waiting[HelperTask(number)]) < _MOST_WAITING:
            request = _Request(HelperTask(number), reply, seconds, time.monotonic() + seconds)
            self._waiting[request.duty].append(request)
        else:
            reply.close()
        return True

    def _start_waiting(self, duty: HelperTask) -> None:
        queue = self._waiting[duty]
        while queue and len(self._workers) < _MOST_WORKERS:
            # One that was killed and lives on, held by the kernel, keeps nobody waiting.
            busy = Counter(w.duty for w in self._workers.values() if not w.killed)
            if busy[duty] >= self._terms[duty].at_once:
                return
            self._start(queue.popleft())

    def _start(self, request: _Request) -> None:
        with request.reply:  # the worker has one of its own
            standing = self._standing.pop(request.duty, None)
            if standing is not None and self._give(standing, request):
                return
            if (fresh := self._make_worker(request.duty)) is not None:
                self._give(fresh, request)

    def _give(self, worker: _Worker, request: _Request) -> bool:
        """Put a worker to work; False where it has ended meanwhile."""
        worker.due = request.due
        self._workers[worker.ended] = worker
        self._poll.register(worker.ended, 0)  # told of its closing whatever is asked for
        with worker.orders:
            try:
                left = request.due - time.monotonic()
                send_header(worker.orders, request.duty, left, request.reply)
            except OSError:
                return False
        return True

    def _stand_ready(self) -> None:
        """Make the workers that are not to be waited for. Only at the start and after a question:
        one that ends by itself is no reason for another."""
        for duty, terms in self._terms.items():
            if terms.awaited and duty not in self._standing:
                worker = self._make_worker(duty)
                if worker is not None:
                    self._standing[duty] = worker

    def _make_worker(self, duty: HelperTask) -> _Worker | None:
        ended, lifeline = os.pipe()
        ours, theirs = socket.socketpair()
        with theirs:
            pid = _fork()
            if pid == 0:
                self._be_worker(duty, theirs, lifeline)
        os.close(lifeline)
        if pid is None:
            os.close(ended)
            ours.close()
            return None
        return _Worker(pid, duty, ended, ours)

    def _be_worker(self, duty: HelperTask, orders: socket.socket, lifeline: int) -> None:
        status = 1
        try:
            # Of those who wait, too: they are to see when the helper drops them.
            close_all_but({0, 1, 2, lifeline, orders.fileno()})
            work(self._answers[duty], self._terms[duty], orders)
            status = 0
        except OSError:
            status = 2  # the asker has gone
        finally:
            os._exit(status)

    def _bury(self, ended: int) -> None:
        self._poll.unregister(ended)
        os.close(ended)
        os.waitpid(self._workers.pop(ended).pid, 0)
        self._stand_ready()

    def _drop_late(self) -> None:
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
"""Sent by the daemon: the helper answers no more, and has to be replaced."""

# Seconds before another one is started; one that lived for the longest of them begins anew.
RESTART_DELAYS_S = (0.0, 0.2, 1.0, 5.0, 30.0)


def supervise(
    channel: socket.socket,
    helper: Callable[[socket.socket], None] = serve,
    pauses_s: Sequence[float] = RESTART_DELAYS_S,
) -> None:
    """Have `helper` serve the channel, each time in a new process, until its other end is closed.

    To be called in a process of its own with one thread. The daemon is told by `Sign`s.
    """
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, REPLACE_SIGNAL):
        # Sent to all of the terminal's or the service's processes; the daemon decides.
        signal.signal(number, signal.SIG_IGN)
    lost = 0
    while not _is_over(channel, pauses_s[min(lost, len(pauses_s)) - 1] if lost else 0.0):
        begin = time.monotonic()
        pid = os.fork()
        if not pid:
            _be(helper, channel)
        _say(channel, HelperEvent.STARTED)
        if _ended_in_order(pid):
            return
        _say(channel, HelperEvent.LOST)
        lost = 1 if time.monotonic() - begin >= pauses_s[-1] else lost + 1


def _ended_in_order(pid: int) -> bool:
    """Wait for the helper's end, or bring it about where the daemon says so."""

    def kill(*_: object) -> None:
        with suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)

    signal.signal(REPLACE_SIGNAL, kill)
    _, status = os.waitpid(pid, 0)
    signal.signal(REPLACE_SIGNAL, signal.SIG_IGN)
    return status == 0


def become_supervisor(channel: socket.socket) -> NoReturn:
    """Turn this process, fresh from fork(2), into the keeper; it never returns."""
    status = 1
    try:
        nowhere = os.open(os.devnull, os.O_RDWR)
        os.dup2(nowhere, 0)
        os.dup2(nowhere, 1)
        # The rest is the daemon's: locks it will let go of, a pipe that says it is ready.
        close_all_but({0, 1, 2, channel.fileno()})
        supervise(channel)
        status = 0
    except BaseException:  # noqa: BLE001 - nothing of the daemon's may run in this process
        sys.excepthook(*sys.exc_info())
    finally:
        os._exit(status)


def _be(helper: Callable[[socket.socket], None], channel: socket.socket) -> NoReturn:
    status = 1
    try:
        helper(channel)
        status = 0
    except BaseException:  # noqa: BLE001 - nothing of the keeper's may run in this process
        sys.excepthook(*sys.exc_info())
    finally:
        os._exit(status)


def _is_over(channel: socket.socket, pause_s: float) -> bool:
    """Whether the daemon has gone; waits that long to see it."""
    poll = select.poll()
    poll.register(channel, select.POLLRDHUP if sys.platform == "linux" else 0)
    return bool(poll.poll(int(pause_s * 1000)))


def _say(channel: socket.socket, sign: HelperEvent) -> None:
    with suppress(OSError):  # nobody listens any more, or nobody has for a long time
        channel.send(sign, socket.MSG_DONTWAIT)
