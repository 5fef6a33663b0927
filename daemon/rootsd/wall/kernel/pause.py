"""Stop the programs of a wall while no daemon answers, and continue them afterwards.

A daemon that is away is no revocation. If the roots went away, each working directory in them
would be lost for good. So the programs are stopped instead. A program that resists can go on, but
gains nothing: the kernel still enforces the view, and the warden still ends approvals.

The waiter of `supervision` is a child of the wall's owner, and has a name that no
program can change. Everything below it belongs to the wall, since orphans go to init.

The order matters, because shells look at their children. A parent has stopped before its children
do, and continues after them. So no shell sees a job stop, and takes the terminal. This holds for
init, too, which would report the stop to the front. A process that somebody else has stopped is
left alone, so it stays stopped. Source: proc_pid_stat(5), signal(7), pidfd_send_signal(2).
"""

from __future__ import annotations

import os
import select
import signal
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress

from rootsd.core.errors import RootsdError
from rootsd.core.wall import WAITER_NAME
from rootsd.disk.process_stat import ProcessStat, process_stats, read_process_stat
from rootsd.wall.kernel.orders import PauseNews, PauseState

_MAX_LOOKS = 100  # a program that forks all the time must not keep the warden from its work
_REST_TIMEOUT_S = 0.2
_BETWEEN_LOOKS_S = 0.0005


class ProgramPause:
    """The pause of all programs in the walls of the process `owner`.

    `tell` is called before the programs stop or wait for another reason, and after they continue.
    """

    def __init__(self, owner: int, tell: Callable[[PauseNews], None]) -> None:
        self._owner = owner
        self._tell = tell
        self._stopped: set[tuple[int, int]] = set()
        self._news = PauseNews(PauseState.RUNNING)

    @property
    def state(self) -> PauseState:
        """Whether the programs run."""
        return self._news.state

    def stop(self, why: RootsdError) -> None:
        """Stop all programs that run. Call it again to stop those that were continued since."""
        self._set(PauseNews(PauseState.STOPPED, why.message, why.remedy))
        sent = set[tuple[int, int]]()
        for _ in range(_MAX_LOOKS):
            before = len(sent)
            for level in levels(self._owner):
                new = [each for each in level if each.key not in sent]
                new = [each for each in new if not _is_at_rest(each)]
                sent.update(each.key for each in new)
                stopped = [each for each in new if send(each, signal.SIGSTOP)]
                self._stopped.update(each.key for each in stopped)
                _await_rest(stopped)
            if len(sent) == before:
                break
        self._release_finished()

    def resume(self) -> None:
        """Let the programs go on that `stop` has stopped, children before their parents."""
        if self.state is PauseState.RUNNING:
            return
        for level in reversed([*levels(self._owner)]):
            for each in level:
                if each.key in self._stopped:
                    send(each, signal.SIGCONT)
        self._stopped.clear()
        self._set(PauseNews(PauseState.RUNNING))

    def _set(self, news: PauseNews) -> None:
        if news != self._news:
            self._news = news
            self._tell(news)

    def _release_finished(self) -> None:
        """Let each init go on whose programs were all killed, so that it can report that."""
        children = _table()
        for init in _inits(children, self._owner):
            if init.key in self._stopped and not _has_living(children, init):
                self._stopped.discard(init.key)
                send(init, signal.SIGCONT)


_Children = dict[int, list[ProcessStat]]


def levels(owner: int) -> Iterator[list[ProcessStat]]:
    """Yield the processes of the walls of `owner`: each init, then its children, and so on."""
    children = _table()
    level = [*_inits(children, owner)]
    while level:
        yield level
        level = [child for each in level for child in children.get(each.pid, ())]


def _inits(children: _Children, owner: int) -> Iterator[ProcessStat]:
    for waiter in children.get(owner, ()):
        if waiter.name == WAITER_NAME:
            yield from children.get(waiter.pid, ())


def _has_living(children: _Children, above: ProcessStat) -> bool:
    return any(
        not each.has_wholly_ended or _has_living(children, each)
        for each in children.get(above.pid, ())
    )


def _table() -> _Children:
    """Return all processes by their parents."""
    found: _Children = {}
    for stat in process_stats():
        found.setdefault(stat.parent, []).append(stat)
    return found


def _is_at_rest(process: ProcessStat) -> bool:
    """Return whether a process is stopped, traced, or ended.

    The state is that of the first thread alone. When that has ended, others may still run.
    """
    return process.state in (b"T", b"t") or process.has_wholly_ended


def _look(pid: int) -> ProcessStat | None:
    try:
        return read_process_stat(b"/proc/%d/" % pid)
    except OSError:  # it has ended
        return None


def _await_rest(stopped: Iterable[ProcessStat]) -> None:
    """Wait for a short time until processes have stopped.

    One that waits for its children may still see them stop after its own SIGSTOP was sent. One in
    a call that cannot be interrupted sees nothing, so it is not waited for.
    """
    end = time.monotonic() + _REST_TIMEOUT_S
    for each in stopped:
        while (now := _look(each.pid)) is not None and now.key == each.key:
            if now.state not in b"RS" or time.monotonic() > end:
                break
            select.select((), (), (), _BETWEEN_LOOKS_S)


def send(process: ProcessStat, number: signal.Signals) -> bool:
    """Send a signal to exactly this process, and to none that has its pid now.

    Return whether it was sent. A process that somebody else has just stopped gets no SIGSTOP.
    """
    with suppress(OSError):
        fd = os.pidfd_open(process.pid)
        try:
            now = _look(process.pid)
            is_at_rest = now is None or (number == signal.SIGSTOP and _is_at_rest(now))
            if now is not None and now.key == process.key and not is_at_rest:
                signal.pidfd_send_signal(fd, number)
                return True
        finally:
            os.close(fd)
    return False
