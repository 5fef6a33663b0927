"""Read the docstrings of attributes: the strings below the fields of a class, which Python drops.

class Root:
    uri: str
    \"\"\"The URI that MCP clients get.\"\"\"
"""

from __future__ import annotations

import ast
import inspect
import sys
from collections.abc import Mapping
from functools import cache


@cache
def own_attribute_docs(owner: type) -> Mapping[str, str]:
    """Return the docstring of each attribute that a class itself declares, or an empty one.

    They are in the order of the source, and keep their line breaks.
    """
    docs: dict[str, str] = {}
    name = ""
    for statement in _definition(owner).body:
        match statement:
            case ast.AnnAssign(target=ast.Name(name)) | ast.Assign(targets=[ast.Name(name)]):
                docs[name] = ""
            case ast.Expr(ast.Constant(str() as doc)) if name:
                docs[name] = inspect.cleandoc(doc)
            case _:
                name = ""
    return docs


def bases_of(owner: type) -> tuple[type, ...]:
    """Return the bases of a class that are classes of rootsd.

    At run time, a TypedDict has none, so the source says which it has.
    """
    names = vars(sys.modules[owner.__module__])
    bases = (names.get(ast.unparse(base)) for base in _definition(owner).bases)
    return tuple(
        base for base in bases if isinstance(base, type) and base.__module__.startswith("rootsd.")
    )


def attribute_docs(owner: type) -> Mapping[str, str]:
    """Return the docstrings of the attributes of the bases of a class, and then its own.

    An attribute without a docstring has that of the base.
    """
    docs: dict[str, str] = {}
    for base in bases_of(owner):
        docs |= attribute_docs(base)
    return docs | {
        name: doc or docs.get(name, "") for name, doc in own_attribute_docs(owner).items()
    }


@cache
def _definition(owner: type) -> ast.ClassDef:
    [definition] = ast.parse(inspect.getsource(owner)).body
    assert isinstance(definition, ast.ClassDef)
    return definition
