"""The shape of `/etc/rootsd/policy.toml`: each key with its type, default, and meaning.

This is the only place that declares the keys. `rootsd.config.policy` validates the file with these
structs, and the JSON Schema and the reference page are generated from them, as for `config.toml`
(`rootsd.config.schema`).
"""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated

from msgspec import Meta, Struct

from rootsd.config.policy_file import VERSION
from rootsd.config.schema import PathText, describe_key, one_of


class PolicyVerdict(StrEnum):
    """What a rule of the policy says."""

    APPROVE = "approve"
    DENY = "deny"


class PolicyRootsTable(Struct, frozen=True, forbid_unknown_fields=True):
    """Places that can never be roots."""

    refuse: Annotated[
        list[PathText],
        describe_key(
            "Folders that can never be roots, with everything below them. A folder that contains "
            "one of them cannot be a root either. `~` is the home folder of each user.",
            'a list of paths that start with / or ~/, such as ["/srv/customers"]',
            ["/srv/customers", "~/secrets"],
        ),
    ] = []


class PolicyRuleTable(Struct, frozen=True, forbid_unknown_fields=True):
    """A rule for all users. Write one `[[rule]]` for each pattern. Deny rules come first."""

    pattern: Annotated[
        PathText,
        describe_key(
            "A path with globs, as in `rootsd rule add`. It also covers everything below. `~` is "
            "the home folder of each user.",
            'a path in quotes that starts with / or ~/, such as "~/src/acme/**"',
            "~/src/acme/**",
        ),
    ]
    verdict: Annotated[
        PolicyVerdict,
        describe_key(
            "`deny`: no user can approve these projects. `approve`: they are approved, and users "
            "can still deny them.",
            one_of(PolicyVerdict),
            PolicyVerdict.APPROVE.value,
        ),
    ]


class PolicyConfineTable(Struct, frozen=True, forbid_unknown_fields=True):
    """Requirements for the wall."""

    required: Annotated[
        bool,
        describe_key(
            "Whether `rootsd run` must put every server behind the wall, and `rootsd confine` "
            "refuses options that open it. The keys `read`, `write`, `keep`, `device`, and "
            "`protect` of the user's `[confine]` do not count then.",
            "true or false, without quotes",
            True,  # noqa: FBT003 - the value of a key
        ),
    ] = False


class PolicyTables(Struct, frozen=True, forbid_unknown_fields=True):
    """The whole file. `version` is required, and every table is optional."""

    version: Annotated[
        int,
        Meta(
            description=(
                "The version of this format. It is required, so that a file that was emptied by "
                "mistake is an error and not a policy that allows everything."
            ),
            extra={"expected": f"the number {VERSION}"},
            examples=[VERSION],
            ge=VERSION,
            le=VERSION,
        ),
    ]
    roots: Annotated[
        PolicyRootsTable,
        describe_key("Places that can never be roots.", "a table that starts with [roots]"),
    ] = PolicyRootsTable()
    rule: Annotated[
        list[PolicyRuleTable],
        describe_key("Rules for all users.", "[[rule]], once for each pattern"),
    ] = []
    confine: Annotated[
        PolicyConfineTable,
        describe_key("Requirements for the wall.", "a table that starts with [confine]"),
    ] = PolicyConfineTable()
