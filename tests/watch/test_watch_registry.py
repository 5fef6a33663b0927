"""The watch registry answers as a plain dictionary would."""

from __future__ import annotations

from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from rootsd.watch.events import WatchPurpose
from rootsd.watch.watch_registry import WatchKey, WatchRegistry

FOLDERS = st.sampled_from([b"/a", b"/b", b"/c"])
PURPOSES = st.sampled_from(WatchPurpose)
WATCHES = st.integers(1, 3)


class RegistryMachine(RuleBasedStateMachine):
    """Random calls, compared with a dictionary that holds the expected watches."""

    def __init__(self) -> None:
        super().__init__()
        self.registry = WatchRegistry()
        self.expected: dict[WatchKey, int] = {}

    @rule(folder=FOLDERS, purpose=PURPOSES, wd=WATCHES)
    def add(self, folder: bytes, purpose: WatchPurpose, wd: int) -> None:
        if (folder, purpose) not in self.expected:
            self.registry.add(folder, purpose, wd)
            self.expected[folder, purpose] = wd

    @precondition(lambda self: self.expected)
    @rule(data=st.data())
    def remove(self, data: st.DataObject) -> None:
        key = data.draw(st.sampled_from(list(self.expected)))
        self.registry.remove(*key)
        del self.expected[key]

    @rule(wd=WATCHES)
    def remove_all(self, wd: int) -> None:
        ended = self.registry.remove_all(wd)
        assert len(set(ended)) == len(ended)
        assert set(ended) == {each for each, its in self.expected.items() if its == wd}
        self.expected = {each: its for each, its in self.expected.items() if its != wd}

    @invariant()
    def agrees(self) -> None:
        assert len(self.registry) == len(set(self.expected.values()))
        for purpose in WatchPurpose:
            its = {path: wd for (path, of), wd in self.expected.items() if of is purpose}
            assert set(self.registry.watches_for(purpose)) == set(its.values())
            for folder in (b"/a", b"/b", b"/c"):
                assert self.registry.watch_of(folder, purpose) == its.get(folder)
            for wd in range(1, 4):
                # Paths are in the order in which they were added.
                under = tuple(path for path, watch in its.items() if watch == wd)
                assert self.registry.folders_of(wd, purpose) == under
                assert (purpose in self.registry.purposes_of(wd)) == bool(under)


TestRegistryMachine = RegistryMachine.TestCase
