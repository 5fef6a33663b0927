"""The filter's verdict on each call, computed by a small interpreter of classic BPF."""

from __future__ import annotations

import errno
import struct

import pytest

from rootsd.wall.kernel.seccomp import (
    ARCHITECTURES,
    IN_NAMESPACES,
    NESTED,
    WITHOUT_NAMESPACES,
    WITHOUT_NETWORK,
    FilterRules,
    filter_program,
)

ALLOW = 0
UNIX, STREAM, DATAGRAM, SEQPACKET, CLOEXEC = 1, 1, 2, 5, 0o2000000

# From linux/mount.h and asm-generic/unistd.h: the new mount API.
NEW_MOUNT_CALLS = {428, 429, 430, 431, 432, 433, 442, 467}

# Arguments that mean this process, and arguments that mean others or all of the user.
OWN_PROCESS = {
    "setpriority": ((0, 0), ((0, 41), (1, 41), (2, 0))),
    "ioprio_set": ((1, 0), ((1, 41), (2, 41), (3, 0))),
}


def verdict(
    machine: str,
    number: int,
    *arguments: int,
    audit: int | None = None,
    rules: FilterRules = IN_NAMESPACES,
) -> int:
    """Return the errno that the filter gives a call, or 0 if it allows it."""
    audit = ARCHITECTURES[machine].audit_number if audit is None else audit
    data = struct.pack("=IIQ6Q", number, audit, 0, *arguments, *[0] * (6 - len(arguments)))
    program = list(struct.iter_unpack("=HBBI", filter_program(machine, rules)))
    at, value = 0, 0
    while True:
        code, if_true, if_false, operand = program[at]
        at += 1
        if code == 0x20:
            (value,) = struct.unpack_from("=I", data, operand)
        elif code == 0x54:
            value &= operand
        elif code == 0x15:
            at += if_true if value == operand else if_false
        elif code == 0x35:
            at += if_true if value >= operand else if_false
        else:
            assert code == 0x06
            return 0 if operand == 0x7FFF0000 else operand & 0xFFFF


@pytest.mark.parametrize("machine", ARCHITECTURES)
def test_exactly_the_listed_calls_are_refused(machine: str) -> None:
    architecture = ARCHITECTURES[machine]
    refused = {*architecture.refused.values(), *architecture.mount_calls.values()}
    special = {architecture.ioctl, architecture.socket, architecture.socketpair}
    for number in range(600):
        if number not in special | NEW_MOUNT_CALLS:
            expected = errno.EPERM if number in refused else ALLOW
            assert verdict(machine, number) == expected, number


@pytest.mark.parametrize("machine", ARCHITECTURES)
def test_only_a_nested_sandbox_may_mount(machine: str) -> None:
    old = ARCHITECTURES[machine].mount_calls.values()
    for number, error in (
        *((number, errno.ENOSYS) for number in NEW_MOUNT_CALLS),
        *((number, errno.EPERM) for number in old),
    ):
        assert verdict(machine, number) == error
        assert verdict(machine, number, rules=WITHOUT_NAMESPACES) == error
        assert verdict(machine, number, rules=NESTED) == ALLOW


@pytest.mark.parametrize("machine", ARCHITECTURES)
def test_terminal_injection_is_refused_for_any_upper_half_of_the_argument(machine: str) -> None:
    ioctl = ARCHITECTURES[machine].ioctl
    for command in (0x5412, 0x541C):
        assert verdict(machine, ioctl, 0, command) == errno.EPERM
        assert verdict(machine, ioctl, 0, command | 0xFFFF << 32) == errno.EPERM
    assert verdict(machine, ioctl, 0, 0x5413) == ALLOW


@pytest.mark.parametrize("machine", ARCHITECTURES)
def test_only_four_families_of_sockets_are_allowed(machine: str) -> None:
    for number in (ARCHITECTURES[machine].socket, ARCHITECTURES[machine].socketpair):
        allowed = {family for family in range(64) if verdict(machine, number, family) == ALLOW}
        assert allowed == {1, 2, 10, 16}


def test_calls_of_another_architecture_fail_with_enosys() -> None:
    assert verdict("x86_64", 0, audit=0x40000003) == errno.ENOSYS
    assert verdict("x86_64", 0x40000000) == errno.ENOSYS
    assert verdict("aarch64", 0, audit=0x40000028) == errno.ENOSYS


@pytest.mark.parametrize("machine", ARCHITECTURES)
def test_without_namespaces_no_unix_socket_can_reach_a_path(machine: str) -> None:
    architecture = ARCHITECTURES[machine]
    for rules, families in ((WITHOUT_NAMESPACES, {2, 10, 16}), (WITHOUT_NETWORK, set())):
        sockets = {
            family
            for family in range(64)
            if verdict(machine, architecture.socket, family, STREAM, rules=rules) == ALLOW
        }
        assert sockets == families
        pairs = {
            (family, kind)
            for family in range(64)
            for kind in range(16)
            if verdict(machine, architecture.socketpair, family, kind | CLOEXEC, rules=rules)
            == ALLOW
        }
        assert pairs == {(UNIX, STREAM), (UNIX, SEQPACKET)}
    assert verdict(machine, architecture.socketpair, UNIX, DATAGRAM) == ALLOW


@pytest.mark.parametrize("machine", ARCHITECTURES)
def test_without_namespaces_objects_and_limits_of_the_user_are_closed(machine: str) -> None:
    architecture = ARCHITECTURES[machine]
    for number in architecture.user_wide.values():
        assert verdict(machine, number, rules=WITHOUT_NAMESPACES) == errno.EPERM
        assert verdict(machine, number) == ALLOW
    for name, number in architecture.own_process.items():
        own, others = OWN_PROCESS.get(name, ((0,), ((41,),)))
        assert verdict(machine, number, *own, rules=WITHOUT_NAMESPACES) == ALLOW
        for arguments in others:
            assert verdict(machine, number, *arguments, rules=WITHOUT_NAMESPACES) == errno.EPERM
            assert verdict(machine, number, *arguments) == ALLOW
