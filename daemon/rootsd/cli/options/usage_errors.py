"""Explain a wrong command line as all other errors: what is wrong, and a command to copy."""

from __future__ import annotations

import re
import shlex
from ast import literal_eval
from collections.abc import Iterable

import click

from rootsd.cli.text.phrases import any_of
from rootsd.core.errors import ErrorCode, RootsdError
from rootsd.core.suggestions import did_you_mean, nearest, nearest_options

# What other programs call a command. The first ones that the group has are suggested.
_OTHER_NAMES = {
    "start": ("up",),
    "stop": ("down",),
    "install": ("service install",),
    "uninstall": ("service uninstall",),
    "remove": ("rm", "deny", "forget"),
    "delete": ("rm", "deny", "forget"),
    "rm": ("deny", "forget"),
    "list": ("ls",),
    "info": ("show",),
    "edit": ("config edit",),
    "sandbox": ("confine",),
    "man": ("help",),
    "purge": ("prune", "service uninstall"),
    "approve": ("add approve",),  # of `rule`
    "deny": ("add deny",),
}
_WRONG_CHOICE = re.compile(r"('.*'|\".*\") is not (?:one of )?[^\n]*\.$", re.DOTALL)
_TOO_MUCH = re.compile(r"Got unexpected extra arguments? \((.*)\)", re.DOTALL)
_NO_VALUE = re.compile(r"Option '(.+)' (requires an argument|does not take a value)\.")


class WrongUsage(RootsdError):
    """A command line that the command does not understand."""

    code = ErrorCode.USAGE


def explained(error: click.ClickException, verb: str) -> WrongUsage:
    """Return an error of click in our words. `verb` is the one that was understood."""
    return _option_before_verb(error) or _option_for_argument(error) or _explained(error, verb)


def _explained(error: click.ClickException, verb: str) -> WrongUsage:
    context = error.ctx if isinstance(error, click.UsageError) else None
    command = verb if context is None else context.command_path.partition(" ")[2]
    typed, choices, text = "", list[str](), error.format_message()
    match error:
        case click.NoSuchCommand():
            typed = error.command_name
            choices = _meant_commands(typed, context)
            text = f"there is no command {command} {typed}".replace("  ", " ")
        case click.exceptions.NoArgsIsHelpError(ctx=click.Context(command=click.Group() as group)):
            text = f"name what to do: {any_of(group.list_commands(error.ctx))}"
        case click.NoSuchOption():
            typed = error.option_name
            choices = nearest_options(typed, _options_of(context))
            text = f"{command or 'rootsd'} has no option {typed}"
        case click.MissingParameter(param=click.Parameter() as param):
            text = f"{_name_of(param)} is missing"
            if isinstance(param.type, click.Choice):
                text += f": use {any_of(map(str, param.type.choices))}"
        case click.BadParameter(param=click.Parameter() as param):
            text, typed, choices = _about_value(param, error.message)
        case _ if found := _TOO_MUCH.fullmatch(error.message):
            text = f"{command} does not take {found[1]}"
        case _ if found := _NO_VALUE.fullmatch(error.message):
            needs = found[2] == "requires an argument"
            text = f"{found[1]} needs a value" if needs else f"{found[1]} takes no value"
        case _:
            pass
    message = text + did_you_mean(choices)
    remedy = f"rootsd {command} --help".replace("  ", " ")
    return WrongUsage(message, remedy, typed=typed, choices=choices)


def _option_before_verb(error: click.ClickException) -> WrongUsage | None:
    """Return the error for an unknown option before a verb. For another error, return None."""
    if not isinstance(error, click.NoSuchOption) or error.ctx is None:
        return None
    option, context = error.option_name, error.ctx
    words = list(context.find_root().obj.words)
    before = len(context.command_path.split()) - 1
    unknown: WrongUsage | None = None
    for at in range(before, len(words)):
        command, end = context.command, at
        while isinstance(command, click.Group) and end < len(words):
            inner = command.get_command(context, words[end])
            if inner is None:
                break
            command, end = inner, end + 1
        if end == at:
            continue
        verb = " ".join((*words[:before], *words[at:end]))
        known = [each for each in command.params if option in each.opts]
        if not known:
            text = f"{verb} has no option {option}"
            text += did_you_mean(nearest_options(option, _options_of(click.Context(command))))
            unknown = unknown or WrongUsage(text, f"rootsd {verb} --help")
        elif getattr(known[0], "is_flag", False) or words[at - 1] != option:
            line = [*words[:before], *words[at:end], *words[before:at], *words[end:]]
            return WrongUsage(f"{option} comes after {verb}", shlex.join(["rootsd", *line]))
    return unknown


def _about_value(param: click.Parameter, message: str) -> tuple[str, str, list[str]]:
    """Return what is wrong with a value, the value if it is no choice, and what was meant."""
    name, kind = _name_of(param), param.type
    wrong = _WRONG_CHOICE.fullmatch(message)
    known = list(map(str, getattr(kind, "choices", ())))
    if isinstance(kind, click.types.IntParamType):
        return f"{name} has to be a whole number{_range_of(kind)}", "", []
    if wrong is None:
        return f"{name}: {message.removesuffix('.')}", "", []
    typed = literal_eval(wrong[1])
    begun = [each for each in known if typed and each.startswith(typed)]
    choices = begun if len(begun) == 1 else nearest(typed, known)
    return (
        f"{name} cannot be {typed}" + ("" if choices else f": use {any_of(known)}"),
        typed,
        choices,
    )


def _option_for_argument(error: click.ClickException) -> WrongUsage | None:
    """Return the error for `--deny` where `deny` is the first argument. For another, None."""
    if not isinstance(error, click.NoSuchOption) or error.ctx is None:
        return None
    option, context = error.option_name, error.ctx
    word, words = option.removeprefix("--"), list(context.find_root().obj.words)
    first = next(
        (each for each in context.command.params if isinstance(each, click.Argument)), None
    )
    if option not in words or word not in getattr(first and first.type, "choices", ()):
        return None
    words.remove(option)
    at = len(context.command_path.split()) - 1
    verb = " ".join(words[:at])
    line = shlex.join(["rootsd", *words[:at], word, *words[at:]])
    return WrongUsage(f"{verb} has no option {option}; it is an argument", line)


def _range_of(kind: click.types.IntParamType) -> str:
    """Return ` from 1 to 64`, ` of at least 1`, or nothing."""
    low, high = getattr(kind, "min", None), getattr(kind, "max", None)
    if low is None or high is None:
        return "" if low is None else f", {low} or more"
    return f" from {low} to {high}"


def _meant_commands(typed: str, context: click.Context | None) -> list[str]:
    group = context.command if context else None
    if context is None or not isinstance(group, click.Group):
        return []
    known = group.list_commands(context)
    other = [each for each in _OTHER_NAMES.get(typed, ()) if each.split()[0] in known]
    return other or nearest(typed, known)


def _options_of(context: click.Context | None) -> Iterable[str]:
    parameters = context.command.get_params(context) if context else ()
    return [word for each in parameters for word in (*each.opts, *each.secondary_opts)]


def _name_of(parameter: click.Parameter) -> str:
    """Return `--kind`, or the name of an argument as the help has it, such as `REF`."""
    if isinstance(parameter, click.Option):
        return max(parameter.opts, key=len)
    return parameter.human_readable_name.strip("[].")
