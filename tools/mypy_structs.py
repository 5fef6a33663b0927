"""A plugin of mypy that checks the fields in a call of `msgspec.structs.replace`.

mypy itself checks `dataclasses.replace` only. Without this plugin, a wrong field or type in a call
shows at run time only.
"""

from __future__ import annotations

from collections.abc import Callable

from mypy.expandtype import expand_type_by_instance
from mypy.nodes import ARG_NAMED_OPT, ARG_POS
from mypy.plugin import FunctionSigContext, Plugin
from mypy.types import CallableType, Instance, get_proper_type

_REPLACE = "msgspec.structs.replace"


class StructReplacePlugin(Plugin):
    """Gives `msgspec.structs.replace` the signature of the struct's constructor."""

    def get_function_signature_hook(
        self, fullname: str
    ) -> Callable[[FunctionSigContext], CallableType] | None:
        """Return the hook for `replace`, and None for any other function."""
        return _signature if fullname == _REPLACE else None


def _signature(context: FunctionSigContext) -> CallableType:
    """Return a signature whose optional keywords are the fields of the first argument."""
    given = context.args[0]
    struct = get_proper_type(context.api.get_expression_type(given[0])) if given else None
    if not isinstance(struct, Instance) or (init := struct.type.get_method("__init__")) is None:
        return context.default_signature
    constructor = get_proper_type(init.type)
    if not isinstance(constructor, CallableType):
        return context.default_signature
    of_struct = expand_type_by_instance(constructor, struct)
    return context.default_signature.copy_modified(
        arg_names=[None, *of_struct.arg_names[1:]],
        arg_kinds=[ARG_POS, *(ARG_NAMED_OPT for _ in of_struct.arg_kinds[1:])],
        arg_types=[struct, *of_struct.arg_types[1:]],
        ret_type=struct,
        variables=(),
    )


def plugin(_version: str) -> type[Plugin]:
    """Return the plugin, for mypy."""
    return StructReplacePlugin
