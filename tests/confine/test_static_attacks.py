"""Each attack on a static wall is refused, and succeeds without the layer that refuses it."""

from __future__ import annotations

import os
import socket
from collections.abc import Callable, Iterator
from functools import cache

import pytest

from rootsd.confine.supervision import Layer, Network
from rootsd.core.view import ConfinedRoot
from rootsd.core.wall import WallEngine
from support.attack_targets import AttackTargets
from support.confine_attacks import Attack
from support.static_attacks import PUBLISHED, STATIC_ATTACKS, StaticAttack, StaticLayer
from support.walls import Interpreter, Wall

pytestmark = [pytest.mark.needs("static-wall")]

MakeWall = Callable[[StaticLayer | None], Interpreter]


@pytest.fixture(scope="module")
def targets(tmp_path_factory: pytest.TempPathFactory) -> Iterator[AttackTargets]:
    with (
        AttackTargets(tmp_path_factory.mktemp("targets")) as targets,
        socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as datagrams,
    ):
        datagrams.bind(os.fspath(targets.pending / "datagrams-static"))
        yield targets


@pytest.fixture(scope="module")
def wall(targets: AttackTargets) -> Iterator[MakeWall]:
    """The program behind the whole wall (None), or the control of a layer."""
    made: list[Interpreter] = []
    whole = [root._replace(denied=frozenset()) for root in targets.roots()]

    def start(name: str, roots: list[ConfinedRoot], network: Network, *without: Layer) -> Wall:
        folder = targets.base / "state" / name
        found = Wall(
            folder, targets.home, roots, without=without, network=network,
            engine=WallEngine.STATIC,
        )  # fmt: skip
        made.append(found)
        return found

    @cache
    def make(layer: StaticLayer | None) -> Interpreter:
        match layer:
            case None:
                return start("whole", whole, Network.PRIVATE)
            case StaticLayer.LANDLOCK:
                return start("no-landlock", whole, Network.SHARED, Layer.LANDLOCK)
            case StaticLayer.SECCOMP:
                return start("no-seccomp", whole, Network.SHARED, Layer.SECCOMP)
            case StaticLayer.NETWORK:
                return start("network", whole, Network.SHARED)
            case StaticLayer.SEVERAL:
                return targets.outside()
            case StaticLayer.LEFT_OUT:
                return start("denied", targets.roots(), Network.SHARED)

    yield make
    for each in made:
        each.close()


def test_the_table_has_many_attacks_with_unique_names() -> None:
    assert len(STATIC_ATTACKS) >= 75
    assert len({attack.name for attack in STATIC_ATTACKS}) == len(STATIC_ATTACKS)


@pytest.mark.parametrize("attack", STATIC_ATTACKS, ids=lambda attack: attack.name)
def test_the_static_wall_refuses(
    targets: AttackTargets, wall: MakeWall, attack: StaticAttack
) -> None:
    is_left_out = attack.layer is StaticLayer.LEFT_OUT
    found = wall(attack.layer if is_left_out else None)
    assert found.error_of(targets.fill(attack.line)) != ""


@pytest.mark.parametrize("attack", STATIC_ATTACKS, ids=lambda attack: attack.name)
def test_it_succeeds_without_its_static_layer(
    targets: AttackTargets, wall: MakeWall, attack: StaticAttack
) -> None:
    if attack.only_root and os.geteuid() != 0:
        return  # the control needs the rights of root; CI runs the tests as root and as a user
    is_left_out = attack.layer is StaticLayer.LEFT_OUT
    assert wall(None if is_left_out else attack.layer).error_of(targets.fill(attack.line)) == ""


@pytest.mark.parametrize("attack", PUBLISHED, ids=lambda attack: attack.name)
def test_the_documented_gaps_are_real(
    targets: AttackTargets, wall: MakeWall, attack: Attack
) -> None:
    assert wall(None).error_of(targets.fill(attack.line)) == ""
