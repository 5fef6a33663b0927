"""Print the size and the shape of the code below FOLDER: modules, lines, functions, records.

    python tools/count_code.py [FOLDER]            # default: daemon/rootsd
    python tools/count_code.py --twins [FOLDER]    # the pairs of twins, by name

Run it on two checkouts to compare them. It imports nothing of the code that it counts.

A record is a class of named values: a Struct, a TypedDict, a NamedTuple, or a dataclass. Two of
them are twins if they share at least 3 names of fields, and 70 % of the names of the smaller one.
"""

from __future__ import annotations

import ast
import statistics
import sys
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping
from itertools import combinations
from pathlib import Path

_TOP = Path(__file__).parent.parent


_RECORD_BASES = {"NamedTuple", "Struct", "TypedDict"}
_MIN_SHARED, _MIN_SHARE = 3, 0.7


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
    records = _records(trees.values())
    rows = {
        "modules (without empty ones)": len(sources),
        "lines": sum(lengths),
        "lines of code (no blanks, comments, docstrings)": sum(
            _code_lines(text, trees[path]) for path, text in sources.items()
        ),
        "median module, lines": int(statistics.median(lengths)),
        "largest module, lines": max(lengths),
        "median function, lines": int(statistics.median(functions)),
        "p90 function, lines": int(statistics.quantiles(functions, n=10)[-1]),
        "class names used twice": sum(1 for count in classes.values() if count > 1),
        "mutual imports between packages": len(_mutual_imports(folder, trees)),
        "records": len(records),
        "pairs of twins": len(_twins(records)),
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


def _code_lines(text: str, tree: ast.Module) -> int:
    """Count the lines that are neither blank, nor a comment alone, nor part of a docstring."""
    lines = [line.strip() for line in text.splitlines()]
    for node in ast.walk(tree):
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant):
            end = node.end_lineno or node.lineno
            lines[node.lineno - 1 : end] = [""] * (end - node.lineno + 1)
    return sum(1 for line in lines if line and not line.startswith("#"))


def _records(trees: Iterable[ast.Module]) -> dict[str, set[str]]:
    """Return the names of the fields that each record declares itself, by the record's name."""
    classes = [node for tree in trees for node in ast.walk(tree) if isinstance(node, ast.ClassDef)]
    names = set(_RECORD_BASES)
    while more := {node.name for node in classes if _is_record(node, names)} - names:
        names |= more
    return {
        node.name: {
            line.target.id
            for line in node.body
            if isinstance(line, ast.AnnAssign)
            and isinstance(line.target, ast.Name)
            and "ClassVar" not in ast.unparse(line.annotation)
        }
        for node in classes
        if node.name in names
    }


def _is_record(node: ast.ClassDef, records: set[str]) -> bool:
    bases = {ast.unparse(base).partition("[")[0].rpartition(".")[2] for base in node.bases}
    return not bases.isdisjoint(records) or any(
        "dataclass" in ast.unparse(each) for each in node.decorator_list
    )


def _twins(records: Mapping[str, set[str]]) -> list[tuple[str, str]]:
    return [
        (one, other)
        for one, other in combinations(sorted(records), 2)
        if (shared := len(records[one] & records[other])) >= _MIN_SHARED
        and shared >= _MIN_SHARE * min(len(records[one]), len(records[other]))
    ]


def print_twins(folder: Path) -> None:
    """Print each pair of twins, with the names of the fields that they share."""
    records = _records(ast.parse(path.read_text()) for path in sorted(folder.rglob("*.py")))
    for one, other in _twins(records):
        print(f"{one} {other}: {' '.join(sorted(records[one] & records[other]))}")


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
    arguments = [each for each in sys.argv[1:] if each != "--twins"]
    (print_twins if "--twins" in sys.argv else main)(
        Path(arguments[0]) if arguments else _TOP / "daemon" / "rootsd"
    )
