"""The helper itself: a fork server of one thread, which only forks, waits and kills.

It reads no file and no question, so nothing a worker meets can hang it. Where somebody waits for
the answers, the next worker is forked ahead of its question. It ends when the daemon's end of the
channel is closed, however the daemon ended, and takes its workers with it.
"""

from __future__ import annotations

import gc
import math
import os
import select
import signal
import socket
import time
from collections import Counter, deque
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from importlib import import_module

from rootsd.host.helper.duties import TERMS, Duty, Terms
from rootsd.host.helper.protocol import Garbled, receive_header, send_header
from rootsd.host.helper.worker import close_all_but, work

# A worker that waits for a dead disk cannot be killed before the disk answers.
_MOST_WORKERS = 32
_MOST_WAITING = 64


@dataclass(frozen=True, slots=True)
class _Request:
    duty: Duty
    reply: socket.socket
    seconds: float
    due: float


@dataclass(slots=True)
class _Worker:
    """A process that awaits its one request on `orders`, or is at work on it. The descriptor
    `ended` closes when it ends."""

    pid: int
    duty: Duty
    ended: int
    orders: socket.socket
    due: float = math.inf
    killed: bool = False


def serve(channel: socket.socket, terms: Mapping[Duty, Terms] = TERMS) -> None:
    """Answer what comes over `channel` until its other end is closed."""
    answers = {duty: import_module(each.module).answer for duty, each in terms.items()}
    gc.freeze()
    gc.disable()  # a collection would copy the pages that each worker shares
    _Server(channel, terms, answers).serve()


class _Server:
    def __init__(
        self,
        channel: socket.socket,
        terms: Mapping[Duty, Terms],
        answers: Mapping[Duty, Callable[[bytes], bytes]],
    ) -> None:
        self._channel = channel
        self._terms = terms
        self._answers = answers
        self._waiting: dict[Duty, deque[_Request]] = {duty: deque() for duty in terms}
        self._standing: dict[Duty, _Worker] = {}
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
        except (Garbled, OSError):
            return False
        if received is None:
            return False
        number, seconds, reply = received
        if number in self._waiting and len(self._waiting[Duty(number)]) < _MOST_WAITING:
            request = _Request(Duty(number), reply, seconds, time.monotonic() + seconds)
            self._waiting[request.duty].append(request)
        else:
            reply.close()
        return True

    def _start_waiting(self, duty: Duty) -> None:
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

    def _make_worker(self, duty: Duty) -> _Worker | None:
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

    def _be_worker(self, duty: Duty, orders: socket.socket, lifeline: int) -> None:
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
