"""`rootsd run`: run any MCP server with the approved roots.

This is only the help. `rootsd.__main__` starts `rootsd run` itself without click.
"""

from __future__ import annotations

import click

from rootsd.cli.answers.invocation import Invocation
from rootsd.cli.options.flags import pass_invocation, verb
from rootsd.cli.options.wall import only_option, proxy_options

SECTION = "For programs"

EXAMPLES = """\
rootsd run -- npx -y @modelcontextprotocol/server-filesystem
rootsd run --only tag:work -- my-git-server {root}
rootsd run --env ALLOWED={roots} -- my-server
rootsd run --confine --no-network -- uvx mcp-server-git"""


@verb(
    "run",
    epilog=EXAMPLES,
    context_settings={"ignore_unknown_options": True, "allow_interspersed_args": False},
)
@only_option(
    "give the server only",
    "NAME|tag:T|focus|cwd[/SUB]",
    "; cwd/SUB gives only the folder SUB in that directory",
)
@click.option(
    "--workspace",
    is_flag=True,
    help="give the server the roots of this session's workspace (the default)",
)
@click.option("--all", "everything", is_flag=True, help="give the server every approved root")
@click.option(
    "--client-roots",
    type=click.Choice(["auto", "narrow"]),
    help="limit the scope to the client's own roots if they are useful (auto) or always (narrow)",
)
@click.option(
    "--advisory-access",
    is_flag=True,
    help="also give the server the read-only roots, and trust it not to write there",
)
@click.option(
    "--env",
    multiple=True,
    metavar="NAME=VALUE",
    help="set a variable for the server; VALUE may name roots, as arguments do",
)
@click.option(
    "--keep-cwd",
    is_flag=True,
    help="start the server in this working directory, even if it is in no root; without this, the"
    " server starts in an empty folder then",
)
@click.option(
    "--stay",
    is_flag=True,
    help="keep the roots of the folder where the session began; otherwise the server moves with"
    " the agent",
)
@proxy_options("server")
@click.argument("words", nargs=-1, type=click.UNPROCESSED, metavar="-- SERVER [ARGUMENT]...")
@pass_invocation
def command(invocation: Invocation, /, **_: object) -> int:
    """Run an MCP server on standard input and output, with the approved roots.

    A server that asks its client for roots gets the approved ones and every change, even if the
    client does not support roots. For other servers, put the roots into the command: {root} is the
    root that holds the working directory, or else the first one. {root:NAME} is the root of that
    name. {roots} is all roots; rootsd repeats the argument for each. When they change, rootsd
    restarts the server, and the client does not notice.

    By default, the server gets the workspace of this session: the root that holds the working
    directory, its worktrees, the roots that share a tag with it, and every root that you approve
    while the session runs. In a project that is not approved, the workspace is empty until you
    approve something. Outside all projects (in your home folder, for example), the workspace is
    every approved root.

    The server moves with the agent. When the agent enters a worktree or another project, the next
    call finds the server there. The new folder must be approved, or be a worktree of an approved
    project. Otherwise the call fails, and the folder becomes pending. A server stays with the
    roots that --only names.

    With --confine, the kernel hides your other files from the server, as with rootsd confine. To
    do this for every server, use `rootsd config set confine.default true`; --no-confine then makes
    an exception. Where the wall cannot work, the server does not start.

    If the client has roots of its own, they can take roots away from the server, but never add
    one. All other messages pass unchanged. The exit status is that of the server; as in a shell,
    it is 127 if the program does not exist, and 126 if it cannot be run.
    """
    from rootsd.proxy.run import main as run_proxy

    return run_proxy.main([*invocation.arguments])
