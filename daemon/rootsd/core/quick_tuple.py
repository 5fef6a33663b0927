"""Define named tuples faster than `typing.NamedTuple`, for records that each start loads.

`typing` compiles each annotation to check it, which takes 0.1 ms for a class, and 3 ms for those
that `rootsd confine` needs before anything else. Type checkers see the usual class.
"""

from __future__ import annotations

from collections import namedtuple

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any
    from typing import NamedTuple as NamedTuple  # noqa: PLC0414 - exported
else:

    class _Definition(type):
        """Makes a named tuple of the body of a class."""

        def __new__(cls, name: str, bases: tuple[type, ...], body: dict[str, Any]) -> type:
            if not bases:
                return super().__new__(cls, name, bases, body)
            fields = body.get("__annotations__", {})
            defaults = [body.pop(field) for field in fields if field in body]
            module = body.pop("__module__")
            made = namedtuple(name, fields, defaults=defaults, module=module)  # noqa: PYI024
            for key, value in body.items():
                setattr(made, key, value)
            return made

    class _Base(metaclass=_Definition):
        """What a class with the base `NamedTuple` inherits from until it is made."""

    def NamedTuple() -> None:  # noqa: N802 - as in `typing`, it is no class
        """Stand for a named tuple among the bases of a class."""

    NamedTuple.__mro_entries__ = lambda _: (_Base,)
