"""`rootsd acp`: run a coding agent of an editor in approved folders only.

This is only the help. `rootsd.__main__` starts `rootsd acp` itself without click.
"""

from __future__ import annotations

import click

from rootsd.cli.answers.invocation import Invocation
from rootsd.cli.options.flags import pass_invocation, verb
from rootsd.cli.options.wall import only_option, proxy_options

SECTION = "For programs"

EXAMPLES = """\
rootsd acp -- claude-agent-acp
rootsd acp --confine -- npx -y @agentclientprotocol/claude-agent-acp
rootsd acp --only tag:work --wrap-servers -- codex-acp"""


@verb(
    "acp",
    epilog=EXAMPLES,
    context_settings={"ignore_unknown_options": True, "allow_interspersed_args": False},
)
@only_option("allow sessions only in")
@click.option(
    "--workspace", is_flag=True, help="allow sessions only in the workspace of this folder"
)
@click.option(
    "--all", "everything", is_flag=True, help="with --confine: show every approved root at once"
)
@click.option(
    "--wrap-servers",
    is_flag=True,
    help="also start the MCP servers of each session with rootsd run",
)
@proxy_options("agent")
@click.argument("words", nargs=-1, type=click.UNPROCESSED, metavar="-- AGENT [ARGUMENT]...")
@pass_invocation
def command(invocation: Invocation, /, **_: object) -> int:
    """Run a coding agent of an editor, in approved folders only.

    The editor speaks ACP, the Agent Client Protocol, with the agent. rootsd acp stands between
    them. rootsd connect zed and rootsd connect jetbrains add such an agent to the editor.

    A session starts only in an approved folder. For any other folder, the editor shows an error
    with the command to approve it, and the folder is pending. Each session also gets the other
    roots of its workspace, if the agent can use them: the worktrees of its folder, and the roots
    that share a tag with it. rootsd's own MCP tools are added, too.

    The agent can ask the editor to read files, write files, and run commands. Outside the folders
    of the session, rootsd refuses that. An agent also has tools of its own, and these reach all
    of your files. Only --confine limits them.

    With --confine, the kernel hides all your files except the roots of the sessions from the
    agent, as with rootsd confine. The agent then uses its own tools only, because the editor's
    would work outside the wall.

    All other messages pass unchanged. On a terminal, rootsd acp starts the agent itself, so that
    you can log in. The exit status is that of the agent.
    """
    from rootsd.proxy.acp import main as relay

    return relay.main([*invocation.arguments])
