"""The help of `rootsd run`; the relay itself is started without the command line."""

from __future__ import annotations

import click

from rootsd.cli import completion
from rootsd.cli.flags import VerbCommand

EXAMPLES = """\
rootsd run -- npx -y @modelcontextprotocol/server-filesystem
rootsd run --only tag:work -- my-git-server {root}
rootsd run --env ALLOWED={roots} -- my-server"""


@click.command(
    "run",
    cls=VerbCommand,
    epilog=EXAMPLES,
    context_settings={"ignore_unknown_options": True, "allow_interspersed_args": False},
)
@click.option(
    "--only",
    multiple=True,
    metavar="NAME|tag:T|cwd",
    shell_complete=completion.scopes,
    help="tell the server of these roots only: by name, by tag, or the one that holds the working"
    " directory",
)
@click.option(
    "--workspace",
    is_flag=True,
    help="tell the server of the workspace of this session; the default",
)
@click.option("--all", "everything", is_flag=True, help="tell the server of every approved root")
@click.option(
    "--client-roots",
    type=click.Choice(["auto", "narrow", "override"]),
    help="narrow the scope to the client's own roots where they are of use (auto) or in any case"
    " (narrow); override is an old name of --all",
)
@click.option(
    "--advisory-access",
    is_flag=True,
    help="also tell the server of roots that are approved for reading only, and trust it",
)
@click.option(
    "--env",
    multiple=True,
    metavar="NAME=VALUE",
    help="a variable for the server, in which roots may be named as in its arguments",
)
@click.option("--name", metavar="NAME", help="what rootsd sessions calls this server")
@click.argument("words", nargs=-1, type=click.UNPROCESSED, metavar="-- SERVER [ARGUMENT]...")
def command(  # noqa: PLR0913 - one for each flag
    only: tuple[str, ...],
    client_roots: str | None,
    env: tuple[str, ...],
    name: str | None,
    words: tuple[str, ...],
    *,
    workspace: bool,
    everything: bool,
    advisory_access: bool,
) -> int:
    """Run an MCP server on standard input and output, inside the approved set.

    Servers that ask their client for roots are told of the approved ones, whatever the client can
    do, and of every change. For servers that do not ask, name the roots in their command: {roots}
    stands for all paths (the argument is repeated for each), {root} for the one that holds the
    working directory, else the first, {root:NAME} for one; when they change the server is started
    again, and the client does not notice.

    The server is told of the workspace of this session: the root that holds the working directory,
    its worktrees, the roots that share a tag with it, and every root that you approve while the
    session runs. In a project that is not approved, that is nothing until you approve something.
    In no project (your home, for instance), it is every approved root.

    The client's own roots can only narrow what the server is told of. Everything else passes
    untouched. Ends with the status of the server; as in a shell, 127 where there is no such
    program and 126 where it cannot be run.
    """
    from rootsd.proxy.run import main as relay

    told = [text for each in only for text in ("--only", each)]
    told += ["--workspace"] if workspace else []
    told += ["--all"] if everything else []
    told += ["--client-roots", client_roots] if client_roots else []
    told += ["--advisory-access"] if advisory_access else []
    told += [text for each in env for text in ("--env", each)]
    told += ["--name", name] if name else []
    return relay.main([*told, "--", *words])
