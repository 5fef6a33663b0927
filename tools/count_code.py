"""Print the size and the shape of the code below FOLDER: modules, lines, functions, imports.

    python tools/count_code.py [FOLDER]      # default: daemon/rootsd

Run it on two checkouts to compare them. It imports nothing of the code that it counts.
"""

from __future__ import annotations

import ast
import statistics
import sys
from collections import Counter, defaultdict
from collections.abc import Iterator
from itertools import combinations
from pathlib import Path

_TOP = Path(__file__).parent.parent


def main(folder: Path) -> None:
    sources = {path: path.read_text() for path in sorted(folder.rglob("*.py"))}
    sources = {path: text for path, text in sources.items() if text.strip()}
    trees = {path: ast.parse(text) for path, text in sources.items()}
    lengths = [text.count("\n") for text in sources.values()]
    functions = [length for tree in trees.values() for length in _function_lengths(tree)]
    classes = Counter(
        node.name
        for tree in trees.values()
        for node in ast.walk(tree)
        if isinstance(node, ast.ClassDef)
    )
    rows = {
        "modules (without empty ones)": len(sources),
        "lines": sum(lengths),
        "lines of code": sum(_code_lines(text) for text in sources.values()),
        "median module, lines": int(statistics.median(lengths)),
        "largest module, lines": max(lengths),
        "median function, lines": int(statistics.median(functions)),
        "p90 function, lines": int(statistics.quantiles(functions, n=10)[-1]),
        "class names used twice": sum(1 for count in classes.values() if count > 1),
        "mutual imports between packages": len(_mutual_imports(folder, trees)),
    }
    for what, figure in rows.items():
        print(f"{figure:7}  {what}")
    readme = folder.parent.parent / "README.md"
    if readme.is_file():
        print(f"{len(readme.read_text().split()):7}  words in README.md")


def _function_lengths(tree: ast.AST) -> Iterator[int]:
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            yield (node.end_lineno or node.lineno) - node.lineno + 1


def _code_lines(text: str) -> int:
    """Count the lines that are neither blank nor a comment alone."""
    lines = (line.strip() for line in text.splitlines())
    return sum(1 for line in lines if line and not line.startswith("#"))


def _mutual_imports(folder: Path, trees: dict[Path, ast.Module]) -> list[tuple[Path, Path]]:
    """Return the pairs of packages, at any level, that import each other.

    A package and one inside it do not count as a pair.
    """
    imports: dict[Path, set[Path]] = defaultdict(set)
    for path, tree in trees.items():
        for node in ast.walk(tree):
            if isinstance(node, ast.ImportFrom) and node.module and node.level == 0:
                module = folder.parent.joinpath(*node.module.split("."))
                imports[path.parent].add(module if module.is_dir() else module.parent)
    return [
        (one, other)
        for one, other in combinations(sorted(imports), 2)
        if other in imports[one]
        and one in imports[other]
        and not one.is_relative_to(other)
        and not other.is_relative_to(one)
    ]


if __name__ == "__main__":
    main(Path(sys.argv[1]) if len(sys.argv) > 1 else _TOP / "daemon" / "rootsd")
