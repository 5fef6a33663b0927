"""Recognize programs by what the system reports about their processes. Pure.

Two questions need opposite care. Whether a process is *an agent's* is asked of every name that it
has: the executable, the name and the arguments that it may have chosen, and its script. Whether it
is *a person's* is asked of the executable alone, because a process can call itself `bash`.

* An executable counts by its name only in a system place. Elsewhere, a person has to allow it.
* An interpreter counts by its script, and never by its own name.
* A program that hides counts only as a login over ssh, right below a server that runs as root.
* Without access to the executable, as with stricter settings of the service, only the name of the
  process is left.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Mapping
from posixpath import basename, join, normpath
from shlex import quote

from rootsd.core.agents import Agent
from rootsd.core.known_programs import (
    EDITOR_FOLDERS,
    EDITOR_SERVER,
    EXTENSION_FOLDERS,
    INTERPRETERS,
    JETBRAINS_MAIN,
    KNOWN_PROGRAMS,
    KNOWN_SCRIPTS,
    MULTICALL,
    SYSTEM_PLACES,
    ProgramUse,
)
from rootsd.core.labels import safe_label
from rootsd.core.processes import Process, ProcessChain, ProgramSight, describe_process

_EXTENSIONS = (".js", ".mjs", ".cjs", ".py", ".rb")
_VERSION = re.compile(r"[-.]?\d[\d.]*$")
_WRAPPED = re.compile(r"\.(.+)-wrapped$")  # Nix hides the real program behind a wrapper
_DELETED = " (deleted)"  # proc(5): a package manager has replaced it since
_APP_IMAGE = re.compile(r"/tmp/\.mount_[^/]+/")  # noqa: S108 - where AppImages mount themselves
_NAME_BYTES = 15  # TASK_COMM_LEN without its end: the kernel cuts longer names
_MODULE = " -m "
# Options without a value that change nothing about which script runs. Below any other option, the
# script is not known.
_PLAIN_OPTIONS = re.compile(
    r"-[bBdEhiIOPqsSuvx]+|-|--no-warnings|--enable-source-maps|--no-deprecation"
    r"|--max-old-space-size=\d+"
)


def _by_name(listed: Mapping[ProgramUse, frozenset[str]]) -> dict[str, ProgramUse]:
    return {name: use for use, names in listed.items() for name in names}


_SYSTEM_PLACES: tuple[str, ...] = SYSTEM_PLACES
_PROGRAMS, _SCRIPTS = _by_name(KNOWN_PROGRAMS), _by_name(KNOWN_SCRIPTS)
_BY_CUT_NAME = {name[:_NAME_BYTES]: use for name, use in _PROGRAMS.items()}


def uses_of(
    chain: ProcessChain, allowed: Collection[str] = frozenset()
) -> list[ProgramUse | None]:
    """Return for each process in `chain` why it counts as a person's program, or None.

    The first one may be rootsd itself, as the caller of a command. `allowed` has what a person has
    added, as `allowance` returns it.
    """
    uses = [_use_in(chain, place, allowed) for place in range(len(chain))]
    return [
        None if use is ProgramUse.ROOTSD and place > 0 else use for place, use in enumerate(uses)
    ]


def allowance(process: Process) -> str:
    """Return what a person has to add so that this program counts as theirs, or nothing.

    It is the path of an executable or of a script, or `python -m NAME`. There is nothing to add
    for a program that is hidden, or for an interpreter that runs code from its arguments or input.
    """
    path = _path(process)
    if process.sight is not ProgramSight.SEEN or not path:
        return ""
    return _script_identity(process) if is_interpreter(path) else path


def allow_command(process: Process) -> str:
    """Return the command that adds this program, or nothing."""
    program = allowance(process)
    return f"rootsd guard allow {quote(program)}" if program and program.isprintable() else ""


def describe_program(process: Process) -> str:
    """Return the name of a process, what it runs, and its pid, safe to show."""
    if process.sight is ProgramSight.HIDDEN:
        return f"{describe_process(process)}, which hides its program"
    program = allowance(process) or _path(process)
    if not program:
        return describe_process(process)
    shown = f"{safe_label(process.name)} ({safe_label(program, limit=None)}"
    if is_interpreter(program):
        shown += ", with a script that rootsd cannot tell"
    return f"{shown}), pid {process.pid}"


def is_interpreter(path: str) -> bool:
    """Return whether the executable at `path` runs scripts of any kind."""
    return not INTERPRETERS.isdisjoint(_forms(basename(path)))


def agents_of(process: Process, agents: Iterable[Agent]) -> list[Agent]:
    """Return each agent whose program `process` is."""
    script = _script(process)
    names = _names(process, script)
    return [
        agent
        for agent in agents
        if not agent.names.isdisjoint(names)
        or (script is not None and any(map(script.__contains__, agent.packages)))
    ]


def names_of(process: Process) -> set[str]:
    """Return the names of a process: of its executable, of its script, and its own for itself."""
    return _names(process, _script(process))


def _names(process: Process, script: str | None) -> set[str]:
    # tmux and sshd say more behind a colon.
    names = {_text(process.name), _text(process.name).partition(":")[0]}
    if process.program:
        names.update(_forms(basename(_path(process))))
    if process.arguments:
        names.add(base_name(process.arguments[0]).lstrip("-"))
    if script is not None:
        names.update(_script_names(script))
    return names


def has_use(process: Process, uses: Collection[ProgramUse]) -> bool:
    """Return whether one of the names of a process is listed for one of `uses`."""
    return any(
        _PROGRAMS.get(name) in uses or _SCRIPTS.get(name) in uses for name in names_of(process)
    )


def base_name(path: bytes) -> str:
    """Return the last part of a path."""
    return _text(path.rpartition(b"/")[2])


def _use_in(chain: ProcessChain, place: int, allowed: Collection[str]) -> ProgramUse | None:
    process = chain[place]
    match process.sight:
        case ProgramSight.OF_ROOT:
            return ProgramUse.SYSTEM
        case ProgramSight.HIDDEN:
            return _hidden_use(process, chain[place + 1 :])
        case ProgramSight.OUT_OF_REACH:
            return _use_by_name(process)
        case ProgramSight.SEEN:
            return _use_by_path(process, allowed)


def _hidden_use(process: Process, above: ProcessChain) -> ProgramUse | None:
    """Return REMOTE for the part of sshd that runs as its user: it hides from that user."""
    named = _BY_CUT_NAME.get(_text(process.name).partition(":")[0])
    if named is not ProgramUse.REMOTE or process.parent <= 1:
        return None
    # With hidepid (proc(5)), a process of root is not there at all.
    return named if not above or above[0].sight is ProgramSight.OF_ROOT else None


def _use_by_name(process: Process) -> ProgramUse | None:
    name = _text(process.name).partition(":")[0]
    words = (name, *(base_name(word) for word in process.arguments[:1]))
    if any(is_interpreter(word) for word in words):
        return _use_of_script(process, frozenset())
    return _BY_CUT_NAME.get(name) or next(
        (_PROGRAMS[form] for form in _forms(name) if form in _PROGRAMS), None
    )


def _use_by_path(process: Process, allowed: Collection[str]) -> ProgramUse | None:
    path = _path(process)
    if not path:
        return None
    forms = _forms(basename(path))
    if not INTERPRETERS.isdisjoint(forms):
        if _is_editor_on_its_interpreter(process, path):
            return ProgramUse.EDITOR
        return _use_of_script(process, allowed)
    if path in allowed:
        return ProgramUse.ALLOWED
    if _editor_folder(path) and EDITOR_SERVER.fullmatch(basename(path)):
        return ProgramUse.EDITOR
    if not MULTICALL.isdisjoint(forms) and process.arguments:
        forms = {base_name(process.arguments[0]).lstrip("-")}
    if "rootsd" in forms and is_system_place(path):
        return ProgramUse.ROOTSD
    use = next((_PROGRAMS[form] for form in forms if form in _PROGRAMS), None)
    if is_system_place(path):
        return use
    is_image = use in (ProgramUse.EDITOR, ProgramUse.TERMINAL) and _APP_IMAGE.match(path)
    return use if is_image else None


def _editor_folder(path: str) -> str:
    """Return the folder of an editor that `path` is in, or nothing for what an extension brought.

    Editors install themselves, or their servers, in home folders. They put extensions there, too,
    and an extension may be an agent.
    """
    parts = path.split("/")
    if not EXTENSION_FOLDERS.isdisjoint(parts):
        return ""
    places = [place for place, part in enumerate(parts) if part in EDITOR_FOLDERS]
    return "/".join(parts[: places[0] + 1]) + "/" if places else ""


def _is_editor_on_its_interpreter(process: Process, path: str) -> bool:
    """Return whether this is an editor on the interpreter that it brought along.

    It is not if it runs something else, such as the process for an editor's extensions.
    """
    installed, separator, _ = path.rpartition("/jbr/")
    folder = _editor_folder(path)
    if not separator and not folder:
        return False
    words = [_text(word) for word in process.arguments[1:]]
    if any("extensionHost" in word for word in words):
        return False
    if separator:  # the Java of JetBrains, whose class path names its own libraries
        return JETBRAINS_MAIN in words or any(f"{installed}/lib/" in word for word in words)
    script = next((word for word in words if not word.startswith("-")), "")
    return _editor_folder(normpath(script)) == folder


def _use_of_script(process: Process, allowed: Collection[str]) -> ProgramUse | None:
    identity = _script_identity(process)
    if not identity:
        return None
    if identity in allowed:
        return ProgramUse.ALLOWED
    name = identity.rpartition(_MODULE)[2] if _MODULE in identity else basename(identity)
    if name == "rootsd":
        return ProgramUse.ROOTSD
    if not is_system_place(identity):
        return None
    return next((_SCRIPTS[each] for each in _script_names(identity) if each in _SCRIPTS), None)


def _script_identity(process: Process) -> str:
    """Return the absolute path of the script, or `python -m NAME`. Empty if it is uncertain."""
    rest = map(_text, process.arguments[1:])
    for argument in rest:
        if argument == "-m":
            module = next(rest, "")
            return f"python{_MODULE}{module}" if _runs_python(process) and module else ""
        if not argument.startswith("-"):
            folder = _text(process.folder)
            path = argument if argument.startswith("/") else join(folder, argument)
            return normpath(path) if path.startswith("/") else ""
        if _PLAIN_OPTIONS.fullmatch(argument) is None or argument == "-":
            return ""
    return ""


def _runs_python(process: Process) -> bool:
    return not {"python", "pypy", "Python"}.isdisjoint(_forms(basename(_path(process)))) or (
        _text(process.name).startswith("python")
    )


def is_system_place(path: str) -> bool:
    """Return whether programs at `path` are installed for the whole machine."""
    return path.startswith(_SYSTEM_PLACES)


def _forms(name: str) -> set[str]:
    """Return the name of an executable, also without what distributions add to it."""
    wrapped = _WRAPPED.fullmatch(name)
    plain = wrapped[1] if wrapped else name
    forms = {name, plain, _VERSION.sub("", plain) or plain}
    if plain.startswith("vim."):  # vim.basic, vim.gtk3
        forms.add("vim")
    return forms


def _path(process: Process) -> str:
    return _text(process.program).removesuffix(_DELETED)


def _script(process: Process) -> str | None:
    """Return the path of the script, or the module of `python -m`, that an interpreter runs.

    It may be the value of an option. So this is good for suspicion only.
    """
    if not process.arguments or not _interprets(process):
        return None
    rest = map(_text, process.arguments[1:])
    for argument in rest:
        if argument in ("-c", "-e", "-p", "--eval", "--print"):
            return None
        if argument == "-m":
            return next(rest, "")
        if not argument.startswith("-"):
            return argument
    return None


def _interprets(process: Process) -> bool:
    names = {basename(_path(process)), base_name(process.arguments[0]).lstrip("-")}
    return any(is_interpreter(name) or _PROGRAMS.get(name) is ProgramUse.SHELL for name in names)


def _script_names(script: str) -> set[str]:
    name = basename(script)
    return {name, *(name.removesuffix(end) for end in _EXTENSIONS if name.endswith(end))}


def _text(raw: bytes) -> str:
    return raw.decode("utf-8", "surrogateescape")
