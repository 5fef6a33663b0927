"""Each attack on a static wall is refused, and succeeds without the layer that refuses it."""

from __future__ import annotations

import os
import socket
from collections.abc import Callable, Iterator
from functools import cache

import pytest

from rootsd.core.mount_plan import ConfinedRoot
from rootsd.core.wall import WallEngine
from rootsd.wall.kernel.supervision import Layer, Network
from support.attack_targets import AttackTargets
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


def test_the_static_wall_refuses_each_attack(targets: AttackTargets, wall: MakeWall) -> None:
    def error_of(attack: StaticAttack) -> str:
        is_left_out = attack.layer is StaticLayer.LEFT_OUT
        return wall(attack.layer if is_left_out else None).error_of(targets.fill(attack.line))

    assert [attack.name for attack in STATIC_ATTACKS if error_of(attack) == ""] == []


def test_each_attack_succeeds_without_its_static_layer(
    targets: AttackTargets, wall: MakeWall
) -> None:
    def error_of(attack: StaticAttack) -> str:
        is_left_out = attack.layer is StaticLayer.LEFT_OUT
        return wall(None if is_left_out else attack.layer).error_of(targets.fill(attack.line))

    # Some controls need the rights of root. CI runs the tests as root and as a user.
    possible = [each for each in STATIC_ATTACKS if os.geteuid() == 0 or not each.only_root]
    errors = {attack.name: error_of(attack) for attack in possible}
    assert {name: error for name, error in errors.items() if error} == {}


def test_the_documented_gaps_are_real(targets: AttackTargets, wall: MakeWall) -> None:
    errors = {attack.name: wall(None).error_of(targets.fill(attack.line)) for attack in PUBLISHED}
    assert {name: error for name, error in errors.items() if error} == {}
