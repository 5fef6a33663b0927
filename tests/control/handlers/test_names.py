"""Names and tags: orders, refusals, and dry runs."""

from __future__ import annotations

from typing import Any

import pytest

from rootsd.core.errors import AmbiguousReference, NameTaken, UnknownProject
from rootsd.wire.decisions import RenameRequest, TagRequest
from rootsd.wire.request import ApplyMode, BadRequest
from support.control_harness import APPROVE, CWD, ControlHarness, names
from support.ledger_harness import DiskRefuses, path
from support.sample_decisions import approved, denied, project


async def rename(control: ControlHarness, ref: str, name: str, **more: Any) -> dict[str, Any]:  # noqa: ANN401
    return await control.ask(RenameRequest(ref, name, CWD, **more))


async def tag(control: ControlHarness, *refs: str, **more: Any) -> dict[str, Any]:  # noqa: ANN401
    return await control.ask(TagRequest(refs, CWD, **more))


def roots(control: ControlHarness) -> dict[bytes, tuple[str, tuple[str, ...]]]:
    catalog = control.world.ledger.catalog
    return {where: (root.name, root.tags) for where, root in catalog.roots.items()}


async def test_clients_get_the_new_name_at_once_and_a_pending_project_keeps_it() -> None:
    control = ControlHarness(approved(1), project(2))
    before = control.world.ledger.revision
    told = await rename(control, "p1", "api")
    assert names(told["items"]) == ["api"]
    assert roots(control) == {path(1): ("api", ("work",))}
    assert control.world.ledger.revision == told["revision"] == before + 1
    batches = len(control.world.saver.batches)
    again = await rename(control, "api", "api")
    assert (again["items"], names(again["unchanged"])) == ([], ["api"])
    assert len(control.world.saver.batches) == batches
    await rename(control, "p2", "web")
    assert names((await control.decide(APPROVE, "web"))["items"]) == ["web"]


@pytest.mark.parametrize(
    "word",
    [
        ".", "..", "*", "a*", "a?", "a[b]", "/p", "~/p", "-p", "tag:p", "p1/x", "r2", "", " ",
        "a\x1b[m", "a\nb", "\u202eb", "\ud800", "x" * 65,
    ],
)  # fmt: skip
async def test_a_word_with_another_meaning_or_an_unreadable_one_is_no_name_and_no_tag(
    word: str,
) -> None:
    control = ControlHarness(project(1), project(2))
    for refused in (
        rename(control, "p1", word),
        tag(control, "p1", on=(word,)),
        control.decide(APPROVE, "p1", name=word),
        control.decide(APPROVE, "p1", tags=("fine", word)),
    ):
        with pytest.raises(BadRequest) as refusal:
            await refused
        assert refusal.value.message.isprintable()
    assert control.world.saver.batches == []


@pytest.mark.parametrize("name", ["src/p1", "r1", "p", "a.b-c_d"])
async def test_the_end_of_the_own_path_and_plain_words_are_valid_names(name: str) -> None:
    assert names((await rename(ControlHarness(project(1)), "p1", name))["items"]) == [name]


async def test_a_name_belongs_to_one_project() -> None:
    control = ControlHarness(approved(1), approved(2))
    with pytest.raises(NameTaken):
        await rename(control, "p1", "p2")
    with pytest.raises(AmbiguousReference) as refusal:
        await rename(control, "p*", "api")
    assert refusal.value.choices == ("p1", "p2")
    with pytest.raises(UnknownProject):
        await rename(control, "none", "api")
    assert roots(control)[path(1)][0] == "p1"


async def test_tags_are_added_removed_and_published() -> None:
    control = ControlHarness(approved(1), denied(2))
    told = await tag(control, "p*", on=("go", "home"), off=("work", "never"))
    assert [item["tags"] for item in told["items"]] == [["go", "home"]] * 2
    assert roots(control) == {path(1): ("p1", ("go", "home"))}
    told = await tag(control, "p1", "p2", on=("go",))
    assert (told["items"], names(told["unchanged"])) == ([], ["p1", "p2"])


async def test_a_tag_cannot_be_added_and_removed_at_once() -> None:
    with pytest.raises(BadRequest, match="go"):
        await tag(ControlHarness(project(1)), "p1", on=("go",), off=("go",))


async def test_a_dry_run_shows_the_effect_and_changes_nothing() -> None:
    control = ControlHarness(approved(1))
    renamed = await rename(control, "p1", "api", effect=ApplyMode.DRY_RUN)
    tagged = await tag(control, "p1", on=("go",), effect=ApplyMode.DRY_RUN)
    assert names(renamed["items"]) == ["api"]
    assert tagged["items"][0]["tags"] == ["go", "work"]
    assert roots(control) == {path(1): ("p1", ("work",))}
    assert control.world.saver.batches == []


async def test_a_name_or_tag_that_the_disk_refuses_does_not_take_effect() -> None:
    control = ControlHarness(approved(1))
    control.world.saver.refusing = True
    with pytest.raises(DiskRefuses):
        await rename(control, "p1", "api")
    with pytest.raises(DiskRefuses):
        await tag(control, "p1", off=("work",))
    assert roots(control) == {path(1): ("p1", ("work",))}
