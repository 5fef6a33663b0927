"""Connect the user's terminal to the program's own terminal, and wait for the program.

A confined program never gets the user's terminal: it could inject keys there, or read what other
programs type. It gets a terminal in its own devpts in place of each standard file that is one. The
front copies bytes in both directions. Pipes and files do not pass through the front.

**In the foreground**, the front puts the user's terminal in raw mode, so Ctrl-C and Ctrl-Z reach
the program's terminal, which turns them into signals inside. If the program stops, the front
restores the user's terminal and stops, too. When the shell continues the front, it continues the
program.

**In the background**, the front leaves the user's terminal alone. This is so in a pipeline, where
a pager may read the keys, and as a job that the shell runs in the background. The program is then
a background job of its own terminal, too. When it reads from there, the kernel stops it, init
reports that, and the front moves to the foreground, or stops until the shell moves it there.
Signals of the user's terminal reach the front, which forwards them.

Keys that make a signal also reach the other processes of the front's group, as without a wall. The
front never blocks on a write: a program that does not read must not keep its own output from the
user.

**While no daemon answers**, the warden stops the program, and the front says so. Keys wait. A key
or signal of the user, such as Ctrl-C, lets the program run for a moment, so that it can obey.

**When roots go or come**, the front says so. While the program draws the whole screen, the front
waits with that.

Sources: termios(3), tty_ioctl(4), "job control" in credentials(7).
"""

from __future__ import annotations

import fcntl
import os
import select
import signal
import socket
import struct
import termios
import tty
from collections.abc import Callable, Iterable
from contextlib import suppress
from typing import Any

from rootsd.wall.kernel.orders import PauseNews, PauseState, RootNews
from rootsd.wall.kernel.supervision import (
    STOPPED,
    WANTS_TERMINAL,
    TerminalUse,
    exit_status,
    send_signal,
)
from rootsd.wall.kernel.warden import WardenNews
from rootsd.wall.session.messages import ScreenUse, width_of, wrapped
from rootsd.wall.session.push_relay import PushRelay
from rootsd.wall.session.relay_questions import NO, YES
from rootsd.wall.session.user_terminal import UserTerminal, read_now, write_now

_CHUNK = 1 << 16
_MAX_UNSENT = 1 << 18
_WINDOW_SIZE = bytes(8)
_FORWARDED = (
    signal.SIGTERM,
    signal.SIGHUP,
    signal.SIGINT,
    signal.SIGQUIT,
    signal.SIGUSR1,
    signal.SIGUSR2,
)
_HANDLED = (*_FORWARDED, signal.SIGTSTP, signal.SIGCONT, signal.SIGWINCH)
# Indexes in the list of tcgetattr(3), which Python does not name.
_OUTPUT, _LOCAL, _CHARACTERS = 1, 3, 6
_NO_KEY = b"\0"
_WINDOW = struct.Struct("4H")
# A program may try to hide a question. This ends an open sequence or title, output that waits or
# goes to a printer, other letters, and a scrolling region. It also sets the colors back, because a
# program may have changed the first 256.
_READABLE = (
    "\x18\x1b\\\x1b[?2026l\x1b[4i\x1b(B\x0f\x1b[0m\x1b7\x1b[r\x1b8"
    "\x1b[38;2;255;255;255;48;2;0;0;0m"
)
_USUAL_COLORS = "\x1b[0m"
_ENTER, _ERASE, _ENDS_ANSWER = b"\r\n", b"\x08\x7f", b"\r\n\x03\x04\x1a\x1b\x1c"

DescribeNews = Callable[[PauseNews | RootNews], Iterable[str]]
"""Returns what to tell the user, as sentences."""


def wait_with_news(
    waiter: int,
    news: WardenNews,
    tell: Callable[[PauseNews | RootNews], None],
    relay: PushRelay,
) -> int:
    """Wait for a program without a terminal, forward signals to it, and return its status.

    Meanwhile call `tell` with the news of the warden, and start the relay when needed.
    """
    signals = _UserSignals((*_FORWARDED, signal.SIGTSTP), news)
    ended = os.pidfd_open(waiter)
    while ended not in (ready := _poll((ended, signals.fd, news.fileno(), *relay.interest()))):
        for each in news.take():
            tell(each)
        if not ready.keys().isdisjoint(relay.interest()):
            relay.start()
        for number in signals.take():
            if number == signal.SIGTSTP:
                relay.start()  # while this process is stopped, the warden may wait for it
                _stop_both(waiter)
            else:
                send_signal(waiter, number)
    os.close(ended)
    return _status_of(waiter)


def _status_of(waiter: int) -> int:
    _, status = os.waitpid(waiter, 0)
    return exit_status(status)


class _UserSignals:
    """The signals that this process gets. They wait until the program can obey."""

    def __init__(self, numbers: Iterable[int], news: WardenNews) -> None:
        self._news = news
        self._got: list[int] = []
        self.fd, wakes = os.pipe2(os.O_CLOEXEC | os.O_NONBLOCK)
        """Readable if there is a new one."""
        signal.set_wakeup_fd(wakes, warn_on_full_buffer=False)
        for number in numbers:
            self.catch(number)

    def catch(self, number: int) -> None:
        """Take a signal from now on."""
        signal.signal(number, lambda got, _: self._got.append(got))

    def add(self, number: int) -> None:
        """Add a signal that nobody has sent."""
        self._got.append(number)

    def __contains__(self, number: int) -> bool:
        """Return whether such a signal waits."""
        return number in self._got

    def take(self) -> list[int]:
        """Return what the program is to get now. If it is stopped, let it run for that first."""
        with suppress(BlockingIOError):
            os.read(self.fd, _CHUNK)
        if self._news.state is PauseState.STOPPED and {*self._got} - {signal.SIGWINCH}:
            self._news.let_run()
            return []  # until it runs: SIGCONT would remove a SIGTSTP that waits
        got, self._got = self._got, []
        return got


def _poll(fds: Iterable[int]) -> dict[int, int]:
    poll = select.poll()
    for fd in fds:
        if fd >= 0:
            poll.register(fd, select.POLLIN)
    return dict(poll.poll())


class TerminalFront:
    """The front of one program with a terminal. Call `run` once."""

    def __init__(
        self,
        channel: socket.socket,
        waiter: int,
        user: UserTerminal,
        use: TerminalUse,
        news: WardenNews,
        describe: DescribeNews,
        relay: PushRelay,
    ) -> None:
        """Take the end of the channel of `CellOptions`, and the `use` that is in there.

        The questions of the `relay` are shown while the keys come to this process.
        """
        self._relay = relay
        self._questions = relay.questions()
        self._answer: bytearray | None = None  # what was typed after a question
        self._news = news
        self._screen = ScreenUse()
        self._untold: list[str] = []
        self._describe = describe
        self._channel = channel
        self._waiter = waiter
        self._user = user
        self._starts = use
        self._master = -1
        self._raw_from: list[Any] = []  # the user's modes, while the keys come to this process
        self._wants_keys = not user.is_shared
        self._stops_group = False
        self._signals = _UserSignals(_HANDLED, news)
        self._to_program = bytearray()
        self._to_user = bytearray()
        self._is_open = True

    def run(self) -> int:
        """Copy until the program ends, and return its exit status."""
        _, fds, _, _ = socket.recv_fds(self._channel, 1, 1)
        if not fds:  # it failed to start; the caller has the reason
            return _status_of(self._waiter)
        self._master = fds[0]
        os.set_blocking(self._master, False)
        self._copy_modes()
        self._resize()
        if self._starts is TerminalUse.FOREGROUND:
            self._take()
        while self._is_open:
            self._step()
        self._drain()
        self._give_back()
        return _status_of(self._waiter)

    def _step(self) -> None:
        ready = self._poll()
        if self._news.fileno() in ready:
            self._take_news()
        self._take_signals()
        if self._channel.fileno() in ready:
            self._take_event()
        if not ready.keys().isdisjoint(self._relay.interest()):
            self._relay.start()
        if self._questions.fileno() in ready:
            self._take_question()
        if self._raw_from and ready.get(self._user.keys, 0) & ~select.POLLOUT:
            self._read_keys()
        if self._master in ready:
            self._read_program()
        self._write()

    def _poll(self) -> dict[int, int]:
        poll = select.poll()
        signals, interest = self._signals.fd, self._relay.interest()
        for fd in (self._channel.fileno(), signals, self._news.fileno(), *interest):
            if fd >= 0:
                poll.register(fd, select.POLLIN)
        if self._questions.fileno() >= 0 and self._raw_from:
            poll.register(self._questions.fileno(), select.POLLIN)
        can_show = len(self._to_user) < _MAX_UNSENT and self._answer is None
        wanted = select.POLLIN if can_show else 0
        has_keys = self._to_program and not self._is_paused
        poll.register(self._master, wanted | (select.POLLOUT if has_keys else 0))
        events = dict.fromkeys(self._user[:2], 0)
        if self._raw_from and len(self._to_program) < _MAX_UNSENT:
            events[self._user.keys] |= select.POLLIN
        if self._to_user:
            events[self._user.screen] |= select.POLLOUT
        for fd, each in events.items():
            if each:
                poll.register(fd, each)
        return dict(poll.poll())

    @property
    def _is_paused(self) -> bool:
        return self._news.state is PauseState.STOPPED

    def _take_news(self) -> None:
        """Tell the user that the program waits for a daemon or goes on, and of other roots."""
        for each in self._news.take():
            lines = [*self._describe(each)]
            if isinstance(each, PauseNews):  # the program cannot end its use of the screen now
                self._tell(lines)
            else:
                self._untold += lines
        self._tell_rest()
        self._heed_keys()

    def _tell(self, lines: Iterable[str]) -> None:
        width = width_of(self._user.screen)
        shown = [part for line in lines for part in wrapped(line, width)]
        if shown:
            self._to_user += self._screen.between(shown)

    def _tell_rest(self) -> None:
        """Tell what had to wait, if the screen is free."""
        if self._untold and self._screen.is_free:
            lines, self._untold = self._untold, []
            self._tell(lines)

    def _take_question(self) -> None:
        """Show a question, and let the program's output wait until there is an answer."""
        text = self._questions.take()
        if text:
            self._answer = bytearray()
            lines = wrapped(f"rootsd: {text}", width_of(self._user.screen))
            self._to_user += (_READABLE + "\r\n".join(("", *lines, "Type yes or no: "))).encode()
        elif self._answer is not None:
            self._end_question()

    def _take_answer(self, keys: bytes) -> None:
        """Take keys for a question. Only the whole word `yes` is one: it may come unexpectedly."""
        answer = self._answer
        for key in keys:
            if answer is None:
                break
            if key in _ENDS_ANSWER:
                self._questions.answer(YES if key in _ENTER and answer.strip() == b"yes" else NO)
                self._end_question()
                break
            if key in _ERASE:
                del answer[-1:]
                self._to_user += b"\b \b"
            else:
                answer.append(key)
                self._to_user += bytes((key,)) if chr(key).isprintable() else b"?"

    def _end_question(self) -> None:
        """Let the program write again. A size that changes makes it draw its screen again."""
        self._answer = None
        self._to_user += _USUAL_COLORS.encode() + b"\r\n"
        with suppress(OSError):
            rows, columns, *rest = _WINDOW.unpack(
                fcntl.ioctl(self._master, termios.TIOCGWINSZ, _WINDOW_SIZE)
            )
            smaller = _WINDOW.pack(max(rows - 1, 1), columns, *rest)
            fcntl.ioctl(self._master, termios.TIOCSWINSZ, smaller)
        self._resize()

    def _heed_keys(self) -> None:
        """Let a program that is stopped continue for a key that makes a signal."""
        if self._is_paused and any(key in self._to_program for key in self._signal_keys()):
            self._news.let_run()

    def _take_signals(self) -> None:
        for number in self._signals.take():
            match number:
                case signal.SIGWINCH:
                    self._resize()
                case signal.SIGCONT:
                    self._continue()
                case _:
                    send_signal(self._waiter, number)

    def _take_event(self) -> None:
        event = self._channel.recv(1)
        if not event:  # init has ended, and with it all programs
            self._is_open = False
        elif event == STOPPED:
            self._stop(signal.SIGTSTP)
        elif event == WANTS_TERMINAL:
            self._wants_keys = True
            if self._user.is_foreground():
                self._continue()
            else:
                self._stop(signal.SIGTTIN)

    def _read_keys(self) -> None:
        try:
            data = read_now(self._user.keys)
        except BlockingIOError:
            return
        except OSError:  # EIO: the user's terminal is gone
            data = b""
        if not data:
            self._hang_up()
            return
        if self._answer is not None:
            self._take_answer(data)
            return
        self._signal_group(data)
        self._to_program += data
        self._heed_keys()

    def _read_program(self) -> None:
        with suppress(OSError):
            self._show(os.read(self._master, _CHUNK))
        self._tell_rest()
        if self._raw_from and self._user.is_shared:
            self._follow_output_mode()

    def _show(self, output: bytes) -> None:
        self._to_user += output
        self._screen.take(output)

    def _write(self) -> None:
        self._write_to_user()
        with suppress(OSError):
            while self._to_program and not self._is_paused:
                del self._to_program[: os.write(self._master, self._to_program)]

    def _write_to_user(self) -> None:
        try:
            while self._to_user:
                del self._to_user[: write_now(self._user.screen, self._to_user)]
        except BlockingIOError:
            pass
        except OSError:  # EIO: the user's terminal is gone
            self._hang_up()

    def _hang_up(self) -> None:
        self._raw_from = []
        self._to_user.clear()
        self._signals.add(signal.SIGHUP)
        self._take_signals()

    def _drain(self) -> None:
        """Copy what the program wrote before its end."""
        self._read_rest()
        self._take_news()
        self._tell(self._untold)
        os.close(self._master)
        poll = select.poll()
        poll.register(self._user.screen, select.POLLOUT)
        while self._to_user:
            poll.poll()
            self._write_to_user()

    def _read_rest(self) -> None:
        """Read what the program wrote before it ended or stopped."""
        with suppress(OSError):
            while data := os.read(self._master, _CHUNK):
                self._show(data)

    def _stop(self, number: signal.Signals) -> None:
        """Stop like the program did, until the shell continues this process."""
        self._relay.start()  # meanwhile, the warden may wait for it
        self._read_rest()
        self._write()
        self._give_back()
        # As the kernel does for a key, and for a read in the background.
        group = 0 if self._stops_group or number == signal.SIGTTIN else os.getpid()
        self._stops_group = False
        signal.signal(number, signal.SIG_DFL)
        os.kill(group, number)
        if number in _HANDLED:
            self._signals.catch(number)
        if signal.SIGCONT not in self._signals:
            # No shell waits for this process group, so the kernel has ignored the signal.
            if number == signal.SIGTTIN:
                send_signal(self._waiter, signal.SIGHUP)
            self._continue()

    def _continue(self) -> None:
        """Continue the program, in the foreground if it is to have the keys and they are free."""
        if self._wants_keys and self._user.is_foreground():
            self._take()
            self._resize()
            use = TerminalUse.FOREGROUND
        else:
            self._raw_from = []
            use = TerminalUse.BACKGROUND
        with suppress(OSError):  # it has ended
            self._channel.send(use.value)
        send_signal(self._waiter, signal.SIGCONT)

    def _signal_keys(self) -> list[bytes]:
        """Return the user's own keys that make signals."""
        if not self._raw_from:
            return []
        characters = self._raw_from[_CHARACTERS]
        found = (characters[each] for each in (termios.VINTR, termios.VQUIT, termios.VSUSP))
        return [key for key in found if key != _NO_KEY]

    def _signal_group(self, keys: bytes) -> None:
        """Let the signals that the program's terminal makes of `keys` reach this process's group.

        These are the keys of the user's own settings. So a program cannot make a signal of another
        key.
        """
        with suppress(termios.error):
            inside = termios.tcgetattr(self._master)
            if not inside[_LOCAL] & termios.ISIG:
                return
            pressed = {
                index
                for index in (termios.VINTR, termios.VQUIT, termios.VSUSP)
                for key in (self._raw_from[_CHARACTERS][index],)
                if key == inside[_CHARACTERS][index] and key != _NO_KEY and key in keys
            }
            for index, number in ((termios.VINTR, signal.SIGINT), (termios.VQUIT, signal.SIGQUIT)):
                if index in pressed:
                    handler = signal.signal(number, signal.SIG_IGN)
                    os.kill(0, number)
                    signal.signal(number, handler)
            self._stops_group |= termios.VSUSP in pressed

    def _resize(self) -> None:
        with suppress(OSError):
            size = fcntl.ioctl(self._user.screen, termios.TIOCGWINSZ, _WINDOW_SIZE)
            fcntl.ioctl(self._master, termios.TIOCSWINSZ, size)

    def _copy_modes(self) -> None:
        """Give the program's terminal the user's settings, such as the key that erases."""
        with suppress(termios.error):
            modes = termios.tcgetattr(self._user.keys)
            if modes[_LOCAL] & termios.ICANON:  # not those of a pager in the same pipeline
                termios.tcsetattr(self._master, termios.TCSANOW, modes)

    def _take(self) -> None:
        """Put the user's terminal in raw mode."""
        with suppress(termios.error):  # the user's terminal is gone
            modes = termios.tcgetattr(self._user.keys)
            if modes[_LOCAL] & termios.ICANON:
                self._read_lines(modes[_CHARACTERS][termios.VEOF])
            self._raw_from = self._raw_from or modes
            tty.setraw(self._user.keys, termios.TCSADRAIN)  # keep what was typed already
            if self._user.is_shared:
                self._follow_output_mode()

    def _read_lines(self, end: bytes) -> None:
        """Read the lines that were typed already. In raw mode, their Ctrl-D would be lost."""
        with suppress(OSError):
            while True:
                line = read_now(self._user.keys)
                self._to_program += line if line.endswith(b"\n") else line + end

    def _follow_output_mode(self) -> None:
        """Let the user's terminal end lines as the program's does.

        Other programs of a pipeline write to it, too; their lines would become staircases.
        """
        with suppress(termios.error):
            inside = termios.tcgetattr(self._master)[_OUTPUT]
            modes = termios.tcgetattr(self._user.keys)
            if difference := (modes[_OUTPUT] ^ inside) & (termios.OPOST | termios.ONLCR):
                modes[_OUTPUT] ^= difference
                termios.tcsetattr(self._user.keys, termios.TCSANOW, modes)

    def _give_back(self) -> None:
        if self._raw_from:
            with suppress(termios.error):
                termios.tcsetattr(self._user.keys, termios.TCSADRAIN, self._raw_from)
        self._raw_from = []


def _stop_both(waiter: int) -> None:
    """Stop a program without a terminal, and this process until the shell continues it."""
    send_signal(waiter, signal.SIGTSTP)
    handler = signal.signal(signal.SIGTSTP, signal.SIG_DFL)
    os.kill(os.getpid(), signal.SIGTSTP)
    signal.signal(signal.SIGTSTP, handler)
    send_signal(waiter, signal.SIGCONT)
