"""Each stage has a quiet period and an outcome."""

from __future__ import annotations

from rootsd.vcs.stages import Stage


def test_every_stage_has_an_end() -> None:
    for stage in Stage:
        period = stage.quiet_period
        assert 0 < period.recheck_s <= period.length_s <= 60
        assert (
            period.ignore_processes_after_s is None
            or period.ignore_processes_after_s > period.length_s
        )


def test_only_stages_without_unfinished_files_stop_waiting_for_processes() -> None:
    impatient = {
        stage for stage in Stage if stage.quiet_period.ignore_processes_after_s is not None
    }
    assert impatient == {
        Stage.UNBORN,
        Stage.STAGED_UNBORN,
        Stage.PROJECT_FILE,
        Stage.WORKTREE_MOVED,
    }
