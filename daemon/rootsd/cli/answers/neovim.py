"""The Lua lines with which plugins of Neovim run an agent under `rootsd acp`.

Lua is code, so `rootsd connect` does not edit it. Sources: the documentation of each plugin.
"""

from __future__ import annotations

import json

_AGENT = ("acp", "--", "claude-agent-acp")
_AVANTE = """\
-- In the options of avante.nvim:
provider = "claude-code",
acp_providers = {{
  ["claude-code"] = {{ command = {command}, args = {{ {arguments} }}, env = {{}} }},
}},"""
_AGENTIC = """\
-- In the options of agentic.nvim:
acp_providers = {{
  ["claude-agent-acp"] = {{ command = {command}, args = {{ {arguments} }} }},
}},"""
_CODE_COMPANION = """\
-- In the options of codecompanion.nvim:
adapters = {{
  acp = {{
    claude_code = function()
      return require("codecompanion.adapters").extend("claude_code", {{
        commands = {{ default = {{ {command}, {arguments} }} }},
      }})
    end,
  }},
}},"""
_LINES = {"agentic": _AGENTIC, "avante": _AVANTE, "codecompanion": _CODE_COMPANION}
PLUGINS = tuple(_LINES)


def lua_for(plugin: str, rootsd: str) -> str:
    """Return the lines for one of `PLUGINS`. `rootsd` is the path of the command."""
    arguments = ", ".join(map(json.dumps, _AGENT))
    return _LINES[plugin].format(command=json.dumps(rootsd), arguments=arguments)
