"""A person's world with an agent program in it: a daemon, projects, and a scripted model."""

from __future__ import annotations

import json
import shlex
import subprocess
import sys
from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from support import isolated_user, node_packages
from support.agent_programs import PROMPT, AgentProgram, Server, Servers, installed
from support.guard_settings import configure_guard
from support.isolated_user import HANG_GUARD_S, USER, Finished, Group, IsolatedUser, Running
from support.polling import until
from support.scripted_model import ScriptedModel, Step

ROOTSD = Path(sys.executable).with_name("rootsd")


class AgentWorld:
    """A context manager. `projects` are repositories in the one parent; none is approved."""

    def __init__(self, folder: Path, projects: Sequence[str], guard: str = "agents") -> None:
        self.folder = folder
        self.home, self.parent = folder / "home", folder / "src"
        self.directory, self.temporary = folder / "rootsd", folder / "tmp"
        for made in (self.home, self.parent, self.temporary):
            made.mkdir()
        for name in projects:
            self.make_project(name)
        configure_guard(self.directory)
        self._guard = guard
        self.user = IsolatedUser(self.temporary)
        self._at_end = ExitStack()

    def __enter__(self) -> Self:
        self._at_end.enter_context(self.user)
        self.rootsd("up", str(self.parent))
        # A person would know the program that starts their programs.
        self.rootsd("guard", "allow", isolated_user.__file__)
        if self._guard != "off":
            self.rootsd("guard", self._guard)
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self._at_end.__exit__(kind, error, traceback)

    def make_project(self, name: str) -> Path:
        """Make a repository in the parent."""
        project = self.parent / name
        subprocess.run(["git", "init", "-q", str(project)], check=True)
        (project / "README.md").write_text(f"the text of {name}\n")
        return project

    def variables(self, packages: str = "") -> dict[str, str]:
        """The environment of everything inside. `packages` puts agent programs on the PATH."""
        programs = [str(installed(packages)), str(node_packages.node().parent)] if packages else []
        return {
            "HOME": str(self.home), "USER": USER, "LOGNAME": USER, "SHELL": "/bin/bash",
            "TERM": "xterm", "LANG": "C.UTF-8", "TMPDIR": str(self.temporary),
            "TMUX_TMPDIR": str(self.temporary), "ROOTSD_DIR": str(self.directory),
            "PATH": ":".join([*programs, str(ROOTSD.parent), "/usr/local/bin:/usr/bin:/bin"]),
        }  # fmt: skip

    def run_as_person(self, *words: str | Path) -> Finished:
        """Run a command as a person does who is at the desktop, beside the agents."""
        return self.user.run(words, self.variables(), self.parent)

    def rootsd(self, *words: str) -> str:
        """Run `rootsd` as a person, and return what it printed. It has to succeed."""
        done = self.run_as_person(ROOTSD, *words)
        assert done.status == 0, f"{words}: {done.status} {done.output}"
        return done.output

    def items(self, *words: str) -> list[dict[str, Any]]:
        """The items that a command of `rootsd` prints as JSON."""
        items: list[dict[str, Any]] = json.loads(self.rootsd(*words, "--json"))["items"]
        return items

    def published(self) -> set[str]:
        """The names of the published projects."""
        return {item["name"] for item in self.items("ls", "--published")}

    def start_persons_tmux(self, name: str) -> None:
        """Start a person's tmux server with one session, attached on a terminal."""
        tmux = ("tmux", "-L", name, "-f", "/dev/null")
        done = self.run_as_person(*tmux, "new-session", "-d", "bash", "--norc")
        assert done.status == 0, done.output
        self.attach(*tmux)

    def attach(self, *tmux: str) -> None:
        """Display a person's tmux on a terminal. The guard asks in one that nobody looks at."""
        attach = shlex.quote(shlex.join([*tmux, "attach"]))
        shown = f"tail -f /dev/null | script -qec {attach} /dev/null"  # it ends with its input
        display = self.user.start(("sh", "-c", shown), self.variables(), self.parent)
        self._at_end.callback(display.end)
        until(lambda: self.run_as_person(*tmux, "list-clients").output)

    def bridge(self, *words: str) -> Server:
        """The entry for `rootsd bridge` in a client's configuration."""
        return Server((str(ROOTSD), "bridge", *words), {"ROOTSD_DIR": str(self.directory)})

    def model(self, script: Sequence[Step]) -> ScriptedModel:
        """Start a model on the user's loopback."""
        return ScriptedModel(self.user.listening.dup(), script)

    def start(
        self,
        program: AgentProgram,
        model: ScriptedModel,
        servers: Servers,
        folder: Path,
        where: Group,
    ) -> Running:
        """Start `program` in `folder` with one prompt."""
        program.configure(self.home, servers, model.url)
        variables = {**self.variables(program.packages), **program.environment(model.url)}
        return self.user.start(program.command(PROMPT), variables, folder, where)

    def play(
        self,
        program: AgentProgram,
        script: Sequence[Step],
        servers: Servers,
        folder: Path,
        where: Group = Group.OWN,
        seconds: float = HANG_GUARD_S,
    ) -> ScriptedModel:
        """Run `program` until the script is at its end, at most `seconds`, and return the model.

        Raises `AssertionError` with what the program printed if a step was not taken.
        """
        model = self.model(script)
        try:
            done = self.start(program, model, servers, folder, where).wait(seconds)
        finally:
            model.close()
        missing = [step for number, step in enumerate(script) if number not in model.results]
        assert not missing, f"{model.problems} {missing[:1]} {done.status} {done.output[-3000:]}"
        return model
