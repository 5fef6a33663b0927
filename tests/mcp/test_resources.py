"""The resources, as clients of all revisions read them and subscribe to them."""

from __future__ import annotations

import json

import pytest

from rootsd.core.model import ProjectKind
from support.bridges import META_2026
from support.mcp_harness import FakeSource, connected, root

API = root("/src/acme/api", name="acme/api")
DOCS = root("https://docs.example/v1", name="docs", kind=ProjectKind.URI)
APPROVED = {"uri": "roots://approved"}


async def test_approved_comes_first_and_every_root_has_a_resource_of_its_own() -> None:
    async with connected(FakeSource(API, DOCS)) as peer:
        listed = (await peer.ask_2026("resources/list"))["result"]["resources"]
        assert [(each["uri"], each["name"], each["mimeType"]) for each in listed] == [
            ("roots://approved", "approved", "application/json"),
            ("roots://root/acme/api", "acme/api", "application/json"),
            ("roots://root/docs", "docs", "application/json"),
        ]
        for each in listed[1:]:
            contents = (await peer.ask_2026("resources/read", {"uri": each["uri"]}))["result"]
            assert json.loads(contents["contents"][0]["text"])["name"] == each["name"]


async def test_the_template_names_the_roots() -> None:
    async with connected(FakeSource(API)) as peer:
        result = (await peer.ask_2026("resources/templates/list"))["result"]
        (template,) = result["resourceTemplates"]
        assert template["uriTemplate"] == "roots://root/{+name}"


@pytest.mark.parametrize("uri", ["roots://root/nobody", "roots://nothing", "file:///src/acme/api"])
async def test_an_unknown_resource_is_the_error_of_each_revision(uri: str) -> None:
    async with connected(FakeSource(API)) as peer:
        await peer.shake_hands()
        for method in ("resources/read", "resources/subscribe"):
            error = (await peer.ask(method, {"uri": uri}))["error"]
            assert (error["code"], error["data"]["uri"]) == (-32002, uri)
        error = (await peer.ask_2026("resources/read", {"uri": uri}))["error"]
        assert (error["code"], error["data"]["uri"]) == (-32602, uri)


async def test_a_subscriber_is_notified_of_its_resource_until_it_unsubscribes() -> None:
    source = FakeSource(API)
    async with connected(source) as peer:
        await peer.shake_hands()
        root_uri = {"uri": "roots://root/acme/api"}
        assert (await peer.ask("resources/subscribe", root_uri))["result"] == {}
        source.publish()
        heard = [await peer.hear(), await peer.hear()]
        assert [each["method"] for each in heard] == [
            "notifications/resources/list_changed",
            "notifications/resources/updated",
        ]
        assert heard[1]["params"] == root_uri
        assert (await peer.ask("resources/unsubscribe", root_uri))["result"] == {}
        source.publish(API)
        assert (await peer.hear())["method"] == "notifications/resources/list_changed"
        assert (await peer.ask("ping"))["id"] == 1


async def test_a_stream_is_notified_of_its_filter_with_the_id_of_its_request() -> None:
    source = FakeSource(API)
    wanted = {"resourcesListChanged": True, "resourceSubscriptions": ["roots://approved"]}
    params = {"notifications": wanted, "_meta": META_2026}
    async with connected(source) as peer:
        ack = await peer.ask("subscriptions/listen", params, id_="mine")
        assert ack["method"] == "notifications/subscriptions/acknowledged"
        source.publish()
        for method in ("updated", "list_changed"):
            notice = await peer.hear()
            assert notice["method"] == f"notifications/resources/{method}"
            meta = notice["params"]["_meta"]
            assert meta == {"io.modelcontextprotocol/subscriptionId": "mine"}


async def test_a_stream_survives_thousands_of_changes() -> None:
    source = FakeSource()
    many = [root(f"/src/project-{number:05}") for number in range(3000)]
    wanted = {"resourcesListChanged": True, "resourceSubscriptions": ["roots://approved"]}
    async with connected(source) as peer:
        await peer.ask_2026("subscriptions/listen", {"notifications": wanted}, id_=1)
        source.publish(*many)
        await peer.hear()
        await peer.hear()
        source.publish()
        assert (await peer.hear())["method"] == "notifications/resources/updated"
        assert (await peer.hear())["method"] == "notifications/resources/list_changed"
        assert "result" in await peer.ask_2026("resources/read", APPROVED, id_=2)
