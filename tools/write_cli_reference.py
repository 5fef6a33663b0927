"""Write docs/reference/cli.md from the definitions of the command line: `make reference`.

`rootsd.cli.manual` has the content. `rootsd --help` and the man page have the same. A test
compares the file with what `page` returns now.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from itertools import groupby
from pathlib import Path

from rootsd.cli import help_text
from rootsd.cli.main import ALIASES
from rootsd.cli.manual import HelpParagraph, VerbManual, global_flags, verb_manuals
from rootsd.core.errors import ErrorCode, Exit, exit_of

FILE = Path(__file__).parent.parent / "docs" / "reference" / "cli.md"

_INTRODUCTION = """\
# Command line

This page is generated from the definitions that `rootsd VERB --help` prints. `rootsd help --man`
prints the same as a man page. [JSON](json.md) describes the output with `--json`, and
[Configuration](../CONFIGURATION.md) the keys of `config.toml`.

```text
rootsd [FLAGS] [VERB [ARGUMENTS]]
```
"""

_STATUSES = """
A script can rely on these statuses. With `--json`, the key `error.code` has the same meaning as
the status, in a word.

| Status | `error.code` | Meaning |
|---:|---|---|
"""

# What is code in a help text, which has no markup but backticks.
_COMMAND = r"\brootsd (?:VERBS)\b(?: (?:--?[a-z][\w-]*|NUMBER|VALUE|KEY))*"
_CODE = (
    r"`[^`]+`",
    r"'[^' ]*\*[^' ]*'",
    r"(?<![\w-])--?[a-z][a-z-]*\b",
    r"(?<![\w.])~?/[\w.~*/-]*\w/?",
    r"~/",
    r"\bdocs/[\w/-]+\.md\b",
    r"\bconfig\.toml\b",
    r"\[[a-z]+\]",
    r"\{[a-zA-Z:]+\}",
    r"\.code-workspace\b",
    r"\b[A-Z]+(?:_[A-Z]+)+\b",
)
_MARKUP = re.compile(r"[\\*_<>\[\]|~]")
_STATUS_WORDS = re.compile(r"exit\s+(?:with\s+)?status|^\d+ ", re.MULTILINE)


def page() -> str:
    """Return the text of docs/reference/cli.md."""
    return _INTRODUCTION + "\n".join(_lines()) + "\n"


def _lines() -> Iterator[str]:
    manuals = tuple(verb_manuals())
    markdown = Markdown(manuals)
    yield f"\n{markdown.text(help_text.DESCRIPTION)}\n"
    for section, verbs in groupby(manuals, key=lambda each: each.section):
        yield f"**{section}**\n"
        for verb in verbs:
            if not verb.is_subcommand:
                yield f"* {_link(verb)}: {markdown.text(verb.summary)}"
        yield ""
    yield "## Projects as arguments\n"
    yield f"{markdown.text(help_text.REF_SYNTAX)}\n"
    yield "## Output\n"
    yield f"{markdown.text(help_text.OUTPUT_FORMATS)}\n"
    yield "## Global flags\n\nThese flags work before and after the verb.\n"
    yield from markdown.terms(global_flags())
    yield "\n## Exit statuses"
    yield from _exit_statuses(manuals, markdown)
    for section, verbs in groupby(manuals, key=lambda each: each.section):
        yield f"\n## {section}"
        for verb in verbs:
            yield from _verb(verb, markdown)
    yield "\n## Environment\n"
    yield from markdown.terms(help_text.ENVIRONMENT_VARIABLES)
    yield "\n## Files\n"
    yield from markdown.terms(help_text.FILES)


def _exit_statuses(manuals: Iterable[VerbManual], markdown: Markdown) -> Iterator[str]:
    codes = {exit_of(code): code.value for code in ErrorCode}
    meanings = {
        status: markdown.text(text) for status, (_, text) in help_text.EXIT_STATUSES.items()
    }
    rows = (
        f"| {int(status)} | {_code(codes[status]) if status in codes else ''} | {meaning} |"
        for status, meaning in meanings.items()
    )
    yield _STATUSES + "\n".join(rows)
    yield f"\nAfter a bug, the status is {int(Exit.FAILED)} and the code `bug`."
    links = ", ".join(_link(verb) for verb in manuals if _STATUS_WORDS.search(_whole_text(verb)))
    yield f"These verbs say more about their statuses: {links}."


def _verb(verb: VerbManual, markdown: Markdown) -> Iterator[str]:
    level = "####" if verb.is_subcommand else "###"
    yield f"\n{level} `rootsd {verb.command}`\n"
    yield f"```text\n{verb.usage}\n```\n"
    yield "\n\n".join(markdown.paragraph(each) for each in verb.paragraphs)
    if verb.aliases:
        yield f"\nAlso called {' and '.join(map(_code, verb.aliases))}."
    if verb.options:
        yield ""
        yield from markdown.terms(verb.options)
    if verb.examples:
        examples = "\n".join(verb.examples)
        yield f"\n```sh\n{examples}\n```"


class Markdown:
    """Turns the plain text of the help into Markdown: commands, options, and paths become code."""

    def __init__(self, manuals: Iterable[VerbManual]) -> None:
        words = sorted((*(each.command for each in manuals), *ALIASES), key=len, reverse=True)
        command = _COMMAND.replace("VERBS", "|".join(map(re.escape, words)))
        self._code = re.compile("|".join((command, *_CODE)))

    def text(self, plain: str) -> str:
        """Return a text in one line."""
        plain, pieces, end = " ".join(plain.split()), [], 0
        for found in self._code.finditer(plain):
            pieces += [_escaped(plain[end : found.start()]), _marked(found[0].strip("`"))]
            end = found.end()
        return "".join((*pieces, _escaped(plain[end:])))

    def paragraph(self, paragraph: HelpParagraph) -> str:
        """Return a paragraph; a verbatim one becomes a block."""
        if paragraph.is_verbatim:
            return f"```text\n{paragraph.text}\n```"
        return self.text(paragraph.text)

    def terms(self, rows: Mapping[str, str]) -> Iterator[str]:
        """Yield an item of a list for each term and its meaning."""
        for term, meaning in rows.items():
            yield f"* {_code(term)}: {self.text(meaning)}"


def _whole_text(verb: VerbManual) -> str:
    return "\n".join((*(each.text for each in verb.paragraphs), *verb.options.values()))


def _link(verb: VerbManual) -> str:
    return f"[{_code(verb.command)}](#rootsd-{verb.command.replace(' ', '-')})"


def _marked(text: str) -> str:
    """Return what is code in a text as code, or the name of a document as a link to it."""
    below_docs = text.removeprefix("docs/")
    return f"[{text}](../{below_docs})" if below_docs != text else _code(text)


def _code(text: str) -> str:
    return f"`{text}`"


def _escaped(text: str) -> str:
    return _MARKUP.sub(r"\\\g<0>", text)


def main() -> None:
    """Write the page."""
    FILE.parent.mkdir(exist_ok=True)
    FILE.write_text(page(), encoding="utf-8")


if __name__ == "__main__":
    main()
