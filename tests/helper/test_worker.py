"""A worker has only the rights that its question needs."""

from __future__ import annotations

import socket
import sys
from pathlib import Path

import pytest

from rootsd.helper.client import NoAnswer
from rootsd.helper.protocol import WorkerAccess
from support.helper_process import ASKED, SECONDS, helper_on, kept_helper, make_spec


@pytest.mark.parametrize("access", list(WorkerAccess))
def test_it_can_read_and_cannot_write(tmp_path: Path, access: WorkerAccess) -> None:
    file = tmp_path / "file"
    file.write_bytes(b"content")
    with helper_on(make_spec(access=access)) as link:
        assert link.ask(ASKED, b"read:" + bytes(file), SECONDS) == b"content"
        with pytest.raises(NoAnswer, match=r"OSError|PermissionError"):
            link.ask(ASKED, b"write:" + bytes(file), SECONDS)
    assert file.read_bytes() in (b"content", b""), "it may be emptied, and gets no byte"


@pytest.mark.needs("landlock")
def test_a_worker_for_files_creates_no_file_and_starts_no_program(tmp_path: Path) -> None:
    with helper_on(make_spec(access=WorkerAccess.FILES)) as link:
        for question in (b"write:" + bytes(tmp_path / "file"), b"start:/bin/true"):
            with pytest.raises(NoAnswer, match="PermissionError"):
                link.ask(ASKED, question, SECONDS)
    assert not (tmp_path / "file").exists()


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux limits the address space")
def test_its_memory_is_limited_above_that_of_the_helper() -> None:
    with helper_on(make_spec(memory=64 << 20)) as link:
        assert link.ask(ASKED, b"eat:%d" % (32 << 20), SECONDS) == b"%d" % (32 << 20)
        with pytest.raises(NoAnswer, match="MemoryError"):
            link.ask(ASKED, b"eat:%d" % (128 << 20), SECONDS)


def test_each_question_has_its_own_process_with_only_its_own_descriptors() -> None:
    with kept_helper(make_spec()) as kept:
        pids = {kept.link.ask(ASKED, b"pid:", SECONDS) for _ in range(3)}
        assert len(pids) == 3
        assert b"%d" % kept.helper_pid() not in pids
        assert kept.link.ask(ASKED, b"count:", SECONDS) == b"0"


@pytest.mark.needs("landlock-tcp")
@pytest.mark.parametrize(
    ("access", "connects"), [(WorkerAccess.PROCESSES, True), (WorkerAccess.FILES, False)]
)
def test_a_worker_for_files_cannot_connect(access: WorkerAccess, connects: bool) -> None:
    with (
        socket.create_server(("127.0.0.1", 0)) as server,
        helper_on(make_spec(access=access)) as link,
    ):
        question = b"connect:%d" % server.getsockname()[1]
        if connects:
            assert link.ask(ASKED, question, SECONDS) == b"connected"
        else:
            with pytest.raises(NoAnswer, match="PermissionError"):
                link.ask(ASKED, question, SECONDS)
