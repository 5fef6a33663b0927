"""What a person reads about the machine's policy, and what it refuses them."""

from __future__ import annotations

from pathlib import Path

import pytest
from msgspec.structs import replace

from rootsd.control.handlers.doctor import DoctorHandlers
from rootsd.core.errors import DeniedHere, ErrorCode
from rootsd.core.model import Verdict
from rootsd.core.paths import PolicyEntry
from rootsd.core.policy import MachinePolicy, broken_policy
from rootsd.wire.daemon import PolicyStatus, StatusQuery
from rootsd.wire.decisions import AddRuleRequest, DecideRequest, DecisionVerb, RulesQuery
from rootsd.wire.doctor import DoctorRequest
from rootsd.wire.projects import CheckQuery, WhyQuery
from support.control_harness import CWD, ControlHarness
from support.ledger_harness import SOURCES, path
from support.sample_decisions import approved, project

FILE = "/etc/rootsd/policy.toml"
DENY = PolicyEntry(path(1), f"{FILE}, line 4")
APPROVE = PolicyEntry(SOURCES, f"{FILE}, line 8")
POLICY = MachinePolicy(denied=(DENY,), approved=(APPROVE,), requires_wall=True, is_present=True)
BROKEN = broken_policy(f"{FILE} belongs to user 7, not to root")


def status(policy: MachinePolicy) -> PolicyStatus:
    return PolicyStatus(
        file=FILE, read_at="2026-03-04T12:00:00Z", refused=0, denied=len(policy.denied),
        approved=len(policy.approved), requires_wall=policy.must_confine,
        error=policy.problem or None, remedy="sudo chown root x" if policy.problem else None,
    )  # fmt: skip


async def under(policy: MachinePolicy) -> ControlHarness:
    control = ControlHarness(approved(1), project(2))
    await control.world.ledger.set_policy(policy)
    control.daemon.policy = status(policy)
    return control


async def test_why_names_the_entry_of_the_policy_and_what_it_outweighs() -> None:
    control = await under(POLICY)
    answer = await control.ask(WhyQuery(path(1).decode()))
    said = {each["ground"]: (each["verdict"], each["by"]) for each in answer["voices"]}
    assert said["policy deny rule"] == ("denied", f"{FILE}, line 4: {path(1).decode()}")
    assert said["policy approve rule"] == ("approved", f"{FILE}, line 8: {SOURCES.decode()}")
    assert said["approved"] == ("approved", path(1).decode())
    assert "policy cannot be used" not in said
    assert [each["ground"] for each in answer["voices"] if each["decides"]] == ["policy deny rule"]
    assert answer["items"][0]["note"] == f"the policy denies it ({FILE}, line 4)"
    granted = await control.ask(WhyQuery(path(2).decode()))
    assert granted["items"][0]["note"] == f"policy approve rule: {FILE}, line 8"


async def test_why_says_that_the_policy_is_broken() -> None:
    answer = await (await under(BROKEN)).ask(WhyQuery(path(1).decode()))
    first = answer["voices"][0]
    assert (first["ground"], first["by"]) == ("policy cannot be used", BROKEN.problem)
    assert first["decides"]


@pytest.mark.parametrize("policy", [POLICY, BROKEN])
async def test_an_approval_is_refused_with_the_policy_and_its_line(policy: MachinePolicy) -> None:
    control = await under(policy)
    with pytest.raises(DeniedHere) as refused:
        await control.ask(DecideRequest(DecisionVerb.APPROVE, CWD, (path(1).decode(),)))
    assert (policy.problem or f"{FILE}, line 4") in refused.value.message
    assert refused.value.code is ErrorCode.DENIED
    assert refused.value.remedy == f"rootsd why {path(1).decode()}"
    checked = await control.ask(CheckQuery(path(1).decode()))
    assert (checked["published"], checked["verdict"]) == (False, "denied")


async def test_an_approve_rule_says_what_it_does_not_approve() -> None:
    control = await under(POLICY)
    ruled = await control.ask(AddRuleRequest(Verdict.APPROVED, str(SOURCES.decode()), CWD))
    (warning,) = ruled["warnings"]
    assert warning == (
        f"the rule does not approve 1 of these projects: the policy denies it ({FILE}, line 4)"
    )
    denying = await control.ask(AddRuleRequest(Verdict.DENIED, str(SOURCES.decode()), CWD))
    assert denying["warnings"] == []


async def test_the_rules_of_the_policy_are_listed_apart() -> None:
    listing = await (await under(POLICY)).ask(RulesQuery())
    assert listing["items"] == []
    keys = ("verdict", "pattern", "covers", "source", "number")
    assert [tuple(rule[key] for key in keys) for rule in listing["policy"]] == [
        ("denied", path(1).decode(), 1, DENY.source, None),
        ("approved", SOURCES.decode(), 2, APPROVE.source, None),
    ]


@pytest.mark.parametrize("policy", [POLICY, BROKEN])
async def test_status_and_doctor_show_the_policy(policy: MachinePolicy, tmp_path: Path) -> None:
    control = await under(policy)
    shown = await control.ask(StatusQuery())
    assert shown["policy"] == status(policy)
    assert [policy.problem in sentence for sentence in shown["degraded"]] == (
        [True] if policy.problem else []
    )
    doctor = DoctorHandlers(replace(control.services, state=bytes(tmp_path)))
    items = (await doctor.examine(DoctorRequest()))["items"]
    (item,) = (item for item in items if item["topic"] == "policy" or FILE in item["finding"])
    if policy.problem:
        assert (item["condition"], item["remedy"]) == ("error", "sudo chown root x")
        assert policy.problem in item["finding"]
    else:
        assert item["condition"] == "ok"
        assert item["finding"] == (
            f"{FILE} is in force; refused places: 0, deny rules: 1, approve rules: 1, "
            "wall: required"
        )
