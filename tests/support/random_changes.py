"""Random changes in a small tree of folders."""

from __future__ import annotations

import os
import random
import shutil
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

from support.repositories import fake_repository


class RandomChanges:
    """Random changes in a tree that is small, so the changes often affect each other."""

    NAMES = ("a", "b", "c", "build", "node_modules", os.fsdecode(b"\xff"))

    def __init__(self, top: Path, seed: int) -> None:
        self.top = top
        self.random = random.Random(seed)  # noqa: S311 - a test that can be repeated

    def step(self) -> None:
        steps = (
            self.make_folder, self.make_repository, self.make_project, self.remove, self.move,
            self.unmake, self.replace, self.link, self.unmake_project,
        )  # fmt: skip
        self.random.choice(steps)()

    def place(self) -> Path:
        depth = self.random.randint(1, 4)
        return self.top.joinpath(*self.random.choices(self.NAMES, k=depth))

    def make_folder(self) -> None:
        self.quietly(lambda: self.place().mkdir(parents=True, exist_ok=True))

    def make_repository(self) -> None:
        place = self.place()
        if not (place / ".git").exists():
            self.quietly(lambda: fake_repository(place))

    def make_project(self) -> None:
        place = self.place()
        self.quietly(lambda: place.mkdir(exist_ok=True))
        self.quietly((place / "go.mod").touch)

    def unmake_project(self) -> None:
        self.quietly((self.place() / "go.mod").unlink)

    def remove(self) -> None:
        shutil.rmtree(self.place(), ignore_errors=True)

    def move(self) -> None:
        self.quietly(lambda: self.place().rename(self.place()))

    def unmake(self) -> None:
        shutil.rmtree(self.place() / ".git", ignore_errors=True)

    def replace(self) -> None:
        place = self.place()
        shutil.rmtree(place, ignore_errors=True)
        self.quietly(lambda: fake_repository(place))

    def link(self) -> None:
        self.quietly(lambda: self.place().symlink_to(self.top))

    def quietly(self, action: Callable[[], object]) -> None:
        """Perform an action that may fail, for example in a missing folder."""
        with suppress(OSError):
            action()
