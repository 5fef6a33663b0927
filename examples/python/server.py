"""An MCP server that reads only files in the roots that the user approved.

To add it to Claude Code: claude mcp add files -- python server.py
"""

from pathlib import Path

from mcp.server.mcpserver import MCPServer
from mcp.server.mcpserver.exceptions import ToolError

from rootsd.client import RootsdError, is_path_allowed

server = MCPServer("files")


@server.tool()
def read_file(path: str) -> str:
    """Read a text file in an approved folder."""
    try:
        real = Path(path).resolve()  # check the same path that is read below
        if is_path_allowed(real):
            return real.read_text()
    except RootsdError as error:  # for example, the daemon does not answer
        raise ToolError(f"{error.message}; try: {error.remedy}") from error
    except (OSError, ValueError, RuntimeError) as error:  # missing, not text, or a loop of links
        raise ToolError(f"{path} cannot be read: {error}") from error
    # The model sees the message of a ToolError, but not of other exceptions.
    raise ToolError(f"{path} is not in a folder that the user approved")


if __name__ == "__main__":
    server.run()
