"""What one connection sees."""

from __future__ import annotations

import pytest
from mcp.shared.exceptions import MCPError

from rootsd.core.errors import Busy
from rootsd.publish.view import View
from support.publishing import FakeSource, root


async def test_the_set_is_the_sources_at_this_moment() -> None:
    source = FakeSource(root("/src/api"))
    view = View(source)
    assert [each.name for each in (await view.current()).roots] == ["api"]
    source.publish()
    assert (await view.current()).roots == ()


async def test_an_expected_failure_becomes_an_mcp_error_that_names_the_remedy() -> None:
    source = FakeSource()
    source.error = Busy("too early", "rootsd status")
    with pytest.raises(MCPError) as caught:
        await View(source).current()
    assert (caught.value.code, caught.value.message) == (-32603, "too early")
    assert caught.value.data == {"reason": "busy", "remedy": "rootsd status"}
