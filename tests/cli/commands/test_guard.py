"""`rootsd guard`."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from support.fake_daemon import FakeDaemon
from support.terminal import Shell


def status(guard: str) -> dict[str, object]:
    return {"revision": 7, "guard": guard, "warnings": [], "allowed": [], "last": None}


def test_it_shows_and_sets_who_may_decide(daemon: FakeDaemon, shell: Shell) -> None:
    daemon.answers["guard"] = status("agents")
    daemon.answers["set-guard"] = status("terminal")
    done = shell.run("guard")
    assert (done.status, done.out) == (0, "agents\n")
    assert "Programs that are known as a person's may decide" in done.err
    done = shell.run("guard", "terminal")
    assert (done.status, done.out) == (0, "terminal\n")
    assert daemon.asked("set-guard") == [{"guard": "terminal"}]
    assert json.loads(shell.run("guard", "--json").out)["guard"] == "agents"


def test_a_dry_run_sets_nothing(daemon: FakeDaemon, shell: Shell) -> None:
    daemon.answers["set-guard"] = status("off")
    done = shell.run("guard", "off", "--dry-run")
    assert done.out == "off\n"
    assert done.err.endswith("nothing was changed.\n")
    assert daemon.asked("set-guard") == [{"guard": "off", "effect": "dry-run"}]
    assert shell.run("guard", "--dry-run").status == 2


def test_a_program_is_allowed_by_its_path_or_its_name(
    daemon: FakeDaemon, shell: Shell, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    real, link = tmp_path / "kitty.app", tmp_path / "kitty"
    real.write_text("")
    real.chmod(0o700)
    link.symlink_to(real)
    monkeypatch.setenv("PATH", str(tmp_path))
    daemon.answers |= {"allow-programs": status("agents"), "disallow-programs": status("agents")}
    both = [str(link), str(real)]
    for word in (str(link), "kitty"):
        assert shell.run("guard", "allow", word).status == 0
    assert shell.run("guard", "allow", "python -m tool", "--dry-run").status == 0
    real.unlink()
    assert shell.run("guard", "disallow", str(link)).status == 0
    assert daemon.asked("allow-programs") == [
        {"programs": both}, {"programs": both},
        {"programs": ["python -m tool"], "effect": "dry-run"},
    ]  # fmt: skip
    assert daemon.asked("disallow-programs") == [{"programs": both}]


@pytest.mark.parametrize(
    "words",
    [("on",), ("allow",), ("disallow",), ("off", "x"), ("allow", "no-such-program"),
     ("allow", "/"), ("x", "y")],
)  # fmt: skip
def test_a_guard_and_a_program_must_exist(shell: Shell, words: tuple[str, ...]) -> None:
    assert shell.run("guard", *words).status == 2
