from __future__ import annotations

import fnmatch
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rootsd.core.model import ObservedState, Project, ProjectKind, Rule, Verdict
from rootsd.core.paths import PathError
from rootsd.core.rules import escape_pattern, first_match, matches, normalize_pattern
from support.core_samples import ANN, NOW


def _covers(pattern: str, path: str, verdict: Verdict = Verdict.APPROVED) -> bool:
    rule = Rule(1, normalize_pattern(pattern.encode()), verdict, ANN, NOW)
    return first_match([rule], _at(path.encode("utf-8", "surrogateescape")), verdict) is rule


def _at(path: bytes) -> Project:
    return Project(path, "r7k2", ObservedState(ProjectKind.GIT, None, NOW))


@pytest.mark.parametrize(
    ("pattern", "matched", "not_matched"),
    [
        ("/src", ["/src", "/src/a", "/src/a/b"], ["/src-old", "/sr", "/", "/a/src", "/src-old/a"]),
        ("/", ["/", "/a", "/a/b"], ["https://example.com/a"]),
        ("/src/*", ["/src/a", "/src/.a", "/src/a/b"], ["/src", "/src-old/a", "/srca"]),
        ("/src/*/api", ["/src/a/api", "/src/a/api/b"], ["/src/api", "/src/a/b/api", "/src/a"]),
        ("/src/**/api", ["/src/api", "/src/a/api", "/src/a/b/api/c"], ["/src", "/src/apis"]),
        ("/**/api", ["/api", "/a/b/api"], ["/apis", "/a"]),
        ("/src/**", ["/src", "/src/a", "/src/a/b"], ["/src-old"]),
        ("/**/**/api/**", ["/api", "/a/api/b"], ["/a"]),
        ("/src/a*b", ["/src/ab", "/src/a-b", "/src/axb/c"], ["/src/a/b", "/src/abc"]),
        ("/src/*a*b*c", ["/src/abc", "/src/-a-b-c", "/src/aabbcc"], ["/src/acb", "/src/a/b/c"]),
        ("/src/x**y", ["/src/xy", "/src/x-y"], ["/src/x/y"]),
        ("/src/a?c", ["/src/abc", "/src/aéc", "/src/a\udcffc"], ["/src/ac", "/src/a/c"]),
        ("/src/[ab]", ["/src/a", "/src/b/c"], ["/src/c", "/src/ab"]),
        ("/src/[é]", ["/src/é"], ["/src/è", "/src/e"]),
        ("/src/[a-c]x", ["/src/bx"], ["/src/dx", "/src/-x"]),
        ("/src/[!a]", ["/src/b", "/src/!"], ["/src/a", "/src"]),
        ("/src/[^a]", ["/src/b", "/src/^"], ["/src/a"]),
        ("/src[!a]b", ["/src-b"], ["/src/b", "/srcab"]),
        ("/src[+-9]b", ["/src-b", "/src5b"], ["/src/b"]),
        ("/src/[]a]", ["/src/]", "/src/a"], ["/src/b"]),
        ("/src/[!]a]", ["/src/b"], ["/src/]", "/src/a"]),
        ("/src/[!]a]/[x]", ["/src/b/x"], ["/src/b", "/src/x"]),
        ("/src/[a-]", ["/src/a", "/src/-"], ["/src/b"]),
        ("/src/[a&&b||c~~]", ["/src/&", "/src/|", "/src/~", "/src/c"], ["/src/x"]),
        ("/src/[+--]", ["/src/+", "/src/,", "/src/-"], ["/src/."]),
        ("/src/[[]", ["/src/["], ["/src/]"]),
        ("/src/[\\d]", ["/src/d", "/src/\\"], ["/src/1"]),
        ("/src/[a", ["/src/[a"], ["/src/a"]),
        ("/src/a.c+(x)", ["/src/a.c+(x)"], ["/src/abc+(x)", "/src/a.cc"]),
        ("/src/a\nb", ["/src/a\nb/c"], ["/src/a", "/src/a\n"]),
    ],
)
def test_pattern_covers(pattern: str, matched: list[str], not_matched: list[str]) -> None:
    assert [path for path in matched if not _covers(pattern, path)] == []
    assert [path for path in not_matched if _covers(pattern, path)] == []


@pytest.mark.parametrize("pattern", ["", "src", "./src", "/src/../b", "/a\0b", "/src/[z-a]"])
def test_an_invalid_pattern_is_refused(pattern: str) -> None:
    with pytest.raises(PathError):
        normalize_pattern(pattern.encode())


def test_a_pattern_is_normalized() -> None:
    assert normalize_pattern(b"//src//*/") == b"/src/*"


def test_the_first_rule_with_the_verdict_matches() -> None:
    patterns = [(b"/a", Verdict.DENIED), (b"/b", Verdict.APPROVED), (b"/", Verdict.APPROVED)]
    rules = [Rule(n, pattern, said, ANN, NOW) for n, (pattern, said) in enumerate(patterns)]
    assert first_match(rules, _at(b"/b/x"), Verdict.APPROVED) == rules[1]
    assert first_match(rules, _at(b"/a/x"), Verdict.APPROVED) == rules[2]
    assert first_match(rules, _at(b"/a/x"), Verdict.DENIED) == rules[0]
    assert first_match(rules, _at(b"/b/x"), Verdict.DENIED) is None


def test_the_name_of_a_folder_cannot_make_matching_slow() -> None:
    """With backtracking, this would take years."""
    assert not _covers("/s/" + "*a" * 30 + "b", "/s/" + "a" * 255)


def test_the_depth_of_a_path_cannot_make_matching_slow() -> None:
    """With backtracking, this would take years."""
    assert not _covers("/**/a" * 30 + "/**/b", "/a" * 200)
    assert not _covers("/**/*a*/*a*" * 30 + "/**/b", ("/" + "a" * 19) * 200)


components = st.text(st.sampled_from("ab-.*?[]!^&~|\\é\n"), min_size=1, max_size=6).filter(
    lambda text: text not in (".", "..", "**")
)
names = st.text(st.sampled_from("ab-.&~|]!^\\é\n"), min_size=1, max_size=6)


@given(components, names)
def test_one_component_matches_like_fnmatch(glob: str, name: str) -> None:
    try:
        speaks = _covers("/" + glob, "/" + name)
    except PathError:
        return
    # `[^…]` negates too, and a range is parsed from the left; fnmatch differs in both.
    wanted = re.sub(r"\[\^", "[!", glob)
    if not re.search(r"\[[^]]*-", glob) and "[!^" not in glob and "[[!" not in wanted:
        assert speaks is fnmatch.fnmatchcase(name, wanted)


@given(st.lists(st.sampled_from(["a", "b", "*", "**"]), max_size=7),
       st.lists(st.sampled_from(["a", "b"]), min_size=1, max_size=7))  # fmt: skip
def test_two_stars_match_any_depth(pattern: list[str], path: list[str]) -> None:
    def fits(globs: list[str], parts: list[str]) -> bool:
        if not globs:
            return True
        if globs[0] == "**":
            return any(fits(globs[1:], parts[skipped:]) for skipped in range(len(parts) + 1))
        return bool(parts) and globs[0] in ("*", parts[0]) and fits(globs[1:], parts[1:])

    assert _covers("/" + "/".join(pattern), "/" + "/".join(path)) is fits(pattern, path)


@pytest.mark.parametrize(
    "path", [b"/a*", b"/a?b/[c]", b"/[", b"/]", b"/a[[]b", b"/**", b"/\xff[*"]
)
def test_a_literal_pattern_matches_only_its_path(path: bytes) -> None:
    pattern = normalize_pattern(escape_pattern(path))
    assert matches(pattern, path)
    assert matches(pattern, path + b"/below")
    for other in (b"/", b"/ax", b"/a-b/c", b"/c", path + b"x", path.replace(b"*", b"x") + b"y"):
        assert not matches(pattern, other)
