"""Handle keys one at a time, so that what a person types ahead goes where they meant it.

Keys can arrive faster than the screen changes: over a slow line, from a paste, or from a person
who knows the screen by heart. Textual hands each key to the widget that has the focus when the key
arrives, and handles its bindings later, on whatever screen is there by then. So `a` and then `dev`
in one burst would press `d` in the list below the dialog, before it opens.

Here, each event waits in a queue until the one before it had all its effects. While the screen
takes no input, because a dialog still reads what it shows, events wait. Three rules follow from
what a person can know:

* Keys are meant for what the person expects, so they wait. Escape does not: it drops everything
  that was typed ahead, and closes what is open.
* The mouse points at what the person sees. An event of the mouse is dropped if there is another
  screen by its turn.
* Nobody expects an error. `drop_burst` drops what was typed ahead, and the rest of the burst as it
  arrives. What was typed for another program on the same terminal is dropped, too.
"""

from __future__ import annotations

import asyncio
import time
from collections import deque
from collections.abc import Callable, Iterable
from typing import TypeVar

from msgspec import Struct
from textual.app import App
from textual.css.query import NoMatches
from textual.dom import DOMNode
from textual.errors import NoWidget
from textual.events import Event, InputEvent, Key, MouseEvent, MouseMove, Paste
from textual.message_pump import MessagePump
from textual.screen import Screen

BURST_GAP_S = 0.15
"""A pause of this many seconds ends a burst. No person reads an error and types in less."""

_ROUNDS = 3
"""A key runs an action, its message runs another one, and that moves the focus."""

_STUCK_S = 1.0
_URGENT = frozenset(("escape", "ctrl+c"))

Result = TypeVar("Result")
Job = Callable[[], object]
"""What a worker runs. As a function, not a coroutine, because a screen that ends starts none."""


class _Arrived(Struct, frozen=True):
    """An event, with the screen that was there when it arrived, and whether that took input."""

    event: Event
    screen: Screen[object]
    was_ready: bool


class OrderedInputApp(App[Result]):
    """An app that handles each event of the keyboard and the mouse after the one before it."""

    def __init__(self, *, ansi_color: bool) -> None:
        super().__init__(ansi_color=ansi_color)
        self._waiting: deque[_Arrived] = deque()
        self._woken = asyncio.Event()
        self._is_handing_over = False
        self._is_dropping = False
        self._last_dropped: float | None = None

    @property
    def takes_input(self) -> bool:
        """Whether the screen that is shown can take the next event."""
        return True

    def wake(self) -> None:
        """Look again whether the screen takes input."""
        self._woken.set()

    def drop_typed_ahead(self) -> None:
        """Drop what was typed by now, also what the terminal's thread has not handed over yet."""
        self._waiting.clear()
        self._is_dropping = True
        asyncio.get_running_loop().call_soon(self.call_later, self._stop_dropping)

    def _stop_dropping(self) -> None:
        self._is_dropping = False

    def drop_burst(self) -> None:
        """Drop what was typed ahead, and what follows it without a pause."""
        self._waiting.clear()
        self._last_dropped = time.monotonic()

    @property
    def is_in_dropped_burst(self) -> bool:
        """Whether a key that is pressed now is dropped."""
        last = self._last_dropped
        return last is not None and time.monotonic() - last < BURST_GAP_S

    async def on_event(self, event: Event) -> None:
        """Queue an event of the keyboard or the mouse. Handle all other events at once."""
        if not isinstance(event, InputEvent | Paste) or event.is_forwarded:
            await super().on_event(event)
        elif self._is_dropping:
            return
        elif self.is_in_dropped_burst:
            if not isinstance(event, MouseMove):
                self._last_dropped = time.monotonic()
        elif isinstance(event, Key) and event.key in _URGENT and not self.takes_input:
            self._waiting.clear()
            await super().on_event(event)
            self.wake()
        else:
            self._queue(event)

    def _queue(self, event: Event) -> None:
        if isinstance(event, MouseMove) and self._waiting:
            return  # only the place of the pointer, which the next event says again
        self._waiting.append(_Arrived(event, self.screen, self.takes_input))
        if not self._is_handing_over:
            self._is_handing_over = True
            begin: Job = self._hand_over
            self.run_worker(begin)

    async def _hand_over(self) -> None:
        try:
            while self._waiting:
                if not self.takes_input:
                    self._woken.clear()
                    await self._woken.wait()
                    continue
                arrived = self._waiting.popleft()
                is_stale = arrived.screen is not self.screen or not arrived.was_ready
                if isinstance(arrived.event, MouseEvent) and is_stale:
                    continue
                chain = self._chain(arrived.event)
                await super().on_event(arrived.event)
                if not isinstance(arrived.event, MouseMove):
                    await self._settle(chain)
        finally:
            self._is_handing_over = False

    def _chain(self, event: Event | None) -> list[DOMNode]:
        """Return the widget that gets `event`, and the nodes that it bubbles to, up to the app."""
        target: DOMNode = self.focused or self.screen
        if isinstance(event, MouseEvent):
            try:
                target, _ = self.get_widget_at(event.x, event.y)
            except (NoWidget, NoMatches):
                target = self.screen
        return [*target.ancestors_with_self]

    async def _settle(self, chain: Iterable[DOMNode]) -> None:
        """Wait until the effects of an event are there: actions, their messages, the focus."""
        for _ in range(_ROUNDS):
            for node in chain:
                await _handled(node)
            chain = self._chain(None)


async def _handled(node: MessagePump) -> None:
    """Wait until `node` has handled all messages that it has now. One that ends takes none."""
    done = asyncio.Event()
    if node.call_later(done.set):
        try:
            await asyncio.wait_for(done.wait(), _STUCK_S)
        except TimeoutError:
            return
