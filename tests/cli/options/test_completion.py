"""Completion of verbs, flags, and arguments, at every position of the command line."""

from __future__ import annotations

import re

import click
import pytest

from rootsd.cli.answers.invocation import Invocation
from rootsd.cli.main import root
from rootsd.cli.manual import verb_contexts
from rootsd.cli.options.completion import complete_words
from rootsd.cli.verb_table import verb_table
from rootsd.core.errors import ErrorCode
from support.fake_daemon import FakeDaemon, Objection, a_listing, a_status, an_item

# Values of these kinds have no candidates: new names, times, numbers, and hosts.
FREE = {
    "name", "name|pid", "glob", "time", "8h", "pid", "name=value", "user@host", "[id]", "pattern",
}  # fmt: skip
# Nor have the words of another program.
WORDS = re.compile(r"word|argument")
KNOWN_TYPES = (click.Choice, click.types.IntParamType, click.types.IntRange)


def words_for(*words: str) -> list[str]:
    return [word for kind, word, _ in complete_words(root, words, Invocation()) if kind == "plain"]


def kinds_for(*words: str) -> set[str]:
    return {kind for kind, _, _ in complete_words(root, words, Invocation())}


@pytest.fixture
def projects(daemon: FakeDaemon) -> FakeDaemon:
    daemon.answers["projects"] = a_listing(
        an_item("acme/api", tags=["work"]),
        an_item("acme/web"),
        an_item("$(touch x)", id="k3v9"),
        an_item("-rf", id="m2m2"),
    )
    return daemon


def test_verbs_aliases_and_global_flags_come_with_their_summary() -> None:
    assert words_for("") == [*verb_table(), "allow", "block", "revoke"]
    assert complete_words(root, ["appr"], Invocation()) == [
        ["plain", "approve", verb_table()["approve"].summary]
    ]
    assert "--json" in words_for("--")


def test_flags_and_choices_of_a_verb() -> None:
    assert "--lapsed" in words_for("approve", "--la")
    assert words_for("completion", "") == ["bash", "zsh", "fish"]
    assert words_for("parent", "") == ["add", "ls", "rm", "set"]
    assert words_for("--json", "ls", "--verdict", "app") == ["approved"]
    assert words_for("ls", "--verdict=app") == ["approved"]


def test_pending_projects_complete_an_approval(projects: FakeDaemon) -> None:
    assert words_for("approve", "ac") == ["acme/api", "acme/web"]
    assert words_for("allow", "acme/api", "ac") == ["acme/web"]
    assert {query["select"] for query in projects.asked("projects")} == {"waiting"}


def test_a_name_that_needs_quoting_is_completed_by_its_id(projects: FakeDaemon) -> None:
    assert words_for("deny", "") == ["acme/api", "acme/web", "k3v9", "m2m2"]


def test_an_explanation_cannot_break_the_line_or_the_terminal(daemon: FakeDaemon) -> None:
    daemon.answers["projects"] = a_listing(an_item(path="/src/\x1b[2J\n\tplain\tevil"))
    ((_, word, told),) = complete_words(root, ["show", ""], Invocation())
    assert word == "api"
    assert told.isprintable()


def test_a_word_that_begins_as_a_path_is_left_to_the_shell(projects: FakeDaemon) -> None:
    for typed in ("./", "~/s", "/src"):
        assert kinds_for("approve", typed) == {"dir"}
        assert kinds_for("check", typed) == {"file"}
    assert projects.requests == []
    assert kinds_for("check", "x") == {"file"}, "no project begins so"
    assert words_for("why", "acme/a") == words_for("show", "acme/a") == ["acme/api"]


def test_tags_scopes_parents_and_rules_come_from_the_daemon(projects: FakeDaemon) -> None:
    projects.answers["status"] = a_status()
    rule = {"number": 3, "verdict": "approved", "pattern": "/src/**", "covers": 1}
    projects.answers["rules"] = {"items": [rule]}
    assert words_for("ls", "--tag", "") == ["work"]
    assert words_for("bridge", "--only", "tag:") == ["tag:work"]
    assert words_for("confine", "--only", "fo") == ["focus"]
    assert words_for("sync", "add", "codex", "--only", "") == ["focus", "tag:work"]
    assert words_for("focus", "") == ["work"]
    assert words_for("run", "--only", "") == [
        "cwd",
        "focus",
        "tag:",
        "acme/api",
        "acme/web",
        "k3v9",
        "m2m2",
    ]
    assert words_for("scan", "") == ["/src"]
    assert complete_words(root, ["rule", "rm", ""], Invocation()) == [
        ["plain", "3", "approved /src/**"]
    ]


def test_keys_of_the_configuration_and_their_values() -> None:
    assert words_for("config", "get", "sess") == [
        "sessions.max_connections", "sessions.max_connections_per_process",
    ]  # fmt: skip
    assert words_for("config", "unset", "parent") == []
    assert "parent.depth" in words_for("config", "help", "parent")
    assert "confine" in words_for("config", "help", "con")
    assert words_for("config", "set", "confine.on_revoke", "") == ["kill", "tell"]
    assert words_for("config", "set", "confine.network", "f") == ["false"]
    assert kinds_for("config", "set", "confine.read", "") == {"file"}
    assert kinds_for("config", "set", "sessions.max_connections", "") == set()
    assert kinds_for("config", "set", "zzz", "") == set()


def test_without_a_daemon_there_are_no_candidates_and_no_error(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert words_for("approve", "ac") == []
    assert words_for("ls", "--tag", "") == []
    assert capsys.readouterr() == ("", "")


def test_an_error_of_the_daemon_is_ignored(daemon: FakeDaemon) -> None:
    daemon.answers["projects"] = Objection(ErrorCode.BUSY, "busy")
    assert words_for("approve", "ac") == []


@pytest.mark.parametrize("words", [("nonsense", ""), ("approve", "--nonsense", ""), ("x", "--y")])
def test_invalid_words_have_no_candidates(words: tuple[str, ...]) -> None:
    assert complete_words(root, words, Invocation()) in ([], [["plain", "--help", "x"]])


def test_fields_are_completed_one_after_the_other() -> None:
    assert words_for("ls", "--format", "orig") == ["origin", "origin_owner"]
    assert words_for("pending", "--format", "id,na") == ["id,name"]
    assert words_for("ls", "--format", "id,name,i") == ["id,name,incomplete"]
    assert words_for("ls", "--format", "nope") == []


def test_every_value_can_be_completed_or_is_free() -> None:
    completed: set[str] = set()
    free: set[str] = set()
    for context in verb_contexts():
        for param in context.command.get_params(context):
            if (isinstance(param, click.Option) and (param.is_flag or param.count)) or isinstance(
                param.type, KNOWN_TYPES
            ):
                continue
            has_candidates = param.shell_complete(context, "a") or param._custom_shell_complete
            (completed if has_candidates else free).add(
                (param.metavar or param.name or "").lower()
            )
    assert {kind for kind in free if not WORDS.search(kind)} == FREE
    assert completed & free == {"glob"}  # a rule's starts with a folder, that of --skip does not
