"""Edits of YAML: whole lines are inserted and removed, and everything else stays."""

from __future__ import annotations

import json
import re
from random import Random

import pytest

from rootsd.settings import yaml_spans
from rootsd.settings.errors import NotEditable
from rootsd.settings.formats import YamlFormat
from support.sizes import Sizes

OURS = {
    "enabled": True, "type": "stdio", "name": "rootsd", "cmd": "/opt/a b/rootsd: x #",
    "args": ["bridge", "yes", ""], "timeout": 300,
}  # fmt: skip
KEYS = ("servers",)
COMMENTS = ("", "# c\n", "\n", "  # ours: no\n", "#\n\n")
SCALARS = (
    "1", "x", "'it''s'", '"a: b"', "2026-11-24", "[a, {b: c}]", "{}", "~", "yes",
    "|\n{}text\n{}# t", ">-\n{}folded\n\n{}more", "!!str 5", "&anchor x", "é\u2028", "null",
)  # fmt: skip


def member(random: Random, name: str, indent: str) -> str:
    inner = indent + random.choice(["  ", "    "])
    if random.random() < 0.4:
        lines = "".join(
            f"{inner}k{n}: {random.choice(SCALARS[:8])}{random.choice(['', '  # why'])}\n"
            for n in range(random.randrange(1, 4))
        )
        return f"{indent}{name}:{random.choice(['', ' # c'])}\n{lines}"
    value = random.choice(SCALARS).replace("{}", inner)
    return f"{indent}{name}: {value}\n"


def text_of(random: Random, *, is_list: bool) -> str:
    """Return a text, mostly with the container, in one of the styles that people use."""
    parts = ["---\n"] if random.random() < 0.2 else []
    parts += [random.choice(COMMENTS), member(random, "before", "")]
    if random.random() < 0.8:
        parts.append(f"servers:{random.choice(['', '   ', ' # mine'])}\n")
        indent = random.choice(["", "  "] if is_list else ["  ", "    ", " "])
        for n in range(random.randrange(4)):
            parts.append(random.choice(COMMENTS))
            parts.append(
                f"{indent}- name: s{n}\n{indent}  command: x # run\n"
                if is_list
                else member(random, f"s{n}", indent)
            )
    if random.random() < 0.6:
        parts += [random.choice(COMMENTS), member(random, "after", "")]
    text = "".join(parts)
    if random.random() < 0.3:
        text = text.removesuffix("\n")
    if random.random() < 0.3:
        text = text.replace("\n", "\r\n")
    return random.choice(["", "", "\ufeff"]) + text


def check(text: str, *, is_list: bool) -> None:
    """Insert our entry and remove it."""
    if is_list:
        after, is_new = yaml_spans.insert_item(text, KEYS, OURS)
        assert yaml_spans.parse(after)["servers"][0] == OURS
        left = yaml_spans.remove_item(after, KEYS, "rootsd")
    else:
        after, is_new = yaml_spans.insert_member(text, KEYS, "rootsd", OURS)
        assert yaml_spans.parse(after)["servers"]["rootsd"] == OURS
        left = yaml_spans.remove_member(after, (*KEYS, "rootsd"))
    if is_new:
        left = yaml_spans.remove_empty(left, KEYS)
    elif yaml_spans.parse(text)["servers"] is None:
        left = re.sub(r"(?m)^servers: (\[\]|\{\})", "servers:", left)
    assert left == text


def check_many(count: int, *, is_list: bool) -> None:
    for seed in range(count):
        text = text_of(Random(seed), is_list=is_list)  # noqa: S311 - not a secret
        try:
            check(text, is_list=is_list)
        except Exception as error:
            error.add_note(f"seed {seed}: {text!r}")
            raise


@pytest.mark.parametrize("is_list", [False, True], ids=["mapping", "list"])
def test_an_edit_and_its_removal_change_no_other_byte(is_list: bool, sizes: Sizes) -> None:
    check_many(sizes.pick(test=20, check=1_000, soak=3_000), is_list=is_list)


@pytest.mark.parametrize(
    "text",
    [
        "# top\na: |\n  text\n  # t", "%YAML 1.2\n--- # c\na: |+\n  text",
        "a: >\r\n  text\r\n  more",
        "\ufeffa: 1\n...\n", "# top\n---\na: 1\n...\n# end",
    ],
)  # fmt: skip
def test_a_text_that_cannot_be_continued_is_edited_at_its_start(text: str) -> None:
    for is_list in (False, True):
        check(text, is_list=is_list)


def test_a_container_that_loses_its_last_child_has_a_value() -> None:
    """Continue refuses a whole file in which its list has none."""
    items = "servers: # mine\r\n- name: rootsd\r\n  x: 1\r\nb: 1"
    assert yaml_spans.remove_item(items, KEYS, "rootsd") == "servers: [] # mine\r\nb: 1"
    members = "a:\n  servers:\n    rootsd:\n      x: 1\n"
    assert yaml_spans.remove_member(members, ("a", *KEYS, "rootsd")) == "a:\n  servers: {}\n"
    assert yaml_spans.remove_member("rootsd: 1\n", ("rootsd",)) == ""


@pytest.mark.parametrize("text", ["servers: %s\n", "a: 1\nservers: %s # mine\r\nb: 1\r\n"])
def test_an_empty_container_in_flow_style_is_empty_again_afterwards(text: str) -> None:
    check(text % "{}", is_list=False)
    check(text % "[]", is_list=True)


@pytest.mark.filterwarnings("error")
def test_an_anchor_may_have_the_name_of_an_earlier_one() -> None:
    text = "a: &x 1\nservers:\n  s: &x 2\n"
    assert yaml_spans.parse(text) == {"a": 1, "servers": {"s": 2}}
    check(text, is_list=False)


def test_control_an_edit_that_rewrites_the_file_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    def forgetful(text: str, keys: tuple[str, ...]) -> str:
        values = yaml_spans.parse(text)
        del values[keys[0]][keys[1]]
        return json.dumps(values, default=str)

    monkeypatch.setattr(yaml_spans, "remove_member", forgetful)
    with pytest.raises((AssertionError, NotEditable)):
        check_many(10, is_list=False)


@pytest.mark.parametrize(
    "text",
    [
        "servers: []\n", "servers: { }\n", "servers: {a: {}}\n", "{a: 1}\n", "- a\n",
        "a: 1\na: 2\n", "a: *x\n",
        "a: 1\n---\nb: 2\n", "servers: x\n", "a: [\n", "a:\n\t- b\n", "\x00", "servers: [1]\n",
        "a: &x [1]\nb: *x\n", "a: &a {x: 1}\nservers:\n  <<: *a\n", "a: !!python/object:os.x {}\n",
        "[" * 3_000, "a: 1\nservers:\n  rootsd: 1\n",
    ],
)  # fmt: skip
def test_an_unsupported_text_is_refused(text: str) -> None:
    with pytest.raises(NotEditable):
        yaml_spans.insert_member(text, KEYS, "rootsd", OURS)


ARGS = (*KEYS, "s", "args")


@pytest.mark.parametrize(
    ("arguments", "wrapped"),
    [
        (
            "\n    # first\n    - a # why\n    - ''",
            "\n    # first\n    - run\n    - a # why\n    - ''",
        ),
        ("\r\n      - b\r\n", "\r\n      - run\r\n      - b\r\n"),
        ("\n    - 'x\n\n      y'\n", "\n    - run\n    - 'x\n\n      y'\n"),
        (" [a, # c\n      'b',]\n", " [\"run\",a, # c\n      'b',]\n"),
        (" [] # none\n", ' ["run"] # none\n'),
    ],
)
def test_items_are_put_before_a_list_of_either_style(arguments: str, wrapped: str) -> None:
    language, text = YamlFormat(), f"servers:\n  s:\n    cmd: npx # c\n    args:{arguments}"
    raw = language.raw(text, ARGS)
    assert raw is not None
    after = language.replace(text, ARGS, language.prepend(raw, ["run"]))
    assert after == text.replace(arguments, wrapped)
    raw = language.raw(after, ARGS)
    assert raw is not None
    assert language.replace(after, ARGS, language.without_first(raw, 1)) == text


def test_a_list_that_a_client_rewrote_can_become_empty_again() -> None:
    text = "servers:\n  s:\n    args: # c\n      - run\n  t: 1\n"
    raw = yaml_spans.raw_at(text, ARGS)
    assert raw == "      - run\n"
    assert yaml_spans.without_first(raw, 1) == "[]"
    after = yaml_spans.replace_at(text, ARGS, "[]")
    assert after == "servers:\n  s:\n    args: [] # c\n  t: 1\n"


def test_values_are_found_by_the_names_of_items() -> None:
    text = "servers:\n- name: a\n  cmd: x\n- cmd: y # c\n  name: b\n"
    keys = (*KEYS, "b", "cmd")
    after = yaml_spans.insert_beside(yaml_spans.replace_at(text, keys, "z"), keys, "args", ["-"])
    assert after == text.replace("y # c", 'z # c\n  args: ["-"]')
    assert yaml_spans.remove_member(after, (*KEYS, "b", "args")) == text.replace("y", "z")
    with pytest.raises(NotEditable):
        yaml_spans.replace_at(text.replace("name: a", "name: b"), keys, "z")


@pytest.mark.parametrize(
    "value",
    ["|\n      npx\n", "&x [a]\n", "!!str npx\n    b: 1\n", "{a: 1}\n", "\n      a: 1\n", "\n"],
)
def test_a_value_with_an_unusual_form_is_refused_or_replaced_exactly(value: str) -> None:
    text = f"servers:\n  s:\n    cmd: {value}"
    keys = (*KEYS, "s", "cmd")
    try:
        raw = yaml_spans.raw_at(text, keys)
        after = yaml_spans.replace_at(text, keys, "/x")
    except NotEditable:
        return
    assert yaml_spans.parse(after)["servers"]["s"]["cmd"] == "/x"
    assert yaml_spans.replace_at(after, keys, raw or "") == text


def test_a_text_that_is_too_large_is_refused() -> None:
    with pytest.raises(NotEditable, match="too large"):
        yaml_spans.parse("#" * (yaml_spans.MAX_CHARACTERS + 1))


def test_a_comment_stays_above_its_neighbor() -> None:
    text = "servers: # all\n  # about dev\n  dev:\n    x: 1\n"
    after, _ = yaml_spans.insert_member(text, KEYS, "rootsd", {"cmd": "/x"})
    assert after == ("servers: # all\n  rootsd:\n    cmd: /x\n  # about dev\n  dev:\n    x: 1\n")


def test_an_entry_that_a_person_extended_is_removed_completely() -> None:
    text = (
        "servers:\n  rootsd:\n    cmd: /x\n    # mine\n    more: [a,\n      b] # end\n  dev: 1\n"
    )
    assert yaml_spans.remove_member(text, (*KEYS, "rootsd")) == "servers:\n  dev: 1\n"
    assert yaml_spans.remove_member("servers: 1\n", (*KEYS, "rootsd")) == "servers: 1\n"
