"""`rootsd hook`: answer the permission hook of an agent.

`rootsd.__main__` answers a hook itself, without click. This module has the help.
"""

from __future__ import annotations

import click

from rootsd import hook
from rootsd.cli.answers.invocation import Invocation
from rootsd.cli.options.flags import pass_invocation, verb

SECTION = "For programs"


@verb("hook", epilog="rootsd hook claude-code <call.json")
@click.argument("client", type=click.Choice(list(hook.dialects())))
@click.option("--strict", is_flag=True, help="deny a call that rootsd cannot judge")
@pass_invocation
def command(invocation: Invocation, /, **_: object) -> int:
    """Answer the permission hook of an agent. Its configuration runs this before each tool call.

    The call is read from standard input, as JSON. The answer denies file tools where you denied a
    folder. In Claude Code, it also allows reading tools in the workspace of the session. In all
    other cases, nothing is printed, and the agent asks you or decides as usual.

    This is a convenience. It does not see the paths in shell commands, and the agent lets a call
    pass if the hook fails or no daemon answers. With --strict (Claude Code only), such a call is
    denied. docs/SYNC.md shows the configuration of each client.
    """
    return hook.main([*invocation.arguments])
