"""The screen with a real daemon, beside a person who types commands."""

from __future__ import annotations

from anyio import to_thread

from support.person import Person
from support.screen import a_screen


async def test_a_screen_and_another_terminal_see_each_other(person: Person) -> None:
    for name in ("api", "web", "tool"):
        person.clone(name)
    person.rootsd("up", str(person.parent))
    async with a_screen() as screen:
        await screen.waits_for("Pending 3")
        await screen.presses("slash", *"api", "enter", "a")
        await screen.waits_for("Approve this project")
        await screen.presses(*"work", "enter")
        await screen.waits_for("Roots 1")
        (root,) = await to_thread.run_sync(person.items, "ls", "--verdict", "approved")
        assert (root["tags"], root["published"]) == (["work"], True)

        await to_thread.run_sync(person.rootsd, "deny", "tool")
        await screen.waits_for("Pending 1 ")  # the search for "api" has ended
        await to_thread.run_sync(person.clone, "new")
        await screen.waits_for("  new ")

        await to_thread.run_sync(person.rootsd, "down")
        await screen.waits_for("daemon away")
        await to_thread.run_sync(person.rootsd, "up")
        await screen.waits_for("Roots 1")
        await screen.waits_until(lambda: "away" not in screen.sees)
        await screen.presses("u")
        await screen.waits_for("Undo this?")
        await screen.presses("y")
        await screen.waits_for("Undone")
        await screen.waits_for("tool")


async def test_a_swapped_folder_is_not_approved(person: Person) -> None:
    """The identity that the screen sends is the one of the folder that it showed."""
    folder = person.clone("api")
    person.rootsd("up", str(person.parent))
    async with a_screen() as screen:
        await screen.waits_for("none found")
        await screen.presses("a")
        await screen.waits_for("Approve this project")
        folder.rename(person.parent / ".api-before")
        await to_thread.run_sync(person.clone, "api")
        await screen.presses("enter")
        # The order compares the folder, unless discovery has already found another project there.
        await screen.waits_until(
            lambda: "replaced" in screen.sees or "no project is called" in screen.sees
        )
    assert person.names("ls", "--verdict", "approved") == []
