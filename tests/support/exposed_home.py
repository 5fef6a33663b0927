"""A home folder with agents, repositories, and secrets, for `rootsd exposure`."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from rootsd.agents.forms.place import Platform
from rootsd.connect.base import ClientEnvironment
from rootsd.exposure.report import ExposureItem, ExposureReport, measure
from support.repositories import fake_repository


class ExposedHome:
    """A home folder without any agent at first. `programs` is its only folder on the PATH."""

    def __init__(self, top: Path) -> None:
        self.path, self.programs = top / "home", top / "bin"
        self.variables = {"PATH": str(self.programs)}
        self.path.mkdir()
        self.programs.mkdir()

    def write(self, file: str, content: str | dict[str, Any]) -> Path:
        """Write a file below the home folder: a text, or an object as JSON."""
        path = self.path / file
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(content if isinstance(content, str) else json.dumps(content, indent=1))
        return path

    def repository(self, name: str, *secrets: str) -> Path:
        """Make a repository in `src`, with files of these names."""
        made = fake_repository(self.path / "src" / name)
        for secret in secrets:
            (made / secret).write_text("hunter2")
        return made

    def program(self, name: str) -> Path:
        """Put a program on the PATH."""
        path = self.programs / name
        path.write_text("#!/bin/sh\n")
        path.chmod(0o755)
        return path

    def measure(self, *walled: str) -> ExposureReport:
        """Return what can be reached here."""
        environment = ClientEnvironment(self.path, self.variables, Platform.LINUX)
        return measure(environment, (), frozenset(walled))

    def items(self, *walled: str) -> dict[str, ExposureItem]:
        """Return the agents and servers by name."""
        return {item["name"]: item for item in self.measure(*walled)["items"]}

    def findings(self) -> list[tuple[str, str, int]]:
        """Return the kind, the file below the home folder, and the line of each finding."""
        return [
            (each["kind"], each["file"].removeprefix(f"{self.path}/"), each["line"])
            for item in self.measure()["items"]
            for each in item["findings"]
        ]
