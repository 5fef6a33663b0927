"""docs/reference/ matches the code, what commands print, and what a daemon answers."""

from __future__ import annotations

import inspect
import json
import os
import re
import subprocess
import sys
from collections.abc import Iterator, Mapping
from functools import cache
from pathlib import Path
from typing import Any

import click
import pytest
import write_cli_reference
import write_json_reference
from attribute_docs import attribute_docs, own_attribute_docs
from jsonschema import Draft202012Validator  # type: ignore[import-untyped]
from wire_types import command_outputs, json_objects, key_descriptions
from write_schemas import FOLDER

from rootsd import client
from rootsd.cli import help_text
from rootsd.cli.main import ALIASES
from rootsd.cli.manual import HelpParagraph, global_flags, verb_contexts, verb_manuals
from rootsd.core.errors import Exit
from rootsd.wire.registry import REQUEST_TYPES
from support import preloaded
from support.documents import Reader, blocks, fits
from support.golden_files import GOLDEN_FILES
from support.person import Person
from support.terminal import Shell
from support.user_session import UserSession

HANG_GUARD_S = 60
TOP = Path(__file__).parent.parent
# To write a page takes a while, so only a test does it, and once.
PAGES = {
    write_cli_reference.FILE: cache(write_cli_reference.page),
    write_json_reference.FILE: cache(write_json_reference.json_page),
    write_json_reference.PROTOCOL_FILE: cache(write_json_reference.protocol_page),
}
cli_page = PAGES[write_cli_reference.FILE]
PYTHON_PAGE = write_cli_reference.FILE.with_name("python.md")
# Verbs with subcommands, and the subcommand that they run alone.
ALONE = {"parent": "ls", "rule": "ls", "config": "show", "sync": "status"}
OUTPUTS = command_outputs()
ENDS = ("", ".printed")  # of the names of their types in the schema


@pytest.mark.parametrize("file", PAGES, ids=lambda file: file.name)
def test_a_page_matches_the_code(file: Path) -> None:
    assert file.read_text() == PAGES[file](), "run make reference"


def test_no_other_page_is_in_the_folder() -> None:
    assert {*write_cli_reference.FILE.parent.iterdir()} == {*PAGES, PYTHON_PAGE}


@pytest.mark.parametrize("file", PAGES, ids=lambda file: file.name)
def test_every_link_within_a_page_leads_to_a_heading(file: Path) -> None:
    anchors = {page: _anchors(write()) for page, write in PAGES.items()}
    for target, anchor in re.findall(r"\]\(([^)#:]*)#([^)]+)\)", PAGES[file]()):
        page = (file.parent / target).resolve() if target else file
        assert anchor in anchors[page], (target, anchor)


def _anchors(text: str) -> set[str]:
    """Return the anchors that GitHub gives to the headings."""
    headings = re.findall(
        r"^#+ (.+)$",
        re.sub(r"^```.*?^```$", "", text, flags=re.MULTILINE | re.DOTALL),
        re.MULTILINE,
    )
    return {re.sub(r"[^\w -]", "", each.lower()).replace(" ", "-") for each in headings}


# The command line.


def section_of(command: str) -> str:
    """Return the text below the heading of a command."""
    [section] = re.findall(
        rf"^#+ `rootsd {command}`\n(.*?)(?=^#|\Z)", cli_page(), re.MULTILINE | re.DOTALL
    )
    return str(section)


@pytest.mark.parametrize(
    "context", [*verb_contexts()], ids=lambda each: each.command_path.partition(" ")[2]
)
def test_a_section_has_each_option_and_example_of_its_verb(context: click.Context) -> None:
    section = section_of(context.command_path.partition(" ")[2])
    for param in context.command.get_params(context):
        if isinstance(param, click.Option) and not param.hidden and "--help" not in param.opts:
            for word in (*param.opts, *param.secondary_opts):
                assert re.search(rf"^\* `.*{re.escape(word)}\b.*`: \S", section, re.MULTILINE)
    for line in (context.command.epilog or "").splitlines():
        assert line in section


def test_the_sections_are_those_of_the_help_in_its_order() -> None:
    help_ = [each.command for each in verb_manuals()]
    assert re.findall(r"^#{3,4} `rootsd (.+)`$", cli_page(), re.MULTILINE) == help_
    for section in {each.section for each in verb_manuals()}:
        assert f"\n## {section}\n" in cli_page()
    assert all(f"`{alias}`" in cli_page() for alias in ALIASES)
    assert all(f"* `{flag}`: " in cli_page() for flag in global_flags())


def test_the_page_has_every_exit_status_and_no_other() -> None:
    table = cli_page().partition("\n## Exit statuses\n")[2].partition("\n## ")[0]
    assert [int(status) for status in re.findall(r"^\| (\d+) \|", table, re.MULTILINE)] == [*Exit]
    for _, meaning in help_text.EXIT_STATUSES.values():
        assert meaning in table.replace("`", "")
    for verb in ("check", "open", "pending", "doctor", "service-status", "run", "confine"):
        assert f"(#rootsd-{verb})" in table


def test_plain_text_becomes_markdown() -> None:
    markdown = write_cli_reference.Markdown(verb_manuals())
    assert markdown.text("see rootsd sync add, or use --all") == (
        "see `rootsd sync add`, or use `--all`"
    )
    assert markdown.text("write ~/src/*_x or <b>|c") == r"write `~/src/*_x` or \<b\>\|c"
    assert (
        markdown.text("{root:NAME} in [confine], [...]")
        == r"`{root:NAME}` in `[confine]`, \[...\]"
    )
    assert markdown.text("docs/a/b.md has it") == "[docs/a/b.md](../a/b.md) has it"
    assert markdown.text("`rcd NAME` is `a_b`") == "`rcd NAME` is `a_b`"
    assert markdown.text("rootsd changes nothing") == "rootsd changes nothing"
    assert markdown.paragraph(HelpParagraph("0   *it* is", is_verbatim=True)) == (
        "```text\n0   *it* is\n```"
    )


# JSON.


def strict_schema() -> dict[str, Any]:
    """Return the definitions of the schema, without room for keys that they do not describe."""
    schema = json.loads((FOLDER / "rootsd-1.schema.json").read_text())
    definitions: dict[str, Any] = schema["$defs"]
    for name, each in definitions.items():
        if name.endswith(".output"):
            each["unevaluatedProperties"] = False
        elif each.get("type") == "object" and name not in TOP_LEVEL:
            each["additionalProperties"] = False
    return definitions


# These objects have the keys of several types.
TOP_LEVEL = {
    "CommandOutput",
    *(f"{each.__name__}{end}" for some in OUTPUTS.values() for each in some for end in ENDS),
}
STRICT = strict_schema()


def undescribed(printed: Mapping[str, Any], command: str) -> list[str]:
    """Return how an object differs from what the page says about a command."""
    words = command.split()
    if len(words) == 1 and command in ALONE:
        words.append(ALONE[command])
    schema = {"$ref": f"#/$defs/{'-'.join(words)}.output", "$defs": STRICT}
    return [error.message for error in Draft202012Validator(schema).iter_errors(printed)]


def test_each_command_describes_what_it_prints_or_prints_no_object() -> None:
    without = {command for command, types in OUTPUTS.items() if not types}
    assert without == {
        "acp", "bridge", "daemon", "help", "hook", "review", "run", "service logs",
        "sync run", "sync withdraw", "ui",
    }  # fmt: skip


def test_each_key_of_a_result_and_of_a_message_has_a_description() -> None:
    results = [each for types in OUTPUTS.values() for each in types]
    found = json_objects((*results, *(request.result for request in REQUEST_TYPES)))
    assert len(found) > 80
    for one in found.values():
        descriptions = key_descriptions(one.cls)
        assert {field.encode_name for field in one.fields} == {*descriptions}, one.cls
        assert [key for key, text in descriptions.items() if not text.endswith(".")] == [], one.cls


def results_in(golden: Path) -> Iterator[dict[str, Any]]:
    """Yield the objects in a golden file that report no error."""
    for line in golden.read_text().partition("--- json\n")[2].splitlines():
        if line.startswith("{") and "error" not in (printed := json.loads(line)):
            yield printed


@pytest.mark.parametrize("golden", GOLDEN_FILES.values(), ids=lambda path: path.stem)
def test_the_golden_files_have_only_described_keys(golden: Path) -> None:
    for printed in results_in(golden):
        assert undescribed(printed, printed["command"]) == []
        assert undescribed({**printed, "another": 1}, printed["command"]) != []


# Each line is a command, in the order in which a person runs them.
COMMANDS = """
version
doctor
completion bash
completion bash -- rootsd appr
shell-init bash
config path
config show
config get approval.guard
config help confine
up SRC --dry-run
up SRC
init SRC --yes --dry-run
config set sessions.max_connections 512
config unset sessions.max_connections --dry-run
config unset sessions.max_connections
config check
parent
parent add HOME/more --dry-run
parent add HOME/more
parent set HOME/more --depth 2
parent ls
parent rm HOME/more
scan
status
pending
pending --count
ls
ls --risk any
show one
check SRC/one
check SRC/nothing
why SRC/one
add https://example.org/v1
approve one --dry-run
approve one --tag work
approve one
deny two
rename one uno
tag
tag uno
tag uno go
focus work --dry-run
focus work
focus --clear
open uno
rule add deny SRC/x/** --dry-run
rule add approve SRC/three
rule
rule rm 1
guard
guard off --dry-run
log --last 5
undo
sessions
sessions --history
export --code-workspace tag:work
forget two
prune
prune --dry-run
connect cursor --dry-run
connect cursor
clients --all --no-check
disconnect cursor
sync add claude-code --dry-run
sync add claude-code
sync
sync rm claude-code --dry-run
sync rm claude-code
add HOME/work.code-workspace --dry-run
add HOME/work.code-workspace
confine --clean
down
ls
pending
exposure
""".strip().splitlines()


def test_real_commands_print_only_described_keys(tmp_path: Path) -> None:
    person = Person(tmp_path)
    for name in ("one", "two", "three"):
        person.clone(name)
    (tmp_path / "more" / "extra").mkdir(parents=True)
    folders = [{"path": str(tmp_path / "more" / "extra")}, {"path": str(person.parent / "one")}]
    (tmp_path / "work.code-workspace").write_text(json.dumps({"folders": folders}))
    (tmp_path / ".cursor").mkdir()
    covered = set()
    try:
        for line in COMMANDS:
            words = line.replace("SRC", str(person.parent)).replace("HOME", str(tmp_path)).split()
            at = words.index("--") if "--" in words else len(words)
            done = person.run(*words[:at], "--json", *words[at:])
            if line.startswith("init"):
                continue
            printed = json.loads(done.stdout)
            assert "error" not in printed, (line, printed)
            assert undescribed(printed, printed["command"]) == [], line
            covered.add(printed["command"])
    finally:
        person.run("down")
    in_golden_files = {
        each["command"] for file in GOLDEN_FILES.values() for each in results_in(file)
    }
    elsewhere = {
        "add-to-session", "config edit", "give", "init", "service install", "service print",
        "service restart", "service start", "service stop",
    }  # fmt: skip
    described = {command for command, types in OUTPUTS.items() if types}
    alone = {f"{verb} {ALONE[verb]}" for verb in ALONE}
    assert described - covered - alone - in_golden_files == elsewhere


@pytest.fixture
def desktop(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> UserSession:
    return UserSession(tmp_path, monkeypatch)


@pytest.mark.parametrize(
    "words",
    [
        ("service", "install", "--dry-run"),
        ("service", "install"),
        ("service", "print"),
        ("service", "restart"),
        ("service", "start"),
        ("service", "status"),
        ("service", "stop"),
        ("service", "uninstall"),
    ],
    ids=" ".join,
)
def test_the_service_prints_only_described_keys(
    desktop: UserSession, capsys: pytest.CaptureFixture[str], words: tuple[str, ...]
) -> None:
    shell = Shell(capsys)
    desktop.service_runs()
    with desktop.daemon():
        if words[-1] not in ("install", "--dry-run"):
            shell.run("service", "install")
        printed = json.loads(shell.run(*words, "--json").out)
    assert "error" not in printed
    assert undescribed(printed, printed["command"]) == []


# The examples of the pages.


@pytest.fixture
def reader(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Reader]:
    """A home with the projects api (approved), tool, and zero, and a daemon."""
    home = tmp_path / "home"
    monkeypatch.setenv("ROOTSD_DIR", str(tmp_path / "rootsd"))
    for name in ("api", "tool", "zero"):
        (home / "src" / name).mkdir(parents=True)
        (home / "src" / name / "pyproject.toml").write_text("[project]\n")
    reader = Reader(home)
    rootsd(reader, "up", str(home / "src"))
    rootsd(reader, "approve", "api", "--tag", "work")
    yield reader
    rootsd(reader, "down")


def rootsd(reader: Reader, *arguments: str) -> None:
    """Run a command for the reader, without a terminal."""
    done = preloaded.run(arguments, reader.environment, HANG_GUARD_S)
    assert done.returncode == 0, done.stderr


def python(reader: Reader, page: Path, number: int, *arguments: str) -> subprocess.Popen[str]:
    """Start an example of a page as a program."""
    program = blocks(page, "python")[number].text
    return subprocess.Popen(
        [sys.executable, "-c", program, *arguments],
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
        env=reader.environment,
    )  # fmt: skip


def output(program: subprocess.Popen[str]) -> str:
    """Return what a program prints, which must succeed."""
    out, err = program.communicate(timeout=HANG_GUARD_S)
    assert program.returncode == 0, err
    return out


@pytest.mark.needs("bash")
def test_the_examples_of_the_pages_on_json_print_what_they_show(
    reader: Reader, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    [block] = blocks(write_json_reference.FILE, "console")
    assert len(block.commands) == 4
    for command, said in block.commands:
        shown = reader.types(command)
        assert fits([line.replace("/home/you", "~") for line in said], shown), shown
    page = write_json_reference.PROTOCOL_FILE
    [program], [console] = blocks(page, "python"), blocks(page, "console")
    (reader.home / "ask.py").write_text(program.text)
    (tmp_path / "run").mkdir()
    (tmp_path / "run" / "rootsd").symlink_to(Path(os.environ["ROOTSD_DIR"], "run"))
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(tmp_path / "run"))
    [(command, said)] = console.commands
    assert reader.types(f"cd; {command.replace('/home/you', str(reader.home))}") == said


def test_the_page_on_python_has_the_docstring_of_every_public_name() -> None:
    found = re.findall(
        r"^### `(\w+)`\n(.*?)(?=^##|\Z)", PYTHON_PAGE.read_text(), re.MULTILINE | re.DOTALL
    )
    assert sorted(name for name, _ in found) == sorted(client.__all__)
    for name, section in found:
        public = getattr(client, name)
        docs = inspect.getdoc(public) or ""
        assert docs in section or docs.rstrip(".") in section
        if isinstance(public, type):
            assert all(doc for doc in attribute_docs(public).values()), name
            own = own_attribute_docs(public).items()
            lines = re.findall(r"^\* `(\w+)[^`]*`: (.*)$", section, re.MULTILINE)
            assert lines == [(field, " ".join(doc.split())) for field, doc in own if doc]
            continue
        signature = section.partition("\n```\n")[0]
        for argument in inspect.signature(public).parameters:
            assert argument in signature, (name, argument)
            # The arguments of watch_roots are those of list_roots.
            assert name == "watch_roots" or f"`{argument}`" in docs, (name, argument)
    arguments = [inspect.signature(each) for each in (client.list_roots, client.watch_roots)]
    assert arguments[0].parameters == arguments[1].parameters


def test_the_examples_of_the_page_on_python_run(reader: Reader) -> None:
    listed = output(python(reader, PYTHON_PAGE, 0))
    assert listed == f"api {reader.home}/src/api read-write\n"
    server = TOP / "examples" / "python" / "server.py"
    connected = output(python(reader, PYTHON_PAGE, 3, sys.executable, str(server)))
    assert connected == "connected: files\n"
    inside, outside = (f"{reader.home}/src/{name}/pyproject.toml" for name in ("api", "tool"))
    assert output(python(reader, PYTHON_PAGE, 2, inside)) == "[project]\n\n"
    refused = python(reader, PYTHON_PAGE, 2, outside)
    _, err = refused.communicate(timeout=HANG_GUARD_S)
    assert refused.returncode == 1
    assert "is not in a folder that the user approved" in err
    with python(reader, PYTHON_PAGE, 1) as following:
        assert following.stdout is not None
        try:
            assert following.stdout.readline() == "approved: api\n"
            rootsd(reader, "approve", "tool")
            assert following.stdout.readline() == "approved: api tool\n"
        finally:
            following.terminate()
