"""The README and the docs are true: commands run, snippets parse, and output is as printed."""

from __future__ import annotations

import json
import re
import shlex
import subprocess
import tomllib
from collections.abc import Iterator
from pathlib import Path

import pytest

from support.documents import (
    CLONED_ADDRESS,
    ORIGIN,
    Block,
    Reader,
    blocks,
    fits,
    make_sources,
)
from support.forking_program import forking_program
from support.self_approval import ATTEMPTS, Attempt, Outcome
from support.terminal import Shell
from support.user_session import UserSession

TOP = Path(__file__).parent.parent
README, CLIENTS = TOP / "README.md", TOP / "docs" / "CLIENTS.md"
GUIDE = TOP / "docs" / "guide"
START, SHELL = GUIDE / "start.md", GUIDE / "shell.md"
DOCUMENTS = (README, *sorted((TOP / "docs").rglob("*.md")), *sorted(TOP.glob("[CS]*.md")))
# Documents that show commands with their output.
GUIDES = (README, *sorted(GUIDE.glob("*.md")))
# Blocks that cannot run in a test's home, by their first words, with the test that covers each: a
# CI stage, a real service manager, a real sandbox.
ELSEWHERE = {
    "rootsd service install": "tests/e2e/test_service.py",
    "run=/run/user": "tests/e2e/test_sandbox.py",
    "rootsd down": "tests/cli/answers/test_purge.py",
}
COMMAND = "/home/you/.local/bin/rootsd"


def first_words(block: Block) -> str:
    return block.commands[0][0]


def console_blocks() -> list[Block]:
    """Return the blocks of commands in all guides."""
    return [block for guide in GUIDES for block in blocks(guide, "console")]


def run_here(guide: Path) -> list[Block]:
    return [
        block
        for block in blocks(guide, "console")
        if not any(first_words(block).startswith(words) for words in ELSEWHERE)
    ]


def guides_to_run() -> list[object]:
    """Return the guides with commands that run here, with what the commands need."""
    needs = {"wall": ("bash", "wall")}
    return [
        pytest.param(
            guide, marks=pytest.mark.needs(*needs.get(guide.stem, ("bash",))), id=guide.stem
        )
        for guide in GUIDES
        if run_here(guide)
    ]


@pytest.fixture
def reader(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Reader]:
    """The home that the README is read in."""
    home = tmp_path / "home"
    monkeypatch.setenv("ROOTSD_DIR", str(tmp_path / "rootsd"))
    make_sources(home)
    monkeypatch.setenv("GIT_CONFIG_COUNT", "4")
    monkeypatch.setenv("GIT_CONFIG_KEY_3", f"url.{home / ORIGIN}.insteadOf")
    monkeypatch.setenv("GIT_CONFIG_VALUE_3", CLONED_ADDRESS)
    reader = Reader(home)
    yield reader
    reader.types("rootsd down")


def started() -> list[str]:
    """Return the commands of the first page of the guide that change something."""
    typed = [command for block in run_here(START) for command, _ in block.commands]
    changing = [command for command in typed if re.match("rootsd (up|approve) ", command)]
    assert len(changing) == 2
    return changing


@pytest.mark.parametrize("guide", guides_to_run())
def test_every_command_of_a_guide_prints_the_shown_output(reader: Reader, guide: Path) -> None:
    """A page of the guide is read after the first one."""
    if guide not in (README, START):
        for command in started():
            reader.types(command)
    for block in run_here(guide):
        for command, said in block.commands:
            shown = reader.types(command)
            assert fits(said, shown), f"$ {command}\n" + "\n".join(shown)


def block_of(words: str) -> list[str]:
    """Return the commands of the one block that begins with `words`, without their comments."""
    (block,) = (b for b in console_blocks() if first_words(b).startswith(words))
    return [command.partition(" #")[0].strip() for command, _ in block.commands]


def test_every_other_command_of_the_guides_has_another_test() -> None:
    run = [block for guide in GUIDES for block in run_here(guide)]
    others = [block for block in console_blocks() if block not in run]
    assert len(others) == len(ELSEWHERE)
    assert {START, GUIDE / "decide.md"} <= {guide for guide in GUIDES if run_here(guide)}
    for words, where in ELSEWHERE.items():
        assert block_of(words)
        assert (TOP / where).exists()


def test_the_readme_clones_and_installs_the_project_in_one_line() -> None:
    address = tomllib.loads((TOP / "pyproject.toml").read_text())["project"]["urls"]["Repository"]
    clone, install = f"git clone {address}", "make -C rootsd install"
    assert f"\n{clone} && {install}\n" in README.read_text()
    rehearsed = subprocess.run(
        ["make", "-C", TOP, install.rpartition(" ")[2], "--dry-run"],
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert rehearsed.returncode == 0, rehearsed.stderr
    assert "sh tools/put_on_path.sh" in rehearsed.stdout


@pytest.fixture
def desktop(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> UserSession:
    return UserSession(tmp_path, monkeypatch)


def test_the_commands_for_the_service_install_show_and_remove_it(
    desktop: UserSession, capsys: pytest.CaptureFixture[str]
) -> None:
    shell = Shell(capsys)
    desktop.service_runs()
    done = {}
    with desktop.daemon():
        for command in block_of("rootsd service install"):
            program, *words = shlex.split(command)
            assert program == "rootsd"
            done[words[-1]] = shell.run(*words)
            assert done[words[-1]].status == 0
            assert (desktop.units / "rootsd.service").exists() == (words[-1] != "uninstall")
    assert "The service is installed" in done["install"].err
    assert done["status"].out.startswith("active\tactive\n")
    assert "Decisions are kept" in done["uninstall"].err


def test_the_documented_removal_removes_everything(
    desktop: UserSession, capsys: pytest.CaptureFixture[str]
) -> None:
    down, remove, _ = block_of("rootsd down")
    shell = Shell(capsys)
    assert shell.run(*shlex.split(down)[1:]).status == 0
    program, flag, *named = shlex.split(remove)
    assert (program, flag) == ("rm", "-rf")
    folders = {desktop.home / folder.removeprefix("~/") for folder in named}
    for folder in folders:
        folder.mkdir(parents=True, exist_ok=True)
    purged = shell.run("service", "uninstall", "--purge", "--dry-run", "--json")
    at_stake = {Path(folder) for folder in json.loads(purged.out)["removed"]}
    assert at_stake
    # A folder inside a named one is removed with it, and the folder of the sockets ends with the
    # session.
    own = {folder for folder in at_stake if not folders.isdisjoint((folder, *folder.parents))}
    assert at_stake - own <= {desktop.home / "run"}
    assert folders <= at_stake


@pytest.mark.parametrize(
    ("said", "shown", "is_fit"),
    [
        (["daemon  running, pid 7"], ["daemon    running, pid 12345"], True),
        (["k3v9  api  git"], ["zz01  api  git"], True),
        (["k3v9  api  git"], ["zz01  web  git"], False),
        (["a", "…", "z"], ["a", "b", "c", "z"], True),
        (["a", "z"], ["a", "b", "z"], False),
        (["a"], [], False),
        (["/home/you/src/api"], ["~/src/api"], True),
        (["/home/you/src/api"], ["~/src/web"], False),
    ],
)
def test_only_the_varying_parts_are_ignored(
    said: list[str], shown: list[str], is_fit: bool
) -> None:
    assert fits(said, shown) == is_fit


def _without_code(document: Path) -> str:
    return re.sub(r"^```.*?^```$", "", document.read_text(), flags=re.MULTILINE | re.DOTALL)


def test_the_readme_is_short_and_has_no_tables() -> None:
    text = README.read_text()
    assert len(text.split()) <= 900
    assert not re.search(r"^\|", text, re.MULTILINE)


def test_a_page_of_the_guide_is_short() -> None:
    words = {
        page.stem: len([word for word in page.read_text().split() if word != "|"])
        for page in GUIDE.glob("*.md")
    }
    assert len(words) == 13
    wrong = {name: count for name, count in words.items() if not 300 <= count <= 700}
    assert not wrong, "a page has 300 to 700 words; move details to another page of docs/"


def test_every_link_of_a_document_leads_to_a_file() -> None:
    for document in DOCUMENTS:
        for target in re.findall(r"\]\((?!https?:|#)([^)#]+)", _without_code(document)):
            assert (document.parent / target).exists(), target


def commands_of_clients() -> list[list[str]]:
    """The command that each snippet has a client start, in each of their formats."""
    found: list[list[str]] = []
    for block in blocks(CLIENTS, "json"):
        (servers,) = json.loads(block.text).values()
        inner = servers["rootsd"].get("transport")
        server = inner if isinstance(inner, dict) else servers["rootsd"]
        command = server["command"]
        found.append(command if isinstance(command, list) else [command, *server["args"]])
    for block in blocks(CLIENTS, "toml"):
        servers = tomllib.loads(block.text)["mcp_servers"]
        (server,) = servers if isinstance(servers, list) else servers.values()
        found.append([server["command"], *server["args"]])
    for block in blocks(CLIENTS, "yaml"):
        program = re.search(r"^    cmd: (\S+)$", block.text, re.MULTILINE)
        arguments = re.search(r"^    args: \[(.*)\]$", block.text, re.MULTILINE)
        assert program is not None
        assert arguments is not None
        found.append([program[1], *arguments[1].split(", ")])
    for block in blocks(CLIENTS, "console"):
        words = shlex.split(first_words(block))
        if "--add-mcp" in words:
            server = json.loads(words[-1])
            found.append([server["command"], *server["args"]])
        else:
            found.append(words[words.index(COMMAND) :])
    return found


def test_every_snippet_has_the_same_command() -> None:
    assert commands_of_clients() == [[COMMAND, "bridge"]] * 17
    text = CLIENTS.read_text()
    for client in ("Claude Code", "Claude Desktop", "Cursor", "VS Code", "Zed", "Codex",
                   "Gemini CLI", "Copilot CLI", "opencode", "Qwen Code", "Cline",
                   "Goose"):  # fmt: skip
        assert f"### {client}\n" in text
        assert client in " ".join(README.read_text().split())


def test_from_nothing_a_client_sees_two_roots_after_three_commands(reader: Reader) -> None:
    """The client starts the command of its snippet, and strips the environment."""
    reader.types("rootsd up ~/src")
    reader.types("rootsd approve api tool --yes")
    # Tests keep everything below ROOTSD_DIR, which a person has not set.
    kept = ("HOME", "LOGNAME", "PATH", "SHELL", "TERM", "USER", "ROOTSD_DIR")
    environment = {name: value for name, value in reader.environment.items() if name in kept}
    calls = (
        {"id": 1, "method": "initialize",
         "params": {"protocolVersion": "2025-06-18", "capabilities": {},
                    "clientInfo": {"name": "a client", "version": "1"}}},
        {"method": "notifications/initialized"},
        {"id": 2, "method": "tools/call", "params": {"name": "list_roots", "arguments": {}}},
    )  # fmt: skip
    program, *arguments = commands_of_clients()[0]
    with subprocess.Popen(
        [program.replace("/home/you", str(reader.home)), *arguments],
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=environment,
    ) as client:  # fmt: skip
        assert client.stdin is not None
        assert client.stdout is not None
        for call in calls:
            client.stdin.write(json.dumps({"jsonrpc": "2.0", **call}) + "\n")
        client.stdin.flush()
        answers = (json.loads(line) for line in client.stdout)
        hello = next(answer for answer in answers if answer.get("id") == 1)
        told = next(answer for answer in answers if answer.get("id") == 2)
        client.stdin.close()
    assert hello["result"]["serverInfo"]["name"] == "rootsd"
    _total, *lines = told["result"]["content"][0]["text"].splitlines()
    assert [line.partition(":")[0] for line in lines] == ["- api", "- tool"]


def prompts(language: str) -> str:
    (block,) = blocks(SHELL, language)
    return block.text


# What the lines of the page find in a startup file.
BEFORE = {
    "bash": "PS1='> '",
    "zsh": "PROMPT='> '; autoload -U compinit; compinit -u -D",
    "fish": "",
}
SHOWS = {
    "bash": ("bash --norc --noprofile", 'eval "$PROMPT_COMMAND"; printf "<%s>" "${PS1@P}"'),
    "zsh": ("zsh -f", 'for hook in $precmd_functions; do $hook; done; print -P "<$PROMPT>"'),
    "fish": ("fish --no-config", 'emit fish_prompt; printf "<%s>" (fish_right_prompt)'),
}
EXPORTS = {"fish": "set -gx ROOTSD_PROMPT ''"}
SHELLS = [pytest.param(name, marks=pytest.mark.needs(name)) for name in SHOWS]


@pytest.fixture(scope="module")
def forks() -> Iterator[str]:
    with forking_program() as words:
        yield words


@pytest.mark.parametrize("shell", SHELLS)
def test_the_prompt_shows_pending_projects_and_rcd_changes_to_roots(
    reader: Reader, forks: str, shell: str
) -> None:
    reader.install(forks)
    program, show = SHOWS[shell]
    export = EXPORTS.get(shell, "export ROOTSD_PROMPT")
    # The module of starship shows what its own process gets in the environment.
    (variable,) = tomllib.loads(prompts("toml"))["env_var"]
    show += f"; sh -c 'printf %s \"({chr(36)}{variable})\"'"
    script = "\n".join((BEFORE[shell], prompts(shell), export, show))

    def prompt(more: str = "") -> str:
        done = subprocess.run(
            [*program.split(), "-c", f"{script}\n{more}"],
            capture_output=True, text=True, check=False, timeout=60, env=reader.environment,
        )  # fmt: skip
        assert done.stderr == ""
        return done.stdout

    assert "pending" not in prompt()
    reader.types("rootsd up ~/src")
    assert "<3 pending " in prompt()
    reader.types("rootsd approve api")
    shown = prompt("rcd api; pwd")
    assert "(2 pending )" in shown
    assert shown.endswith(f"{reader.home}/src/api\n")


def table(file: Path, heading: str) -> dict[str, list[str]]:
    """Return the rows of the table in `file` whose first column is `heading`, by first cell."""
    lines = file.read_text().splitlines()
    start = next(n for n, line in enumerate(lines) if line.startswith(f"| {heading} |"))
    rows = dict[str, list[str]]()
    for line in lines[start + 2 :]:
        if not line.startswith("|"):
            break
        first, *rest = (cell.strip() for cell in line.strip("|").split("|"))
        rows[first] = rest
    return rows


def outcome_in(cell: str) -> Outcome:
    """Return the outcome that a cell of that table describes."""
    if cell.startswith("**not refused**"):
        return Outcome.PASSED
    return Outcome.REFUSED if cell.startswith("refused") else Outcome.CHALLENGED


@pytest.mark.parametrize("way", ATTEMPTS, ids=lambda way: way.name)
def test_the_table_has_the_outcome_of_each_attempt_of_real_agents(way: Attempt) -> None:
    said = table(TOP / "docs" / "SECURITY.md", "an agent orders an approval")
    for row in (way.row, way.alone):
        (cell,) = said[row.text]
        assert outcome_in(cell) is row.outcome


def test_there_are_at_least_twenty_attempts() -> None:
    assert len({way.name for way in ATTEMPTS}) >= 20
    assert len({way.command for way in ATTEMPTS}) == len(ATTEMPTS)
