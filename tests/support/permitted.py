"""What may be published, said a second time: from section 4 of the contract, not from the code."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field


@dataclass
class Folder:
    """What a careful person would write down about one project. `word` is directory approved."""

    seen: int | None = None
    here: bool = True
    gone: bool = False
    whole: bool = True
    safe: bool = True
    main: bytes | None = None
    denied: bool = False
    word: int | None = None
    vouched: int | None = None
    decided: bool = False

    def drop_approvals(self) -> None:
        self.word = self.vouched = None


@dataclass
class Permitted:
    """`covers` says which paths a pattern speaks for; directory 0 cannot be told from another."""

    covers: Callable[[bytes, bytes], bool]
    never: frozenset[bytes]
    folders: dict[bytes, Folder] = field(default_factory=dict)
    rules: dict[int, tuple[bytes, bool]] = field(default_factory=dict)

    def sight(self, path: bytes, number: int, main: bytes | None, *, whole: bool) -> None:
        folder = self.folders.setdefault(path, Folder())
        if (folder.seen, folder.main) != (number, main) or number == 0:
            folder.drop_approvals()
        folder.seen, folder.main, folder.whole = number, main, whole
        folder.here, folder.gone, folder.safe = True, False, True

    def lose(self, path: bytes, *, proven: bool) -> None:
        if proven and not self.folders[path].decided:
            del self.folders[path]
        else:
            self.folders[path].here, self.folders[path].gone = False, proven

    def endanger(self, path: bytes) -> None:
        self.folders[path].safe = False
        self.folders[path].drop_approvals()

    def approve(self, path: bytes) -> None:
        folder = self.folders[path]
        folder.word, folder.denied, folder.decided = folder.seen, False, True

    def deny(self, path: bytes) -> None:
        folder = self.folders[path]
        folder.drop_approvals()
        folder.denied = folder.decided = True

    def forget(self, path: bytes) -> None:
        folder = self.folders[path]
        folder.drop_approvals()
        folder.denied = folder.decided = False
        if folder.gone:
            del self.folders[path]

    def take_back(self, path: bytes, before: Folder) -> None:
        folder = self.folders[path]
        folder.drop_approvals()
        folder.word, folder.denied, folder.decided = before.word, before.denied, before.decided
        if folder.gone and not folder.decided:
            del self.folders[path]

    def settle(self) -> None:
        """Rules speak, then approved main checkouts, for what nobody decided."""
        for path, folder in sorted(self.folders.items(), key=lambda item: item[1].main or b""):
            fit = folder.here and folder.whole and folder.safe and folder.seen != 0
            free = path not in self.never and not self.denied(path) and folder.word is None
            speaks = self.ruled(path, approve=True) or self.main_is_approved(folder)
            if fit and free and speaks:
                folder.vouched, folder.decided = folder.seen, True

    def ruled(self, path: bytes, *, approve: bool) -> bool:
        return any(yes is approve and self.covers(p, path) for p, yes in self.rules.values())

    def denied(self, path: bytes) -> bool:
        above = (p for p, folder in self.folders.items() if folder.denied and within(path, p))
        return any(above) or self.ruled(path, approve=False)

    def approved(self, path: bytes) -> bool:
        folder = self.folders[path]
        vouched = folder.vouched is not None and (
            self.ruled(path, approve=True) or self.main_is_approved(folder)
        )
        holds_denied = any(within(p, path) and self.denied(p) for p in self.folders)
        return (folder.word is not None or vouched) and not holds_denied and not self.denied(path)

    def main_is_approved(self, folder: Folder) -> bool:
        main = self.folders.get(folder.main or b"")
        return main is not None and main.main is None and self.approved(folder.main or b"")

    def published(self) -> set[bytes]:
        known = self.folders.items()
        return {p for p, folder in known if folder.here and folder.safe and self.approved(p)}


def within(path: bytes, folder: bytes) -> bool:
    """Whether `path` is `folder` or lies in it."""
    return path.split(b"/")[: len(folder.split(b"/"))] == folder.split(b"/")
