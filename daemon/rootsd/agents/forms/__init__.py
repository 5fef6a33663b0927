"""The forms of the facets, one module for each. A form is loaded when a facet is first asked for.

So `rootsd hook`, which agents run before each call of a tool, loads no more than it reads.
"""

from __future__ import annotations

from importlib import import_module

TYPE_CHECKING = False  # an import of typing would take a seventh of a hook's run
if TYPE_CHECKING:
    from types import ModuleType

    from rootsd.agents.forms import access as access
    from rootsd.agents.forms import client as client
    from rootsd.agents.forms import hook as hook
    from rootsd.agents.forms import like_gemini as like_gemini
    from rootsd.agents.forms import like_opencode as like_opencode
    from rootsd.agents.forms import place as place
    from rootsd.agents.forms import reach as reach
    from rootsd.agents.forms import state as state


def __getattr__(name: str) -> ModuleType:
    if name.startswith("_"):
        raise AttributeError(name)
    return import_module(f"{__name__}.{name}")
