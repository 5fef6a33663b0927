"""`rootsd shell-init`: the functions in real shells, among folders with hostile names."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
from base64 import b64encode
from collections.abc import Callable
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pexpect
import pytest

from rootsd.core.errors import BadConfig, ErrorCode, Exit
from rootsd.core.labels import exact_path
from rootsd.core.paths import text_of
from rootsd.daemon.prompt_file import plain_tag, prompt_line
from rootsd.service import shell_scripts
from rootsd.service.shell_scripts import SHELLS, agents_line, script
from support.fake_daemon import FakeDaemon, Objection, a_listing, an_item
from support.sizes import Sizes
from support.terminal import HANG_GUARD, Shell

START = {"bash": ("--norc", "--noprofile"), "zsh": ("-f",), "fish": ("--no-config",)}
LOAD = {
    "bash": 'eval "$(rootsd shell-init bash)"',
    "zsh": 'eval "$(rootsd shell-init zsh)"',
    "fish": "rootsd shell-init fish | source",
}
HOSTILE = (
    b"$(touch pwned)", b"`touch pwned`", b"; touch pwned;", b"(touch pwned)", b"a'b\"c", b"a  b ",
    b"-rf", b"two\nlines", b"end\n", b"\n", b"*", b"~root", b"!!", b"\xff\xfe", b"%F{red}", b"\\",
    b"$IFS", b"{a,b}", b"tab\tx", b"\x1b[2J", b"#x", b"=ls", b"&",
)  # fmt: skip


# A fake fzf. It keeps what it gets, and picks the line that contains $PICK.
FZF = """\
cat >"$HOME/offered"
printf '%s\\n' "$@" >"$HOME/arguments"
while IFS= read -r line; do
    case $line in *"$PICK"*) printf '%s\\n' "$line"; exit ;; esac
done <"$HOME/offered"
exit 130
"""
REAL = """\
[ "$1" = shell-init ] && exec cat "$HOME/functions"
exec {program} "$@"
"""
# A fake rootsd with prepared paths. Without a path for the last argument, it prints the argument.
PREPARED = """\
case $1$2 in
shell-init*) exec cat "$HOME/functions" ;;
open--) file=$HOME/line-$3 name=$3 ;;
open-0) file=$HOME/nul-$4 name=$4 ;;
esac
[ -f "$file" ] && exec cat "$file"
printf '<%s>\\n' "$name" >&2
exit 5
"""
BASE = ("sh", "touch", "cat", "seq", "id", "uname")


@dataclass(frozen=True)
class Person:
    """A person in one kind of shell, who has `rootsd` and few other programs."""

    shell: str
    home: Path

    def install(self, program: str, text: str) -> None:
        """Put a shell script on the PATH."""
        file = self.home / "bin" / program
        file.write_text(f"#!/bin/sh\n{text}\n")
        file.chmod(0o755)

    def environment(self) -> dict[str, str]:
        """Return the environment of the shell."""
        ours = {"HOME": str(self.home), "PATH": str(self.home / "bin"), "TERM": "xterm"}
        return {**os.environ, **ours}

    def types(
        self, script: str, answer: str = "", **variables: str
    ) -> subprocess.CompletedProcess[bytes]:
        """Run `script` in the shell, which has loaded the functions; `answer` is its input."""
        return subprocess.run(
            [shutil.which(self.shell) or "", *START[self.shell], "-c",
             f"{LOAD[self.shell]}\n{script}"],
            capture_output=True, check=False, timeout=HANG_GUARD, cwd=self.home,
            env={**self.environment(), **variables}, input=answer.encode(),
        )  # fmt: skip


@pytest.fixture(params=[pytest.param(name, marks=pytest.mark.needs(name)) for name in SHELLS])
def person(request: pytest.FixtureRequest, tmp_path: Path, program: str) -> Person:
    """A person in an empty home."""
    (tmp_path / "bin").mkdir()
    for name in BASE:
        found = shutil.which(name)
        assert found is not None
        (tmp_path / "bin" / name).symlink_to(found)
    person = Person(request.param, tmp_path)
    (tmp_path / "functions").write_text(script("shell-init", person.shell))
    person.install("rootsd", REAL.format(program=program))
    return person


@pytest.fixture
def roots(daemon: FakeDaemon, tmp_path: Path) -> list[Path]:
    """Hostile folders that are roots, with the ids `h0h`, `h1h`, and so on."""
    folders = [tmp_path / os.fsdecode(name) for name in HOSTILE]
    items = {}
    for number, folder in enumerate(folders):
        folder.mkdir()
        id_ = f"h{number}h"
        items[id_] = an_item(
            text_of(os.fsencode(folder.name)), id=id_, verdict="approved", published=True,
            path=None, path_b64=b64encode(os.fsencode(folder)).decode(),
        )  # fmt: skip
    url = an_item("docs", id="u1u1", verdict="approved", published=True, kind="uri", path=None,
                  uri="https://example.com")  # fmt: skip

    def answer(params: dict[str, Any]) -> dict[str, Any]:
        if not (refs := params.get("refs")):
            return a_listing(url, *items.values())
        if (item := items.get(refs[0])) is None:
            raise Objection(ErrorCode.NOTHING_MATCHED, "no project is called so", "rootsd ls")
        return a_listing(item)

    daemon.answers["projects"] = answer
    return folders


def where(done: subprocess.CompletedProcess[bytes]) -> list[bytes]:
    """Return the folders that a script printed, each followed by NUL."""
    return done.stdout.split(b"\0")[:-1]


HERE = "printf '%s\\0' \"$PWD\""


def test_rcd_changes_to_a_folder_with_any_name_and_runs_nothing(
    person: Person, roots: list[Path]
) -> None:
    person.install("rootsd", PREPARED)
    for number, root in enumerate(roots):
        (person.home / f"line-h{number}h").write_bytes(os.fsencode(root) + b"\n")
        (person.home / f"nul-h{number}h").write_bytes(os.fsencode(root) + b"\0")
    script = "\n".join(f"rcd h{number}h; {HERE}" for number in range(len(roots)))
    done = person.types(script)
    assert where(done) == [os.fsencode(root) for root in roots]
    assert done.stderr == b""
    assert not list(person.home.rglob("pwned"))


def test_rcd_passes_its_argument_on_unchanged(person: Person) -> None:
    person.install("rootsd", PREPARED)
    typed = ["$(touch pwned)", "-rf", "a b", "*", "--help", "", "!!", "`touch pwned`"]
    status = "$status" if person.shell == "fish" else "$?"
    done = person.types("\n".join([*(f"rcd '{word}'; echo {status}" for word in typed), HERE]))
    assert done.stdout == b"5\n" * len(typed) + os.fsencode(person.home) + b"\0"
    assert done.stderr.decode().splitlines() == [f"<{word}>" for word in typed]
    assert not (person.home / "pwned").exists()


def test_rcd_stays_where_it_is_and_says_why(daemon: FakeDaemon, person: Person) -> None:
    daemon.answers["projects"] = a_listing(an_item())
    status = "$status" if person.shell == "fish" else "$?"
    done = person.types(f"rcd api; echo {status}; rcd a b; echo {status}; {HERE}")
    assert done.stdout == b"3\n2\n" + os.fsencode(person.home) + b"\0"
    assert done.stderr.splitlines() == [
        b"error: api is pending", b"  try: rootsd approve r7k2", b"usage: rcd [NAME]",
    ]  # fmt: skip


def test_without_a_name_fzf_picks_a_root(person: Person, roots: list[Path]) -> None:
    person.install("fzf", FZF)
    done = person.types(f"rcd; {HERE}", PICK="two")
    assert where(done) == [os.fsencode(roots[HOSTILE.index(b"two\nlines")])]
    offered = (person.home / "offered").read_bytes().decode()
    lines = [line.split("\t") for line in offered.removesuffix("\n").split("\n")]
    assert [line[0] for line in lines] == [f"h{number}h" for number in range(len(roots))]
    assert all(len(line) == 2 and line[1].isprintable() for line in lines)
    assert lines[-1][1].endswith(exact_path(str(roots[-1])))
    assert not list(person.home.rglob("pwned"))


@pytest.mark.needs("fzf")
def test_the_real_fzf_picks_a_root(person: Person, roots: list[Path]) -> None:
    fzf = shutil.which("fzf")
    assert fzf is not None
    (person.home / "bin" / "fzf").symlink_to(fzf)
    done = person.types(f"rcd; {HERE}", FZF_DEFAULT_OPTS="--print-query --exact --filter=two")
    assert where(done) == [os.fsencode(roots[HOSTILE.index(b"two\nlines")])]


def test_without_a_choice_rcd_stays(person: Person, roots: list[Path]) -> None:
    person.install("fzf", FZF)
    status = "$status" if person.shell == "fish" else "$?"
    done = person.types(f"rcd; echo {status}; {HERE}", PICK="nothing has this name")
    assert done.stdout == b"130\n" + os.fsencode(person.home) + b"\0"


def test_without_fzf_a_number_picks_a_root(person: Person, roots: list[Path]) -> None:
    done = person.types(f"rcd; {HERE}", answer="0\nx\n$(touch pwned)\na[$(touch pwned)]\n08\n8\n")
    assert where(done) == [os.fsencode(roots[7])]
    assert b"$(touch pwned)" in done.stderr
    assert not list(person.home.rglob("pwned"))
    done = person.types(f"rcd; {HERE}", answer="")
    assert where(done) == [os.fsencode(person.home)]


def test_without_roots_rcd_names_the_next_command(daemon: FakeDaemon, person: Person) -> None:
    daemon.answers["projects"] = a_listing()
    assert b"No root is published. Try: rootsd status" in person.types("rcd").stderr


def test_tab_completes_the_names_of_roots(
    daemon: FakeDaemon, person: Person, sizes: Sizes
) -> None:
    names = {"acme/api": "a1a1", "acme@home": "m2m2", "$(touch pwned)": "x1x1"}
    daemon.answers["projects"] = a_listing(
        *(an_item(name, id=id_, verdict="approved", published=True) for name, id_ in names.items())
    )
    for folder in ("subfolder", "my folder"):
        (person.home / folder).mkdir()
    child = pexpect.spawn(
        shutil.which(person.shell) or "", [*START[person.shell], "-i"], env=person.environment(),
        cwd=str(person.home), timeout=HANG_GUARD, encoding="utf-8", dimensions=(40, 200),
    )  # fmt: skip
    with closing(child):
        show = 'echo "<$argv>"' if person.shell == "fish" else 'echo "<$*>"'
        end = "end" if person.shell == "fish" else "}"
        start = "function rcd;" if person.shell == "fish" else "rcd() {"
        first = "autoload -Uz compinit; compinit -u -D; " if person.shell == "zsh" else ""
        child.send(f"{first}{LOAD[person.shell]}; {start} {show}; {end}; echo loa''ded\r")
        child.expect_exact("loaded")
        every = (
            ("acme@\t", "acme@home"), ("x\t", "x1x1"), ("./my\\ f\t", "./my folder"),
            ("acme/\t", "acme/api"), ("./sub\t", "./subfolder"),
        )  # fmt: skip
        for typed, word in sizes.pick(test=every[:3], check=every, soak=every):
            child.send(f"rcd {typed}\r")
            child.expect(r"<(.*?)/?>\r?\n")
            assert isinstance(child.match, re.Match)
            assert child.match.group(1) == word
    assert {asked["select"] for asked in daemon.asked("projects")} == {"published"}
    assert not list(person.home.rglob("pwned"))


SHOWN = {
    "bash": """PS1='${ROOTSD_PROMPT}> '; eval "$PROMPT_COMMAND"; printf %s "${PS1@P}" """,
    "zsh": "setopt prompt_subst; PROMPT='$ROOTSD_PROMPT> '; $precmd_functions; print -nP $PROMPT",
    "fish": 'emit fish_prompt; echo -n "$ROOTSD_PROMPT> "',
}


@pytest.fixture
def prompting(person: Person, rootsd_dir: Path) -> Callable[[str], str]:
    """Return the prompt of the person after the daemon wrote a line."""
    person.install("rootsd", PREPARED)
    (rootsd_dir / "run").mkdir(parents=True, exist_ok=True)

    def prompt(line: str) -> str:
        (rootsd_dir / "run" / "prompt").write_text(line)
        done = person.types(SHOWN[person.shell])
        assert done.stderr == b""
        return done.stdout.decode()

    return prompt


def test_the_prompt_has_the_pending_projects_and_the_focus(
    prompting: Callable[[str], str], person: Person
) -> None:
    pid = os.getpid()
    assert prompting(prompt_line(pid, 3, "work")) == "work: 3 pending > "
    assert prompting(prompt_line(pid, 0, "work")) == "work > "
    assert prompting(prompt_line(pid, 3, None)) == "3 pending > "
    assert prompting(prompt_line(pid, 0, None)) == "> "
    hostile = "$(touch pwned)`touch pwned`%F{red}\\u!!"
    assert prompting(prompt_line(pid, 1, hostile)) == f"{plain_tag(hostile)}: 1 pending > "
    assert not list(person.home.rglob("pwned"))


def test_the_prompt_ignores_the_file_of_a_daemon_that_crashed(
    prompting: Callable[[str], str],
) -> None:
    ended = subprocess.Popen(["true"])
    ended.wait()
    assert prompting(prompt_line(ended.pid, 3, "work")) == "> "
    assert prompting("") == "> "


def test_a_prompt_without_a_daemon_is_silent_and_keeps_the_status(person: Person) -> None:
    person.install("rootsd", PREPARED)
    done = person.types(SHOWN[person.shell])
    assert (done.stdout, done.stderr) == (b"> ", b"")
    if person.shell != "fish":  # fish keeps the status around its events itself
        assert person.types("false; rootsd_prompt; echo $?").stdout == b"1\n"


@pytest.mark.needs("strace")
def test_the_prompt_starts_no_process(person: Person, rootsd_dir: Path) -> None:
    person.install("rootsd", PREPARED)
    (rootsd_dir / "run").mkdir(parents=True, exist_ok=True)
    (rootsd_dir / "run" / "prompt").write_text(prompt_line(os.getpid(), 3, "work"))
    strace, shell = shutil.which("strace"), shutil.which(person.shell)
    assert strace is not None
    assert shell is not None
    (person.home / "bin" / "strace").symlink_to(strace)

    def processes(script: str) -> int:
        log = person.home / "calls"
        traced = ("strace", "-f", "-o", str(log), "-e", "trace=process", shell)
        subprocess.run(
            [*traced, *START[person.shell], "-c", f"{LOAD[person.shell]}\n{script}"],
            check=True, timeout=HANG_GUARD, env=person.environment(), cwd=person.home,
        )  # fmt: skip
        return len(re.findall(r" (?:clone3?|v?fork|execve)\(", log.read_text()))

    assert processes("rootsd_prompt\n" * 5) == processes("")
    assert processes("sh -c :") > processes("")


@pytest.mark.parametrize("name", SHELLS)
def test_the_functions_are_printed_as_they_are_shipped(shell: Shell, name: str) -> None:
    done = shell.run("shell-init", name)
    assert (done.status, done.out, done.err) == (0, script("shell-init", name), "")
    assert json.loads(shell.run("shell-init", name, "--json").out)["script"] == done.out


def test_the_functions_load_twice_and_under_strict_options(person: Person) -> None:
    strict = {"bash": "set -eu -o pipefail", "zsh": "setopt err_exit no_unset", "fish": ""}
    done = person.types(f"{strict[person.shell]}\n{LOAD[person.shell]}\necho fine")
    assert (done.stdout, done.stderr) == (b"fine\n", b"")


# Agents that start behind the wall

# A fake rootsd prints its words. Its answer to `review` is $ANSWER.
TYPED = """\
[ "$1" = shell-init ] && exec cat "$HOME/functions"
printf 'rootsd'; printf '<%s>' "$@"; echo
[ "$1" != review ] || exit "${ANSWER:-0}"
"""
AGENT = "printf 'outside'; printf '<%s>' \"$@\"; echo"


@dataclass(frozen=True)
class Agents:
    """A person whose shell starts `claude` and `codex` behind the wall. `command` is rootsd."""

    person: Person
    command: Path

    def types(self, script: str, **variables: str) -> tuple[list[str], str]:
        """Return the lines that a script prints, and what it prints to standard error."""
        done = self.person.types(script, **variables)
        return done.stdout.decode().splitlines(), done.stderr.decode()

    @property
    def status(self) -> str:
        """The words that print the last exit status."""
        return "echo $status" if self.person.shell == "fish" else "echo $?"


@pytest.fixture
def agents(person: Person, rootsd_dir: Path, monkeypatch: pytest.MonkeyPatch) -> Agents:
    (rootsd_dir / "config").mkdir(parents=True, exist_ok=True)
    config = rootsd_dir / "config" / "config.toml"
    config.write_text('[confine]\nagents = ["claude", "codex"]\n')
    folder = person.home / "a $(touch pwned)'\"\\ b"
    folder.mkdir()
    command = folder / "rootsd"
    for program, text in (("rootsd", TYPED), ("claude", AGENT), ("codex", AGENT)):
        person.install(program, text)
    shutil.copy(person.home / "bin" / "rootsd", command)
    monkeypatch.setattr("sys.argv", [str(command)])
    functions = script("shell-init", person.shell) + agents_line(person.shell)
    (person.home / "functions").write_text(functions)
    return Agents(person, command)


def test_a_typed_agent_starts_behind_the_wall_with_its_words_unchanged(agents: Agents) -> None:
    words = ["$(touch pwned)", "a b", "*", "", "-rf", "!!", "--", "--outside"]
    typed = " ".join(f"'{word}'" for word in words)
    lines, errors = agents.types(f"claude {typed}\ncommand claude {typed}\ngemini")
    shown = "".join(f"<{word}>" for word in words)
    assert lines == [f"rootsd<confine><--><claude>{shown}", f"outside{shown}"]
    assert "gemini" in errors  # it is not in the list, and not there
    assert not list(agents.person.home.rglob("pwned"))


@pytest.mark.parametrize("name", [b"$(touch pwned)", b"two\nlines", b"-rf", b"\xff", b"a'b\"c"])
def test_a_project_changes_nothing_by_its_name_its_programs_or_its_variables(
    agents: Agents, name: bytes
) -> None:
    folder = agents.person.home / os.fsdecode(name)
    folder.mkdir()
    for program in ("rootsd", "claude"):
        (folder / program).write_text("#!/bin/sh\necho of the project\n")
        (folder / program).chmod(0o755)
    (agents.person.home / "go").symlink_to(folder)
    path = f".:{agents.person.home}/bin"
    fish = agents.person.shell == "fish"
    names = ("command", "rootsd", "agent", "_ROOTSD_COMMAND", "__rootsd_command")
    own = [f"set -gx {name} ./rootsd" if fish else f"export {name}=./rootsd" for name in names]
    typed = "\n".join([LOAD[agents.person.shell], "cd go", *own, "claude x"])
    lines, _ = agents.types(typed, PATH=path, ROOTSD_CONFINED="1")
    assert lines == ["rootsd<confine><--><claude><x>"]
    control, _ = agents.types("cd go\ncommand claude x", PATH=path)
    assert control == ["of the project"]
    assert not list(agents.person.home.rglob("pwned"))


def test_outside_asks_first_and_does_not_start_after_a_no(agents: Agents) -> None:
    asked = "rootsd<review><--before><claude>"
    typed = f"claude --outside 'a b' --outside; {agents.status}"
    assert agents.types(typed)[0] == [asked, "outside<a b><--outside>", "0"]
    assert agents.types(typed, ANSWER="7")[0] == [asked, "7"]


def test_without_rootsd_an_agent_does_not_start_and_a_message_says_why(agents: Agents) -> None:
    agents.command.unlink()
    for words in ("x", "--outside"):
        lines, errors = agents.types(f"claude {words}; {agents.status}")
        assert lines == ["127"]
        assert "claude starts behind the wall, but" in errors
        assert "command claude" in errors
    assert agents.types("command claude x")[0] == ["outside<x>"]


def test_a_function_of_the_person_stays_and_the_first_prompt_says_so_once(agents: Agents) -> None:
    shell = agents.person.shell
    mine = "function codex; echo mine; end" if shell == "fish" else "codex() { echo mine; }"
    prompt = {"bash": 'eval "$PROMPT_COMMAND"', "zsh": "$precmd_functions"}
    show = prompt.get(shell, "emit fish_prompt")
    for early, late in ((f"{mine}\n{LOAD[shell]}", ""), ("", mine)):
        lines, errors = agents.types(f"{early}\n{late}\n{show}\n{show}\ncodex; claude x")
        assert lines[-2:] == ["mine", "rootsd<confine><--><claude><x>"]
        if late:
            assert errors.count("codex is") == 1
            assert "rootsd confine -- codex" in errors
            assert "claude is" not in errors


@pytest.mark.parametrize(
    ("meaning", "is_told"), [("claude --fast", False), ("/opt/claude", True), ("claudette", True)]
)
def test_an_alias_that_leads_elsewhere_is_told(
    agents: Agents, meaning: str, is_told: bool
) -> None:
    if agents.person.shell == "fish":  # its alias is a function, which replaces ours
        lines, _ = agents.types(f"{LOAD['fish']}\nalias claude='echo mine'\nclaude x")
        assert lines == ["mine x"]
        return
    prompt = {"bash": 'eval "$PROMPT_COMMAND"', "zsh": "$precmd_functions"}
    aliases = {"bash": "shopt -s expand_aliases\n"}.get(agents.person.shell, "")
    script = f"{aliases}alias claude='{meaning}'\n{LOAD[agents.person.shell]}\n"
    lines, errors = agents.types(f"{script}{prompt[agents.person.shell]}\neval 'claude x'")
    assert ("claude is an alias" in errors) is is_told
    assert lines == ([] if is_told else ["rootsd<confine><--><claude><--fast><x>"])


def test_the_functions_of_agents_load_twice_and_under_strict_options(agents: Agents) -> None:
    shell = agents.person.shell
    strict = {"bash": "set -eu -o pipefail", "zsh": "setopt err_exit no_unset", "fish": ""}
    prompt = {"bash": 'eval "$PROMPT_COMMAND"', "zsh": "$precmd_functions"}
    script = f"{strict[shell]}\n{LOAD[shell]}\n{prompt.get(shell, 'emit fish_prompt')}\nclaude x"
    assert agents.types(script) == (["rootsd<confine><--><claude><x>"], "")


@pytest.mark.parametrize(
    "agents_in_file", ["1", '"claude"', '["$(touch pwned)"]', '["a b"]', '["-x"]', '[""]', "[1]",
                       '["a\\nb"]', "[[]]"]
)  # fmt: skip
def test_names_that_are_no_programs_define_nothing_and_are_told(
    shell: Shell, rootsd_dir: Path, agents_in_file: str
) -> None:
    (rootsd_dir / "config").mkdir(parents=True, exist_ok=True)
    (rootsd_dir / "config" / "config.toml").write_text(f"[confine]\nagents = {agents_in_file}\n")
    with pytest.raises(BadConfig, match="which agents start behind the wall"):
        agents_line("bash")
    assert shell.run("shell-init", "bash").status == Exit.BAD_CONFIG
    assert shell.run("config", "check").status == Exit.BAD_CONFIG


def test_a_shell_starts_with_a_broken_configuration_and_says_so(
    rootsd_dir: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (rootsd_dir / "config").mkdir(parents=True, exist_ok=True)
    (rootsd_dir / "config" / "config.toml").write_text("[confine")
    assert shell_scripts.main("shell-init", "bash") == 0
    printed = capsys.readouterr()
    assert printed.out == script("shell-init", "bash")
    assert "cannot tell which agents start behind the wall" in printed.err
    assert "rootsd config check" in printed.err
