"""Which programs count as a person's: ordinary ways of people, agents, and disguises."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest

from rootsd.agents.guarded import guarded_agents
from rootsd.core import recognition
from rootsd.core.guard import Caller, GuardAction, GuardDecision, McpHosts, check_caller
from rootsd.core.guard_setting import Guard
from rootsd.core.known_programs import INTERPRETERS, KNOWN_PROGRAMS, KNOWN_SCRIPTS, ProgramUse
from rootsd.core.processes import Lineage, Process, ProgramSight
from rootsd.core.recognition import allow_command, allowance, uses_of
from support.process_table import TERMINAL, process

ADMIT, CHALLENGE, REFUSE = GuardAction.ADMIT, GuardAction.CHALLENGE, GuardAction.REFUSE
KNOWN = guarded_agents()
HOME = "/home/ann"
PYTHON, NODE = "/usr/bin/python3.12", "/usr/bin/node"


def run(path: str, *words: str, name: str = "", **more: object) -> Process:
    """Return a process of the executable at `path`, with these words after its own name."""
    own = name or path.rpartition("/")[2]
    more = {"terminal": TERMINAL, "program": path.encode(), "folder": HOME.encode()} | more
    return process(2, 1, own, own, *words, **more)


def root(name: str) -> Process:
    """Return a process of root, about which another user sees only the name."""
    return run(f"/usr/sbin/{name}", program=b"", sight=ProgramSight.OF_ROOT, terminal=0)


def chain(*line: Process) -> tuple[Process, ...]:
    """Return `rootsd approve` below these processes."""
    words = (f"{HOME}/venv/bin/python3", f"{HOME}/.local/bin/rootsd", "approve", "api")
    rootsd = run(PYTHON, name="rootsd", arguments=tuple(map(str.encode, words)))
    whole = [rootsd, *line]
    pids = range(100 + len(whole), 100, -1)
    return tuple(
        replace(each, pid=pid, parent=pid - 1, started=pid * 10)
        for pid, each in zip(pids, whole, strict=True)
    )


def judged(*line: Process, allowed: frozenset[str] = frozenset()) -> GuardDecision:
    return check_caller(Guard.AGENTS, Caller(Lineage(chain(*line))), McpHosts(), KNOWN, allowed)


BASH = run("/usr/bin/bash", name="bash")
LOGIN_SHELL = run("/usr/bin/zsh", name="zsh")
SCRIPT = run("/usr/bin/bash", "provision.sh", name="bash")
USER_MANAGER = run("/usr/lib/systemd/systemd", "--user", name="systemd")
GNOME = run("/usr/libexec/gnome-terminal-server", name="gnome-terminal-")
SSHD = (
    run("/usr/lib/openssh/sshd-session", program=b"", sight=ProgramSight.HIDDEN, terminal=0),
    root("sshd-session"),
    root("sshd"),
)
CODE_SERVER = f"{HOME}/.vscode-server/cli/servers/Stable-1/server"
TOOLBOX = f"{HOME}/.local/share/JetBrains/Toolbox"
REMOTE_DEV = f"{HOME}/.cache/JetBrains/RemoteDev/dist/0a1b_idea-2025.1"
PERSONS_WAYS: dict[str, tuple[Process, ...]] = {
    "a tab of GNOME Terminal": (BASH, GNOME, USER_MANAGER),
    "kitty with zsh": (LOGIN_SHELL, run("/usr/bin/kitty")),
    "fish in Alacritty under sway": (
        run("/usr/bin/fish"), run("/usr/bin/alacritty"), run("/usr/bin/sway"), root("login"),
    ),
    "the console": (BASH, root("login")),
    "ssh": (BASH, *SSHD),
    "ssh with a command": (run("/usr/bin/bash", "-c", "rootsd approve api", name="bash"), *SSHD),
    "tmux": (BASH, run("/usr/bin/tmux", name="tmux: server")),
    "screen": (BASH, run("/usr/bin/screen")),
    "a terminal in VS Code": (
        BASH, run("/usr/share/code/code", "--type=utility"), run("/usr/share/code/code"), GNOME,
    ),
    "VS Code over ssh": (
        BASH,
        run(f"{CODE_SERVER}/node", f"{CODE_SERVER}/out/bootstrap-fork", "--type=ptyHost"),
        run(f"{CODE_SERVER}/node", f"{CODE_SERVER}/out/server-main.js"),
        *SSHD,
    ),
    "PyCharm": (BASH, run("/opt/pycharm/jbr/bin/java", "com.intellij.idea.Main")),
    "IntelliJ IDEA of the Toolbox": (
        BASH, run(f"{TOOLBOX}/apps/idea/bin/idea"), run(f"{TOOLBOX}/bin/jetbrains-toolbox"),
    ),
    "a server of JetBrains": (
        BASH,
        run(f"{REMOTE_DEV}/jbr/bin/java", "-classpath", f"{REMOTE_DEV}/lib/app.jar", "x.Main"),
        run(f"{REMOTE_DEV}/bin/remote-dev-server"),
        *SSHD,
    ),
    "Cursor over ssh": (
        BASH, run(f"{HOME}/.cursor-server/bin/abc/node", "--dns-result-order=ipv4first",
                  f"{HOME}/.cursor-server/bin/abc/out/server-main.js"), *SSHD,
    ),
    "a tunnel of VS Code": (BASH, run(f"{HOME}/.vscode-server/code-0f1e2d3"), USER_MANAGER),
    "Zed over ssh": (
        BASH, run(f"{HOME}/.zed_server/zed-remote-server-stable-0.200.1+stable"), *SSHD,
    ),
    "an AppImage": (BASH, run("/tmp/.mount_weztermX/usr/bin/wezterm-gui"), USER_MANAGER),
    "Vim": (run("/usr/bin/sh", "-c", "rootsd approve api"), run("/usr/bin/vim.basic"), BASH),
    "cron": (run("/usr/bin/dash", "-c", "rootsd approve x", name="sh", terminal=0), root("cron")),
    "a unit of systemd": (replace(SCRIPT, terminal=0), USER_MANAGER),
    "a provisioning script over ssh": (replace(SCRIPT, terminal=0), *SSHD),
    "make": (run("/usr/bin/sh", "-c", "rootsd approve api"), run("/usr/bin/make"), BASH, GNOME),
    "sudo -u": (root("sudo"), BASH, GNOME, USER_MANAGER),
    "nix-shell": (
        run("/nix/store/abc-bash-5.2/bin/bash", "--rcfile", "/tmp/rc"), BASH, GNOME,
    ),
    "docker exec": (run("/bin/busybox", name="sh"),),
    "uv run, with uv in the home folder": (run(f"{HOME}/.local/bin/uv"), BASH, GNOME),
    "a terminal program in the home folder": (
        BASH, run(f"{HOME}/.local/kitty.app/bin/kitty"), USER_MANAGER,
    ),
}  # fmt: skip


def test_of_twenty_ways_of_people_at_most_two_are_asked() -> None:
    found = {way: judged(*line) for way, line in PERSONS_WAYS.items()}
    assert len(found) >= 20
    assert not [way for way, decision in found.items() if decision.action is REFUSE]
    asked = {way: each.allow for way, each in found.items() if each.action is CHALLENGE}
    assert asked == {
        "uv run, with uv in the home folder": ("rootsd guard allow /home/ann/.local/bin/uv"),
        "a terminal program in the home folder": (
            "rootsd guard allow /home/ann/.local/kitty.app/bin/kitty"
        ),
    }


def test_a_person_who_is_asked_needs_one_command() -> None:
    for line in PERSONS_WAYS.values():
        allowed = frozenset(filter(None, map(allowance, line)))
        assert judged(*line, allowed=allowed).action is ADMIT


AGENTS = (
    "agy", "aider", "amp", "antigravity-cli", "auggie", "claude", "cline", "cn", "codebuff",
    "codex", "copilot", "crush", "cursor-agent", "devin", "droid", "forge", "gemini", "goose",
    "grok", "hermes", "iflow", "junie", "kilocode", "kimi", "kiro-cli", "letta", "mistral-vibe",
    "mini-swe-agent", "openclaw", "opencode", "openhands", "plandex", "q", "qodo", "qwen",
    "rovodev", "trae-cli", "vibe", "warp-cli",
)  # fmt: skip
MODULES = f"{HOME}/.nvm/versions/node/v22/lib/node_modules"
FORMS: dict[str, Callable[[str], Process]] = {
    "installed for all": lambda name: run(f"/usr/local/bin/{name}"),
    "in the home folder": lambda name: run(f"{HOME}/.local/bin/{name}"),
    "in Node.js": lambda name: run(NODE, f"{MODULES}/x/{name}.js", name="node"),
    "in Node.js of a version manager": lambda name: run(
        f"{HOME}/.nvm/versions/node/v22/bin/node", "--no-warnings", f"/usr/bin/{name}", name="node"
    ),
    "in Python": lambda name: run(PYTHON, f"/usr/bin/{name}", name=name[:15]),
    "as a module": lambda name: run(PYTHON, "-m", name.replace("-", "_"), name="python3"),
    "with a title": lambda name: run(NODE, name=name[:15]),
}


@pytest.mark.parametrize("form", FORMS)
def test_no_agent_passes_unseen_under_any_name(form: str) -> None:
    assert len(AGENTS) >= 30
    for name in AGENTS:
        above = FORMS[form](name)
        assert judged(BASH, above, BASH, GNOME).action is not ADMIT, name
        quiet = (replace(each, terminal=0) for each in (BASH, above, BASH, GNOME))
        (first, *rest) = chain(*quiet)
        caller = Caller(Lineage((replace(first, terminal=0), *rest)))
        found = check_caller(Guard.AGENTS, caller, McpHosts(), KNOWN)
        assert found.action is REFUSE, name


def test_the_control_with_a_list_of_agents_alone_most_of_them_pass(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The planted fault is the guard of earlier versions: it knew agents, and no people."""
    listed = recognition._PROGRAMS | dict.fromkeys(AGENTS, ProgramUse.EDITOR)
    monkeypatch.setattr(recognition, "_PROGRAMS", listed)
    found = [judged(BASH, FORMS["installed for all"](name)).action for name in AGENTS]
    assert found.count(ADMIT) > 10


DISGUISED: dict[str, Process] = {
    "an argument": run(f"{HOME}/bin/agent", name="bash"),
    "a copy": run(f"{HOME}/bin/bash"),
    "a copy in /tmp": run("/tmp/tmux", name="tmux: server"),
    "a copy of Python": run(f"{HOME}/bin/bash", "agent.py"),
    "a program in memory": run("/memfd:bash (deleted)", name="bash"),
    "a deleted program": run(f"{HOME}/bin/bash (deleted)", name="bash"),
    "the dynamic linker": run("/usr/lib64/ld-linux-x86-64.so.2", f"{HOME}/agent", name="bash"),
    "a hidden process": run("", program=b"", sight=ProgramSight.HIDDEN, name="bash"),
    "a hidden process named as sshd": run(
        "", program=b"", sight=ProgramSight.HIDDEN, name="sshd-session"
    ),
    "a file that another mount namespace shows": run("", program=b"", name="bash"),
    "code in an argument": run(PYTHON, "-c", "import os", name="bash"),
    "code on the standard input": run(PYTHON, "-", name="python3"),
    "an interactive interpreter": run(PYTHON, name="python3"),
    "an option that names a known script": run(PYTHON, "-W", "rootsd", "agent.py", name="python3"),
    "a script that is loaded first": run(
        NODE, "-r", f"{HOME}/agent.js", "/usr/lib/node_modules/npm/bin/npm-cli.js", name="node"
    ),
    "npm's title": run(NODE, name="npm exec agent"),
    "npm in the home folder": run(NODE, f"{HOME}/npm-cli.js", name="node"),
    "rootsd above a command": run(PYTHON, "-m", "rootsd", "run", "--", "agent", name="rootsd"),
    "extensions of VS Code over ssh": run(
        f"{CODE_SERVER}/node", f"{CODE_SERVER}/out/bootstrap-fork", "--type=extensionHost"
    ),
    "an agent that an extension brought": run(
        f"{HOME}/.vscode-server/extensions/acme.agent-1.0/bin/code"
    ),
    "a script of an extension": run(
        f"{CODE_SERVER}/node", f"{HOME}/.vscode-server/extensions/acme.agent-1.0/out/cli.js"
    ),
    "a script elsewhere on an editor's Node.js": run(f"{CODE_SERVER}/node", f"{HOME}/agent.js"),
    "code in an argument on an editor's Node.js": run(f"{CODE_SERVER}/node", "-e", "agent()"),
    "a module that an editor's Node.js loads first": run(
        f"{CODE_SERVER}/node", "-r", f"{HOME}/agent.js", f"{CODE_SERVER}/out/server-main.js"
    ),
    "another program in an editor's folder": run(f"{HOME}/.vscode-server/bin/agent"),
    "a folder with the name of an editor's": run(f"{HOME}/JetBrains/agent"),
    "a plugin of JetBrains": run(f"{HOME}/.local/share/JetBrains/Idea1/plugins/agent/bin/idea"),
    "a program of JetBrains' Java": run("/opt/pycharm/jbr/bin/java", "-jar", f"{HOME}/agent.jar"),
    "a copy of Node.js in a folder jbr": run(f"{HOME}/jbr/node", f"{HOME}/agent.js"),
    "a busybox that plays no shell": run("/bin/busybox", name="nc"),
    "perl": run("/usr/bin/perl", "-e", "exec @ARGV", name="perl"),
    "a script of perl": run("/usr/bin/perl5.38-x86_64-linux-gnu", "agent.pl", name="perl"),
}


@pytest.mark.parametrize("way", DISGUISED)
def test_a_disguised_program_is_asked_about(way: str) -> None:
    assert judged(DISGUISED[way], BASH, GNOME).action is CHALLENGE
    assert judged(BASH, DISGUISED[way], BASH, GNOME).action is CHALLENGE


def test_a_wrapper_hides_no_agent_and_stops_no_person() -> None:
    wrappers = [
        run(f"/usr/bin/{name}", "x")
        for name in ("env", "nice", "script", "setsid", "make", "nix-shell", "timeout", "xargs")
    ]
    wrappers += [root("sudo"), run("/usr/bin/uv", "run", "x"), run(PYTHON, "/usr/bin/pipx")]
    wrappers.append(run(NODE, "/usr/lib/node_modules/npm/bin/npx-cli.js", "x", name="node"))
    agent = run(PYTHON, "agent.py", name="python3")
    for wrapper in wrappers:
        assert judged(BASH, wrapper, BASH, GNOME).action is ADMIT, wrapper
        assert judged(BASH, wrapper, agent, BASH).action is CHALLENGE, wrapper
        assert judged(BASH, agent, wrapper, BASH).action is CHALLENGE, wrapper


def test_an_upgraded_shell_and_the_names_of_distributions_are_known() -> None:
    for path in (
        "/usr/bin/bash (deleted)", "/usr/bin/zsh-5.9", "/usr/bin/emacs-30.1", "/usr/bin/vim.gtk3",
        "/nix/store/x-kitty/bin/.kitty-wrapped", "/home/linuxbrew/.linuxbrew/bin/bash",
        "/Applications/iTerm.app/Contents/MacOS/iTerm2",
    ):  # fmt: skip
        assert judged(run(path, name="x")).action is ADMIT, path


def test_programs_above_the_start_of_a_login_do_not_count() -> None:
    above = run("/opt/vendor/session-manager")
    assert judged(BASH, USER_MANAGER, above).action is ADMIT
    assert judged(BASH, GNOME, above).action is CHALLENGE, "the control: a terminal is no login"


def test_a_program_in_a_link_named_as_a_login_does_not_cut_the_chain() -> None:
    """The kernel names a process by the link: sudo runs as root under any name."""
    agent = run(f"{HOME}/bin/agent")
    assert judged(root("sshd"), agent, BASH).action is CHALLENGE


def test_without_access_to_programs_their_names_count() -> None:
    """The service with `--strict` runs in a user namespace of its own."""

    def blurred(*line: Process) -> list[Process]:
        far = ProgramSight.OUT_OF_REACH
        return [replace(each, program=b"", sight=far) for each in line]

    def judged_so(*line: Process) -> GuardAction:
        caller = Caller(Lineage(tuple(blurred(*chain(*line)))))
        return check_caller(Guard.AGENTS, caller, McpHosts(), KNOWN).action

    assert judged_so(BASH, GNOME, USER_MANAGER) is ADMIT
    assert judged_so(BASH, run(f"{HOME}/agent"), GNOME) is CHALLENGE
    assert judged_so(BASH, run(PYTHON, "agent.py", name="python3"), GNOME) is CHALLENGE


def test_an_allowed_program_is_known_by_its_path_or_its_script_and_never_hides_an_agent() -> None:
    tool, script = run(f"{HOME}/bin/tool"), run(PYTHON, "bin/tool.py", name="python3")
    module = run(PYTHON, "-m", "tool", name="python3")
    assert list(map(allowance, (tool, script, module))) == [
        f"{HOME}/bin/tool", f"{HOME}/bin/tool.py", "python -m tool",
    ]  # fmt: skip
    for one in (tool, script, module):
        assert judged(BASH, one).action is CHALLENGE
        assert judged(BASH, one, allowed=frozenset({allowance(one)})).action is ADMIT
        assert judged(one, BASH, allowed=frozenset({allowance(one)})).action is ADMIT
        assert judged(BASH, one, allowed=frozenset({PYTHON})).action is CHALLENGE
    claude = run(f"{HOME}/bin/claude")
    assert judged(BASH, claude, allowed=frozenset({allowance(claude)})).action is REFUSE


def test_the_challenge_and_the_refusal_name_the_program_and_the_command() -> None:
    agent = run(f"{HOME}/my tools/agent")
    found = judged(BASH, agent)
    assert "rootsd does not know agent (/home/ann/my tools/agent), pid " in found.why
    assert found.why.endswith(", which started it")
    assert found.allow == "rootsd guard allow '/home/ann/my tools/agent'"
    assert judged(DISGUISED["code in an argument"]).allow == ""
    assert "with a script that rootsd cannot tell" in judged(DISGUISED["perl"]).why
    assert "which hides its program" in judged(DISGUISED["a hidden process"]).why
    evil = run(f"{HOME}/\x1b[2J")
    assert judged(BASH, evil).why.isprintable()
    assert allow_command(evil) == ""


def test_a_caller_other_than_rootsd_is_asked_about() -> None:
    for caller in (
        run(PYTHON, f"{HOME}/agent.py", name="python3"), run(NODE, "agent.js", name="node"),
        run(f"{HOME}/bin/rootsd"),
    ):  # fmt: skip
        line = (replace(caller, pid=9, parent=8), replace(BASH, pid=8, parent=1))
        found = check_caller(Guard.AGENTS, Caller(Lineage(line)), McpHosts(), KNOWN)
        assert found.action is CHALLENGE
        assert found.why.endswith("which sent it")


def test_no_agent_and_no_interpreter_is_in_the_lists_of_peoples_programs() -> None:
    people = {name for names in KNOWN_PROGRAMS.values() for name in names}
    agents = {name for agent in KNOWN for name in agent.names}
    assert not people & agents
    assert not people & set(AGENTS)
    assert not people & INTERPRETERS
    names = [name for names in KNOWN_SCRIPTS.values() for name in names]
    assert not set(names) & (agents | set(AGENTS))


def test_the_uses_are_shown_in_the_order_of_the_chain() -> None:
    line = chain(BASH, run(f"{HOME}/agent"), root("sshd"))
    assert uses_of(line) == [ProgramUse.ROOTSD, ProgramUse.SHELL, None, ProgramUse.SYSTEM]
