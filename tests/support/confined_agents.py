"""Real agent programs behind the wall, and how each one reads a file."""

from __future__ import annotations

import struct
import zlib
from collections.abc import Callable
from pathlib import Path

from support.agent_programs import AgentProgram, Servers
from support.agent_world import ROOTSD
from support.scripted_model import Call, Shell, Step

# The tool that reads a file, and its argument. Codex reads images only.
FILE_TOOLS = {
    "claude": ("Read", "file_path"),
    "codex": ("view_image", "path"),
    "gemini": ("read_file", "file_path"),
    "copilot": ("view", "path"),
    "opencode": ("read", "filePath"),
    "qwen": ("read_file", "file_path"),
}
# The tool that edits a file. Codex has one for patches.
EDIT_TOOLS = {
    "claude": "Edit",
    "codex": "apply_patch",
    "gemini": "replace",
    "copilot": "edit",
    "opencode": "edit",
    "qwen": "edit",
}
IMAGE_READERS = ("codex",)
# Gemini CLI's own rule: its file tools read below its working directory only.
READERS_BELOW = ("gemini",)
_IMAGE_SIGN = "data:image/png"


class ConfinedProgram:
    """An agent program that is started by `rootsd confine`, with these options of the wall."""

    def __init__(self, program: AgentProgram, *options: str) -> None:
        self.name, self.label = program.name, program.label
        self.speaks_mcp = program.speaks_mcp
        self.packages, self.package = program.packages, program.package
        self.sets = program.sets
        self._program, self._options = program, options

    def configure(self, home: Path, servers: Servers, model: str) -> None:
        """Write the settings of the program."""
        self._program.configure(home, servers, model)

    def command(self, prompt: str) -> list[str]:
        """Return the words that run one prompt inside."""
        return [str(ROOTSD), "confine", *self._options, "--", *self._program.command(prompt)]

    def environment(self, model: str) -> dict[str, str]:
        """Return the variables of the program."""
        return self._program.environment(model)


class TypedProgram(ConfinedProgram):
    """An agent program that a person types in a shell, with these words before its name."""

    def command(self, prompt: str) -> list[str]:
        """Return the words that run one prompt from bash with rootsd's functions."""
        name, *words = self._program.command(prompt)
        load = f'eval "$({ROOTSD} shell-init bash)"'
        script = f'{load}; {" ".join((*self._options, name))} "$@"'
        return ["bash", "--norc", "--noprofile", "-c", script, "bash", *words]


def reading(
    program: AgentProgram, project: Path, before: Callable[[], object] = lambda: None
) -> list[Step]:
    """Return the steps that read a file of `project`: by the shell tool, and by the file tool."""
    tool, argument = FILE_TOOLS[program.name]
    file = "dot.png" if program.name in IMAGE_READERS else "README.md"
    return [
        Shell(f"cat {project}/README.md", before),
        Call(tool, {argument: str(project / file)}),
    ]


def editing(program: AgentProgram, project: Path) -> Step:
    """Return the step that writes `edited` for `text` in a file of `project`."""
    file, old = f"{project}/README.md", f"the text of {project.name}"
    new = old.replace("text", "edited")
    patch = f"*** Begin Patch\n*** Update File: {file}\n@@\n-{old}\n+{new}\n*** End Patch\n"
    arguments = {"input": patch}
    for names, value in (
        (("file_path", "filePath", "path"), file),
        (("old_string", "oldString", "old_str"), old),
        (("new_string", "newString", "new_str"), new),
    ):
        arguments |= dict.fromkeys(names, value)
    return Call(EDIT_TOOLS[program.name], arguments)


def was_read(program: AgentProgram, project: Path, by_shell: str, by_file_tool: str) -> list[bool]:
    """Return whether each result of `reading` has the content of the file."""
    text = f"the text of {project.name}"
    sign = _IMAGE_SIGN if program.name in IMAGE_READERS else text
    return [text in by_shell, sign in by_file_tool]


def draw_dot(path: Path) -> None:
    """Write a picture of one pixel."""
    parts = {
        b"IHDR": struct.pack(">IIBBBBB", 1, 1, 8, 2, 0, 0, 0),
        b"IDAT": zlib.compress(b"\0\0\0\0"),
        b"IEND": b"",
    }
    with path.open("wb") as file:
        file.write(b"\x89PNG\r\n\x1a\n")
        for name, data in parts.items():
            crc = zlib.crc32(name + data)
            file.write(struct.pack(">I", len(data)) + name + data + struct.pack(">I", crc))
