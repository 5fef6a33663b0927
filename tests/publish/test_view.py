"""What one connection sees."""

from __future__ import annotations

import pytest
from mcp.shared.exceptions import MCPError

from rootsd.core.errors import Busy
from rootsd.core.model import Published
from rootsd.core.scope import Scope, Uris
from rootsd.publish.view import View
from support.publishing import FakeSource, Notes, root


async def test_the_set_is_the_sources_at_this_moment() -> None:
    source = FakeSource(root("/src/api"))
    view = View(source, Notes())
    assert [each.name for each in (await view.current()).roots] == ["api"]
    source.publish()
    assert (await view.current()).roots == ()


async def test_an_expected_failure_becomes_an_mcp_error_that_names_the_remedy() -> None:
    source = FakeSource()
    source.error = Busy("too early", "rootsd status")
    with pytest.raises(MCPError) as caught:
        await View(source, Notes()).current()
    assert (caught.value.code, caught.value.message) == (-32603, "too early")
    assert caught.value.data == {"reason": "busy", "remedy": "rootsd status"}


API = root("/src/api", tags=("work",))
WEB = root("/src/web")


async def test_a_scope_narrows_what_is_seen_from_then_on() -> None:
    source = FakeSource(API, WEB)
    view = View(source, Notes())
    view.narrow(Scope(tags=frozenset({"work"}), uris=Uris.ANY))
    assert (await view.current()).roots == (API,)
    assert view.uris is Uris.ANY
    source.publish(WEB)
    assert (await view.current()).roots == ()


async def test_sessions_of_one_scope_share_what_they_see() -> None:
    source = FakeSource(API, WEB)
    seen = []
    for _ in range(2):
        view = View(source, Notes())
        view.narrow(Scope(names=frozenset({"web"})))
        seen.append(await view.current())
    assert seen[0] is seen[1]


def test_what_happens_outside_of_the_scope_is_no_news() -> None:
    view = View(FakeSource(), Notes())
    view.narrow(Scope(names=frozenset({"web"})))
    assert view.news(Published(1, (WEB,)), Published(2, (API, WEB))).resources == frozenset()
    assert view.news(Published(2, (API, WEB)), Published(3, (API,))).revokes
