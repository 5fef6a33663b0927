"""An MCP server that reads files, and only inside of roots that the user approved.

claude mcp add files -- python server.py
"""

from pathlib import Path

from mcp.server.mcpserver import MCPServer
from mcp.server.mcpserver.exceptions import ToolError

from rootsd.client import RootsdError, is_path_allowed

server = MCPServer("files")


@server.tool()
def read_file(path: str) -> str:
    """Read a text file that lies in an approved folder."""
    try:
        real = Path(path).resolve()  # what is asked about is what is opened
        if is_path_allowed(real):
            return real.read_text()
    except RootsdError as error:  # the daemon does not answer, for instance
        raise ToolError(f"{error.message}; try: {error.remedy}") from error
    except (OSError, ValueError, RuntimeError) as error:  # missing, no text, a loop of links
        raise ToolError(f"{path} cannot be read: {error}") from error
    # The model gets the message of a ToolError; of any other exception it gets none.
    raise ToolError(f"{path} is in no folder that the user approved")


if __name__ == "__main__":
    server.run()
