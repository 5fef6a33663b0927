"""Keys that arrive at once go where the person meant them: on a slow line, from a paste.

Each burst is one that Textual alone would send to the wrong place. The controls take the queue
away, and see that.
"""

from __future__ import annotations

import sys
import threading
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest
from textual.events import MouseDown, MouseUp, Paste
from textual.widgets import Input

from rootsd.cli.ui.dialogs import Dialog
from rootsd.cli.ui.ordered_input import OrderedInputApp
from rootsd.core.errors import ErrorCode
from support.fake_daemon import Objection, a_confirmation, a_decision, an_affected, an_item
from support.guarded_daemon import GuardedDaemon, guarded_daemon
from support.ledger_harness import HANG_GUARD
from support.live_daemon import LiveDaemon, an_update, followed
from support.process_launcher import ROOTSD
from support.screen import ScreenUser, a_screen

NAMES = ("one", "two", "three", "zero")
UNDONE = {
    "seq": 4, "at": "2999-01-01T00:00:00Z", "verb": "approved", "actor": "person", "by": None,
    "path": "/src/one", "path_b64": None, "what": "one", "undid": None,
}  # fmt: skip
THIRTY_DAYS = 30 * 86_400


@pytest.fixture
def daemon(rootsd_dir: Path) -> Iterator[LiveDaemon]:
    """A daemon with four pending projects. Each answer to a dry run takes its time."""
    rows = [followed("pending", name, path=f"/src/{at}") for at, name in enumerate(NAMES)]
    with LiveDaemon(rootsd_dir, [an_update(projects=rows)]) as daemon:
        daemon.answers |= {
            "decide": a_decision(an_item("one", path="/src/0")),
            "undo": {"revision": 8, "undone": [UNDONE], "items": [], "warnings": []},
        }
        yield daemon


def _is_dry_run(params: Mapping[str, Any]) -> bool:
    return params.get("effect") == "dry-run"


def orders(daemon: LiveDaemon) -> list[tuple[str, list[str]]]:
    """Return verb and projects of each decision that was sent."""
    sent = [each for each in daemon.asked("decide") if not _is_dry_run(each)]
    return [(each["verb"], each["refs"]) for each in sent]


async def _after(daemon: LiveDaemon, *keys: str) -> list[tuple[str, list[str]]]:
    """Return the orders after a burst of keys."""
    async with a_screen() as person:
        await person.waits_for("Pending 4")
        await person.waits_for("none found")
        await person.sends_in_one_burst(*keys)
        await person.waits_until(lambda: not person.app.is_in_dropped_burst)
        await _settled(person)
    return orders(daemon)


async def _settled(person: ScreenUser) -> None:
    quiet = 0

    def stays_quiet() -> bool:
        nonlocal quiet
        working = [each for each in person.app.workers if not each.is_finished]
        shown = person.app.screen
        # The decision of a dialog waits for the person.
        is_asked = isinstance(shown, Dialog) and shown.is_ready and not shown.has_failed
        quiet = 0 if len(working) > is_asked else quiet + 1
        return quiet > 3

    await person.waits_until(stays_quiet, "the end of all commands")


APPROVAL = ("a", "x", "1", "tab", "3", "0", "d", "tab", "space", "enter")
BURSTS: Mapping[str, tuple[tuple[str, ...], list[tuple[str, list[str]]]]] = {
    "approval": (APPROVAL, [("approve", ["id-one"])]),
    "a word for the dialog": (("a", "d", "e", "v", "enter"), [("approve", ["id-one"])]),
    "closed again": (("a", "d", "escape", "j", "d"), [("deny", ["id-two"])]),
    "a search first": (("slash", "t", "w", "o", "enter", "d"), [("deny", ["id-two"])]),
    "a search that ends": (("slash", "d", "escape", "d"), [("deny", ["id-one"])]),
    "two denials": (("d", "d"), [("deny", ["id-one"]), ("deny", ["id-two"])]),
    "two approvals": (
        ("a", "enter", "a", "enter"),
        [("approve", ["id-one"]), ("approve", ["id-two"])],
    ),
    "marks": (
        ("space", "space", "d", "y", "d"),
        [("deny", ["id-one", "id-two"]), ("deny", ["id-three"])],
    ),
    "no": (("space", "space", "d", "n", "escape", "d"), [("deny", ["id-three"])]),
    "help in between": (("question_mark", "d", "q", "d"), [("deny", ["id-one"])]),
    "a tag to focus on": (("f", "d", "escape", "d"), [("deny", ["id-one"])]),
    "another list first": (("2", "d", "1", "d"), [("deny", ["id-one"])]),
}

# What the keys of some bursts write into the dialog.
TAGS = {"approval": ["x1"], "a word for the dialog": ["dev"]}


@pytest.mark.parametrize("name", BURSTS)
async def test_a_burst_does_what_the_keys_do_one_by_one(daemon: LiveDaemon, name: str) -> None:
    keys, expected = BURSTS[name]
    assert await _after(daemon, *keys) == expected
    order = daemon.asked("decide")[-1]
    assert order.get("tags") == TAGS.get(name)
    if name == "approval":
        assert (order["lasts"], order["access"]) == (THIRTY_DAYS, "read")


@pytest.mark.parametrize("name", TAGS)
async def test_control_without_the_queue_a_burst_goes_to_the_list(
    daemon: LiveDaemon, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    monkeypatch.delattr(OrderedInputApp, "on_event")
    await _after(daemon, *BURSTS[name][0])
    assert all(each.get("tags") != TAGS[name] for each in daemon.asked("decide"))


async def test_a_question_that_nobody_expects_gets_no_key_of_the_burst(daemon: LiveDaemon) -> None:
    """Denying one project can deny others in it."""
    plan = a_decision(an_item("one", path="/src/0"))
    listed = [an_affected(name, path=f"/src/0/{name}", after="denied") for name in NAMES]
    question = {**plan, **a_confirmation(*listed)}
    daemon.answers["decide"] = lambda params: question if _is_dry_run(params) else plan
    async with a_screen() as person:
        await person.waits_for("none found")
        await person.sends_in_one_burst("d", "y", "enter", "j", "d")
        await person.waits_for("Deny 4 projects?")
        assert "one, two, three, zero" in person.sees
        assert r"\u{20}" not in person.sees, "an indented line is not a name with spaces"
        await _settled(person)
        assert orders(daemon) == []
        await person.presses("y")
        await person.waits_for("u takes it back")
    assert orders(daemon) == [("deny", ["id-one"])]
    assert daemon.asked("decide")[-1]["confirmed"] == [f"token-{name}" for name in NAMES]


async def test_an_approval_of_more_than_was_chosen_gets_no_key_of_the_burst(
    daemon: LiveDaemon,
) -> None:
    plan = a_decision(an_item("one", path="/src/0"))
    listed = [an_affected("one"), an_affected("inner", path="/src/one/inner")]
    question = {**plan, **a_confirmation(*listed)}
    daemon.answers["decide"] = lambda params: question if _is_dry_run(params) else plan
    async with a_screen() as person:
        await person.waits_for("none found")
        await person.sends_in_one_burst("a", "enter", "d")
        await person.waits_for("2 projects would be published")
        await _settled(person)
        assert orders(daemon) == []
        await person.waits_until(lambda: not person.app.is_in_dropped_burst)
        await person.presses("enter")
        await person.waits_for("u takes it back")
    assert orders(daemon) == [("approve", ["id-one"])]
    assert daemon.asked("decide")[-1]["confirmed"] == ["token-one", "token-inner"]


async def test_commands_reach_the_daemon_in_the_order_of_their_keys(daemon: LiveDaemon) -> None:
    await _after(daemon, "d", "u", "y")
    sent = [(method, params.get("effect")) for method, params in daemon.requests]
    assert [each for each in sent if each[0] in ("decide", "undo")] == [
        ("decide", "dry-run"),
        ("decide", None),
        ("undo", "dry-run"),
        ("undo", None),
    ]


async def test_what_was_typed_for_a_dialog_that_fails_stays_in_it(daemon: LiveDaemon) -> None:
    daemon.answers["decide"] = Objection(ErrorCode.FAILED, "another folder is there now")
    async with a_screen() as person:
        await person.waits_for("none found")
        await person.sends_in_one_burst("a", "d", "q", "tab", "d", "space")
        await person.waits_for("another folder is there now")
        await _settled(person)
        assert isinstance(person.app.screen, Dialog)
        await person.presses("enter")
        await person.waits_for("Pending 4")
    assert orders(daemon) == []


async def test_what_was_typed_after_a_wrong_field_is_dropped(daemon: LiveDaemon) -> None:
    async with a_screen() as person:
        await person.waits_for("none found")
        await person.sends_in_one_burst("a", "tab", "3", "0", "x", "enter", "d", "backspace", "d")
        await person.waits_for("'30x' is not a duration")
        await _settled(person)
        assert person.app.screen.query_one("#duration", Input).value == "30x"
        await person.presses("backspace", "d", "enter")
        await person.waits_for("u takes it back")
    assert orders(daemon) == [("approve", ["id-one"])]


async def test_a_refused_command_gives_the_row_and_the_marks_back(daemon: LiveDaemon) -> None:
    plan = a_decision(an_item("one", path="/src/0"))

    def refuse(params: dict[str, Any]) -> dict[str, Any]:
        if _is_dry_run(params):
            return plan
        raise Objection(ErrorCode.REFUSED, "an agent started this " * 9)

    daemon.answers["decide"] = refuse
    async with a_screen() as person:
        await person.waits_for("none found")
        await person.presses("d")
        await person.waits_for("problem")
        assert not isinstance(person.app.screen, Dialog), "it would get the next keys"
        await person.presses("d")
        await _settled(person)
        await person.presses("space", "space", "d", "y")
        await _settled(person)
        await person.waits_for("2 selected")
    assert orders(daemon) == [("deny", ["id-one"])] * 2 + [("deny", ["id-one", "id-two"])]


@pytest.fixture
def slow(daemon: LiveDaemon) -> Iterator[threading.Event]:
    """Let no dry run end before the event is set."""
    goes_on, decided = threading.Event(), daemon.answers["decide"]

    def decide(params: dict[str, Any]) -> Mapping[str, Any]:
        if _is_dry_run(params):
            goes_on.wait(HANG_GUARD)
        assert isinstance(decided, Mapping)
        return decided

    daemon.answers["decide"] = decide
    yield goes_on
    goes_on.set()


async def test_keys_wait_for_a_slow_dialog(daemon: LiveDaemon, slow: threading.Event) -> None:
    async with a_screen() as person:
        await person.waits_for("none found")
        await person.sends_in_one_burst("a", "d", "e", "v")
        await person.waits_for("Reading.")
        await person.sends_in_one_burst("enter", "j", "d")
        assert orders(daemon) == []
        slow.set()
        await person.waits_until(lambda: len(orders(daemon)) == 2)
    assert orders(daemon) == [("approve", ["id-one"]), ("deny", ["id-three"])]


async def test_escape_drops_what_waits_for_a_slow_dialog(
    daemon: LiveDaemon, slow: threading.Event
) -> None:
    async with a_screen() as person:
        await person.waits_for("none found")
        await person.sends_in_one_burst("a", "d", "enter", "d")
        await person.waits_for("Reading.")
        await person.sends_in_one_burst("escape")
        await person.waits_for("Pending 4")
        slow.set()
        await _settled(person)
    assert orders(daemon) == []


async def test_the_mouse_hits_only_what_was_on_the_screen(
    daemon: LiveDaemon, slow: threading.Event
) -> None:
    async with a_screen() as person:
        await person.waits_for("none found")
        keys = person.app.query_one("#keys").region
        await person.sends_in_one_burst("a")
        await person.waits_for("Reading.")
        for event in (MouseDown, MouseUp):  # on the word "deny" below the dialog
            person.app.post_message(event(None, keys.x + 12, keys.y, 0, 0, 1, False, False, False))
        await person.sends_in_one_burst("escape")
        slow.set()
        await _settled(person)
    assert orders(daemon) == []


async def test_a_paste_is_text_for_a_dialog_and_nothing_for_a_list(daemon: LiveDaemon) -> None:
    async with a_screen() as person:
        await person.waits_for("none found")
        person.app.post_message(Paste("ddd"))
        await person.sends_in_one_burst("a")
        person.app.post_message(Paste("dev"))
        await person.sends_in_one_burst("enter")
        await person.waits_for("u takes it back")
    assert orders(daemon) == [("approve", ["id-one"])]
    assert daemon.asked("decide")[-1]["tags"] == ["dev"]


_OLD_SCREEN = """
from rootsd.cli.ui.ordered_input import OrderedInputApp
from rootsd.cli.ui.app import RootsdScreen
del OrderedInputApp.on_event
opens = RootsdScreen.action_approve
RootsdScreen.action_approve = lambda self: self.set_timer(0.3, lambda: opens(self))
RootsdScreen().run()
"""
_BURST = "ax1\t30d\t \r"


@pytest.fixture(scope="module")
def scene(tmp_path_factory: pytest.TempPathFactory) -> Iterator[GuardedDaemon]:
    with guarded_daemon(tmp_path_factory.mktemp("scene")) as scene:
        yield scene


@pytest.mark.needs("linux")
def test_one_write_to_a_terminal_approves_as_typed(scene: GuardedDaemon) -> None:
    typed = [("none found", _BURST), ("u takes it back", "q")]
    assert scene.launcher.run_on_terminal(*ROOTSD, "ui", typed=typed).status == 0
    (item,) = scene.person.items("ls")
    assert (item["verdict"], item["tags"], item["access"]) == ("approved", ["x1"], "read")
    assert item["expires_at"] is not None
    scene.person.rootsd("forget", "one")


@pytest.mark.needs("linux")
def test_control_a_dialog_that_opens_late_does_not_get_what_was_typed_for_it(
    scene: GuardedDaemon,
) -> None:
    run = scene.launcher.run_on_terminal
    assert run(*ROOTSD, "guard", "off").status == 0
    typed = [("none found", _BURST), ("Choose a project first", "q")]
    run(sys.executable, "-c", _OLD_SCREEN, typed=typed)
    (item,) = scene.person.items("ls")
    outcome = (item["verdict"], item["tags"], item["access"], item["expires_at"] is None)
    assert outcome != ("approved", ["x1"], "read", False)
