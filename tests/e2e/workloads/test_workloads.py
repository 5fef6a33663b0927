"""Real work comes to the same result behind the wall as outside, or says which option it needs."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import pytest

from support.sizes import Size, Sizes
from support.workloads import Workload, Workplace, differences, package_managers, workloads

pytestmark = pytest.mark.needs("user-namespaces", "wall")

# What `make check` runs, with programs that CI has. `make soak` runs all. None needs an option.
_CHECKED = (
    "git-switch-tracked-tool-files", "python-unittest", "git-merge-tracked-tool-files",
    "git-daily", "git-pull", "git-hooks", "npm-install", "python-venv", "tmux", "ripgrep-fd-find",
)  # fmt: skip


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    if "workload" in metafunc.fixturenames:
        records = workloads()
        sizes = Sizes(Size(metafunc.config.getoption("--sizes")))
        names = sizes.pick(test=_CHECKED[:2], check=_CHECKED, soak=tuple(records))
        chosen = [
            pytest.param(records[name], id=name, marks=pytest.mark.needs(*records[name].needs))
            for name in names
        ]
        metafunc.parametrize("workload", chosen)


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory, sizes: Sizes) -> Iterator[Workplace]:
    packages = sizes.pick(test=None, check=None, soak=package_managers)
    with Workplace(tmp_path_factory.mktemp("place"), packages and packages()) as place:
        yield place


def test_work_comes_to_the_same_result(place: Workplace, workload: Workload) -> None:
    outside, inside = place.outside(workload), place.inside(workload)
    found = differences(workload, outside, inside)
    if not workload.message:
        assert outside.status == 0, outside.printed
        assert found == [], (outside.printed, inside.printed, inside.said)
        return
    assert inside.status != 0, (found, "it fails without a sign, or needs no option any more")
    assert workload.message in inside.printed + inside.said
    if workload.option:
        opened = place.inside(workload, workload.option)
        assert differences(workload, outside, opened) == [], (opened.printed, opened.said)


def test_there_are_at_least_sixty() -> None:
    records = workloads().values()
    assert len(records) >= 60
    assert sum(not each.message for each in records) >= 55


@pytest.mark.parametrize(
    ("work", "options", "found"),
    [
        ("git switch other", "--protect", ".envrc: "),
        ("echo mine >> ../other/README", "--write ~/src/other", "beside the project: src/other/"),
        ("git config user.name", "--hide ~/.gitconfig", "another output"),
    ],
    ids=["a switch that leaves the old file", "a file of another project", "another name"],
)
def test_control_a_wrong_result_is_found(
    place: Workplace, work: str, options: str, found: str
) -> None:
    switch = workloads()["git-switch-tracked-tool-files"]
    workload = replace(switch, name=options.split(maxsplit=1)[0].strip("-"), work=work)
    outside, inside = place.outside(workload), place.inside(workload, options)
    assert any(found in each for each in differences(workload, outside, inside))
