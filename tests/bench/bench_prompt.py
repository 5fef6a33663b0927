"""The cost of the segment that `rootsd shell-init` adds to each prompt, in each shell.

It is compared with starting one program, `true`, which any other segment has to do at least.

Run: make bench ARGS='-k bench_prompt'
"""

from __future__ import annotations

import os
import shutil
import statistics
import subprocess
import time
from pathlib import Path

import pytest

from rootsd.daemon.prompt_file import prompt_line
from rootsd.service.shell_scripts import script

ROUNDS = 7
CALLS = 300
MOST_US = 1_000.0
SHELLS = {
    "bash": ("--norc", "--noprofile"),
    "zsh": ("-f",),
    "fish": ("--no-config",),
}
LOOPS = {
    "bash": "for ((n = 0; n < {}; n++)); do {}; done",
    "zsh": "for ((n = 0; n < {}; n++)); do {}; done",
    "fish": "for n in (seq {}); {}; end",
}
STEPS = {"nothing": ":", "segment": "rootsd_prompt", "program": shutil.which("true") or ""}


@pytest.mark.parametrize(
    "shell", [pytest.param(name, marks=pytest.mark.needs(name)) for name in SHELLS]
)
@pytest.mark.parametrize("daemon", ["with a daemon", "without"])
def test_the_segment_of_a_prompt_takes_less_than_a_millisecond(
    rootsd_dir: Path, tmp_path: Path, shell: str, daemon: str
) -> None:
    (rootsd_dir / "run").mkdir(parents=True)
    if daemon == "with a daemon":
        (rootsd_dir / "run" / "prompt").write_text(prompt_line(os.getpid(), 12, "work"))
    functions = tmp_path / "functions"
    functions.write_text(script("shell-init", shell))

    def run(step: str) -> float:
        script = f"source {functions}\n{LOOPS[shell].format(CALLS, STEPS[step])}"
        started = time.perf_counter()
        subprocess.run([shell, *SHELLS[shell], "-c", script], check=True)
        return time.perf_counter() - started

    taken: dict[str, list[float]] = {step: [] for step in STEPS}
    for _ in range(ROUNDS):
        for step in STEPS:  # in turn, so that all see the same machine
            taken[step].append(run(step))
    medians = {step: statistics.median(times) for step, times in taken.items()}
    costs = {step: (medians[step] - medians["nothing"]) / CALLS * 1e6 for step in STEPS}
    ratio = costs["segment"] / costs["program"]
    print(
        f"{shell:<5} {daemon:<14} {costs['segment']:6.0f} us, {ratio:.2f} x one program"
        f" ({costs['program']:.0f} us)"
    )
    assert costs["segment"] <= MOST_US
