"""Describe the types of rootsd/1, for the JSON Schema and for the pages in docs/reference/.

The description of a key is the docstring below it, or its text in `Annotated`. In such a
description, "a value of `X`" stands for the values of the enumeration X.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from enum import Enum
from typing import is_typeddict

import msgspec
from attribute_docs import attribute_docs
from msgspec import inspect

from rootsd.agents.forms.client import ClientTrial
from rootsd.agents.forms.reach import ExposureKind, Extent
from rootsd.cli.answers.connecting import WiringResult
from rootsd.cli.manual import verb_contexts
from rootsd.cli.options.flags import VerbCommand
from rootsd.connect.client_files import Wired
from rootsd.connect.health import ClientAnswer
from rootsd.core.access import Access
from rootsd.core.decide import VerdictReason
from rootsd.core.doctor import Severity
from rootsd.core.errors import ErrorCode
from rootsd.core.guard_setting import Guard
from rootsd.core.known_programs import ProgramUse
from rootsd.core.model import (
    ActorKind,
    MountPolicy,
    NestedPolicy,
    Presence,
    ProjectKind,
    Verdict,
)
from rootsd.core.record import field_docs
from rootsd.core.risks import FindingKind, RiskLimit
from rootsd.core.wall import RevokePolicy, WallEngine
from rootsd.discovery.status import ParentState
from rootsd.wall.kernel.daemon_rights import Confinement
from rootsd.wire.follow import ProjectGroup

_ENUMERATIONS: Mapping[str, type[Enum]] = {
    each.__name__: each
    for each in (
        Access, ActorKind, ClientAnswer, ClientTrial, Confinement, ErrorCode, ExposureKind, Extent,
        FindingKind, Guard,
        MountPolicy, NestedPolicy, ParentState, Presence, ProgramUse, ProjectGroup, ProjectKind,
        RevokePolicy, RiskLimit,
        Severity, Verdict, VerdictReason, WallEngine, Wired, WiringResult,
    )
}  # fmt: skip
_VALUE = re.compile(r"\b([Aa]) value of `(\w+)`")


def key_descriptions(owner: type) -> dict[str, str]:
    """Return the description of each key of a type, in one line."""
    annotated = {} if is_typeddict(owner) else field_docs(owner)
    return {
        name: _VALUE.sub(_listed, " ".join((doc or annotated.get(name, "")).split()))
        for name, doc in attribute_docs(owner).items()
    }


def _listed(found: re.Match[str]) -> str:
    values = ", ".join(f"`{member.value}`" for member in _ENUMERATIONS[found[2]])
    return f"{'One' if found[1] == 'A' else 'one'} of {values}"


def command_outputs() -> dict[str, tuple[type, ...]]:
    """Return the types of what each command prints with `--json`; none if it prints no object."""
    return {
        context.command_path.partition(" ")[2]: context.command.prints
        for context in verb_contexts()
        if isinstance(context.command, VerbCommand)
    }


Object = inspect.TypedDictType | inspect.NamedTupleType
"""The description of a JSON object: a TypedDict, or a record of `rootsd.core.record`."""


def json_objects(types: Iterable[type]) -> dict[str, Object]:
    """Return all JSON objects that these types are or hold, by name, in order of the search."""
    found: dict[str, Object] = {}
    for each in msgspec.inspect.multi_type_info(tuple(types)):
        _collect(each, found)
    return found


def _collect(one: inspect.Type, found: dict[str, Object]) -> None:
    if isinstance(one, Object):
        if one.cls.__name__ in found:
            return
        found[one.cls.__name__] = one
    for inner in _inside(one):
        _collect(inner, found)


def _inside(one: inspect.Type) -> Iterator[inspect.Type]:
    match one:
        case inspect.TypedDictType(fields=fields) | inspect.NamedTupleType(fields=fields):
            yield from (field.type for field in fields)
        case inspect.UnionType(types=types):
            yield from types
        case inspect.CollectionType(item_type=item):
            yield item
        case inspect.Metadata(type=inner):
            yield inner
        case _:
            pass
