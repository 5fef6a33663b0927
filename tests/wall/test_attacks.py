"""Every attack of the table is refused, and succeeds without the layer that refuses it."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path

import pytest

from rootsd.core.wall import ProtectionPolicy
from rootsd.wall.kernel.supervision import Layer as CellLayer
from rootsd.wall.kernel.supervision import Network
from support.attack_targets import AttackTargets
from support.confine_attacks import ATTACKS, OPEN, Attack, Layer, attack_table
from support.walls import Interpreter

pytestmark = [pytest.mark.needs("wall")]


@pytest.fixture(scope="module")
def targets(tmp_path_factory: pytest.TempPathFactory) -> Iterator[AttackTargets]:
    with AttackTargets(tmp_path_factory.mktemp("targets")) as targets:
        yield targets


@pytest.fixture(scope="module")
def wall(targets: AttackTargets) -> Callable[[Layer | None], Interpreter]:
    """The program behind the whole wall (None), or behind one without a layer."""

    @cache
    def make(layer: Layer | None) -> Interpreter:
        match layer:
            case None:
                return targets.wall("whole", network=Network.PRIVATE)
            case Layer.VIEW | Layer.LOCKS:
                return targets.outside()
            case Layer.PROTECTION:
                return targets.wall("unprotected", protection=ProtectionPolicy.NONE)
            case Layer.LANDLOCK:
                return targets.wall("no-landlock", [CellLayer.LANDLOCK])
            case Layer.SECCOMP:
                return targets.wall("no-seccomp", [CellLayer.SECCOMP])
            case Layer.MOUNT_CALLS:
                without = [CellLayer.MOUNT_CALLS, CellLayer.LANDLOCK]
                return targets.wall("mounts", without)
            case Layer.CAPABILITIES:
                without = [CellLayer.CAPABILITIES, CellLayer.LANDLOCK, CellLayer.MOUNT_CALLS]
                return targets.wall("privileged", without)
            case Layer.NETWORK:
                return targets.wall("network")

    return make


def test_the_table_has_many_attacks_with_unique_names() -> None:
    assert len(ATTACKS) >= 250
    assert len({attack.name for attack in ATTACKS}) == len(ATTACKS)


def test_the_documentation_has_the_table() -> None:
    page = Path(__file__).parents[2] / "docs" / "ATTACKS.md"
    assert attack_table() in page.read_text()


def test_the_wall_refuses_each_attack(
    targets: AttackTargets, wall: Callable[[Layer | None], Interpreter]
) -> None:
    def error_of(attack: Attack) -> str:
        refusing = wall(Layer.MOUNT_CALLS if attack.layer is Layer.LOCKS else None)
        return refusing.error_of(targets.fill(attack.line))

    assert [attack.name for attack in ATTACKS if error_of(attack) == ""] == []


def test_each_attack_succeeds_without_its_layer(
    targets: AttackTargets, wall: Callable[[Layer | None], Interpreter]
) -> None:
    # Some controls need the rights of root. CI runs the tests as root and as a user.
    possible = [attack for attack in ATTACKS if os.geteuid() == 0 or not attack.only_root]
    errors = {
        attack.name: wall(attack.layer).error_of(targets.fill(attack.line)) for attack in possible
    }
    assert {name: error for name, error in errors.items() if error} == {}


def test_each_attack_that_is_published_as_open_succeeds(
    targets: AttackTargets, wall: Callable[[Layer | None], Interpreter]
) -> None:
    errors = {name: wall(None).error_of(targets.fill(line)) for name, line in OPEN.items()}
    assert {name: error for name, error in errors.items() if error} == {}
