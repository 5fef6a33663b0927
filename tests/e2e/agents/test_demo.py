"""The recorded scene of README happens: a real agent gets a folder, and loses it again."""

from __future__ import annotations

import pytest
from record_demo import record

pytestmark = pytest.mark.needs("user-namespaces", "npm", "tmux", "wall")


def test_the_agent_sees_the_folder_only_while_it_is_approved() -> None:
    agent = ["\n".join(frame.agent) for frame in record("dark")]
    first_refusal = next(n for n, text in enumerate(agent) if "cannot open" in text)
    first_success = next(n for n, text in enumerate(agent) if "3 tests passed" in text)
    assert first_refusal < first_success
    after_the_denial = agent[-1].rpartition("Run them again")[2]
    assert "cannot open" in after_the_denial
    assert "3 tests passed" not in after_the_denial
