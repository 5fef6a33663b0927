"""An MCP server that reads files, and only inside of roots that the user approved.

claude mcp add files -- python server.py
"""

from pathlib import Path

from mcp.server.mcpserver import MCPServer

from rootsd.client import is_path_allowed

server = MCPServer("files")


@server.tool()
def read_file(path: str) -> str:
    """Read a text file that lies in an approved folder."""
    real = Path(path).resolve()  # what is asked about is what is opened
    if not is_path_allowed(real):
        raise PermissionError(f"{path} is in no folder that the user approved")
    return real.read_text()


if __name__ == "__main__":
    server.run()
