"""`rootsd show`."""

from __future__ import annotations

from pathlib import Path

from support.fake_daemon import FakeDaemon, a_listing, an_item
from support.terminal import Shell

FULL = an_item(
    origin="https://example.org/api",
    branch="main",
    upstream="origin/main",
    ahead=2,
    behind=1,
    remotes=[
        {"name": "origin", "url": "https://example.org/api"},
        {"name": "fo\x1brk", "url": "https://example.com/api"},
    ],
    declared_names=["api", "\x1b[31mred"],
    project_files=["Cargo.toml"],
    findings=[
        {"concern": "sensitive", "path": ".env", "detail": ""},
        {"concern": "executed", "path": ".git/config", "detail": "core.fsmonitor"},
        {"concern": "of a later version", "path": "x\ty", "detail": ""},
    ],
    findings_left_out=3,
    ecosystems=["rust"],
    size={"bytes": 1536, "files": 1, "whole": False},
    last_commit={"id": "0123456789abcdef", "at": "2026-11-20T08:11:02Z", "summary": "Say\nit"},
)


def test_each_known_fact_has_a_line(daemon: FakeDaemon, shell: Shell) -> None:
    daemon.answers["show"] = a_listing(FULL, an_item("web"))
    done = shell.run("show", "api", "web")
    one, two = done.out.split("\n\n")
    assert one.split("\n") == [
        "name\tapi",
        "id\tr7k2",
        "path\t/src/api",
        "kind\tgit",
        "verdict\tpending",
        "found\t2026-11-20T08:11:02Z",
        "origin\thttps://example.org/api",
        "branch\tmain",
        "upstream\torigin/main (2 ahead, 1 behind)",
        "last commit\t0123456789 2026-11-20T08:11:02Z: Say\\u{a}it",
        "calls itself\tapi, \\u{1b}[31mred",
        "files\tCargo.toml",
        "ecosystems\trust",
        "size\tat least 1.5 KiB in 1 file",
        "remote\tfo\\u{1b}rk https://example.com/api",
        "sensitive\t.env",
        "agents run\t.git/config (core.fsmonitor)",
        "of a later version\tx\\u{9}y",
        "and\t3 more findings",
    ]
    assert two.startswith("name\tweb\n")
    assert daemon.asked("show") == [{"cwd": str(Path.cwd()), "refs": ["api", "web"]}]
