"""Each stage has a quiet period and an outcome."""

from __future__ import annotations

from rootsd.vcs.stages import Stage


def test_every_stage_has_an_end() -> None:
    for stage in Stage:
        wait = stage.wait
        assert 0 < wait.again_s <= wait.quiet_s <= 60
        assert wait.patience_s is None or wait.patience_s > wait.quiet_s


def test_only_stages_without_unfinished_files_stop_waiting_for_processes() -> None:
    impatient = {stage for stage in Stage if stage.wait.patience_s is not None}
    assert impatient == {Stage.UNBORN, Stage.STAGED_UNBORN, Stage.PROJECT_FILE}
