"""What a review of the house counted, counted again: ladders over kinds of nets, helpers that exist twice, lines.

    python -m benchmarks.house

A ladder is an `isinstance`, a `case` or a `type(...) is` with a class that is registered as a kind of net,
outside the file that registers it. Exit status 1 if a ladder or a second copy remains.
"""

from __future__ import annotations

import ast
import sys
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
SOURCE, TESTS = ROOT / "src" / "tacit", ROOT / "tests"
MOST_LINES = 44_722  # before the house was rebuilt
# rooms above nets cannot ask its registry: an extractor of features is a module or it is not
ABOVE = ("base", "data")

Definition = ast.FunctionDef | ast.ClassDef
Found = list[str]


def main() -> int:
    """Print the table."""
    trees = {path: ast.parse(path.read_text()) for path in sorted(SOURCE.rglob("*.py"))}
    tests = {path: ast.parse(path.read_text()) for path in sorted(TESTS.rglob("*.py"))}
    kinds = registered(trees)
    rows = [(f"ladders over {len(kinds)} kinds of nets", 0, ladders(trees, kinds))]
    rows += [(what, 1, copies(trees, matches)) for what, matches in HELPERS.items()]
    rows.append(
        ("copies of .to, .double, .members", 0, copies(trees, partial(moves_a_net, set(kinds))))
    )
    rows.append(("'x holds NaN or inf' written out", 0, told(trees, "x holds NaN or inf: ")))
    rows.append(("class Memory in tests", 1, copies(tests, partial(is_named, ("Memory",)))))
    bad = False
    for what, most, found in rows:
        bad = bad or len(found) > most
        mark = "MORE" if len(found) > most else "ok"
        print(f"{what:<36} {len(found):>3} (at most {most})  {mark}")
        for place in found if len(found) > most else ():
            print(f"    {place}")
    lines = sum(len(path.read_text().splitlines()) for path in trees)
    print(f"{'lines of src/tacit':<36} {lines:,} (before: {MOST_LINES:,})")
    return int(bad)


def registered(trees: dict[Path, ast.Module]) -> dict[str, Path]:
    """The classes of `register(Class, name="...")`, as they are written there, each with its file."""
    found = {}
    for path, tree in trees.items():
        for node in ast.walk(tree):
            if isinstance(node, ast.Call) and ast.unparse(node.func) == "register" and node.args:
                names = {k.arg: ast.unparse(k.value) for k in node.keywords}
                if names.get("name", "''") not in ("''", "name"):
                    found[ast.unparse(node.args[0])] = path
    return found


def ladders(trees: dict[Path, ast.Module], kinds: dict[str, Path]) -> Found:
    """The places where a class is told apart that another file registers."""
    found = []
    for path, tree in trees.items():
        if path.relative_to(SOURCE).parts[0] in ABOVE:
            continue
        for node in ast.walk(tree):
            seen = [name for name in asked(node) if kinds.get(name, path) != path]
            if seen:
                line = getattr(node, "lineno", "?")
                found.append(f"{path.relative_to(ROOT)}:{line} {', '.join(seen)}")
    return found


def asked(node: ast.AST) -> Iterator[str]:
    """The classes that an expression or a case asks about."""
    if isinstance(node, ast.Call) and ast.unparse(node.func) == "isinstance":
        yield from (ast.unparse(part) for part in ast.walk(node.args[1]) if is_name(part))
    elif isinstance(node, ast.MatchClass):
        yield ast.unparse(node.cls)
    elif isinstance(node, ast.Compare) and ast.unparse(node.left).startswith("type("):
        yield from (ast.unparse(part) for part in node.comparators)


def is_name(node: ast.AST) -> bool:
    """A name, or a dotted one."""
    return isinstance(node, ast.Name | ast.Attribute)


def copies(trees: dict[Path, ast.Module], matches: Callable[[Definition], bool]) -> Found:
    """The definitions at the top of modules that match."""
    return [
        f"{path.relative_to(ROOT)}:{node.lineno} {node.name}"
        for path, tree in trees.items()
        for node in tree.body
        if isinstance(node, ast.FunctionDef | ast.ClassDef) and matches(node)
    ]


def is_named(names: tuple[str, ...], node: Definition) -> bool:
    """By its name alone."""
    return node.name in names


def takes(name: str, counts: tuple[int, ...], node: Definition) -> bool:
    """A function of that name with so many arguments: with others it computes another thing."""
    if not isinstance(node, ast.FunctionDef):
        return False
    return node.name == name and len(node.args.args) in counts


def moves_a_net(kinds: set[str], node: Definition) -> bool:
    """A function from a net to the same net on a device or of a type, or to the members of an ensemble."""
    if not isinstance(node, ast.FunctionDef) or not node.args.args or node.returns is None:
        return False
    names = ("moved", "_to", "to_device", "double", "doubled", "in_float64", "at_home", "at_device")
    first = node.args.args[0].annotation
    given = "" if first is None else ast.unparse(first)
    of_net = any(kind in given for kind in kinds) or (given == "Any" and node.name != "moved")
    return node.name in (*names, "members_of", "sound") and of_net


def writes_whole(node: Definition) -> bool:
    """A function that syncs a file and puts it in the place of another."""
    calls = {ast.unparse(part.func) for part in ast.walk(node) if isinstance(part, ast.Call)}
    return {"os.fsync", "os.replace"} <= calls


def told(trees: dict[Path, ast.Module], text: str) -> Found:
    """The places that say so."""
    return [
        f"{path.relative_to(ROOT)}:{node.lineno}"
        for path, tree in trees.items()
        for node in ast.walk(tree)
        if isinstance(node, ast.Constant) and str(node.value).startswith(text)
    ]


HELPERS: dict[str, Callable[[Definition], bool]] = {
    "unit_rows": partial(takes, "unit_rows", (1,)),
    "power": partial(takes, "power", (2, 3)),
    "lower_limit": partial(is_named, ("lower_limit",)),
    "span_axes": partial(is_named, ("span_axes",)),
    "choose_device": partial(is_named, ("choose_device", "chosen_device")),
    "atomic write": writes_whole,
    "outlived": partial(is_named, ("outlived",)),
}

if __name__ == "__main__":
    sys.exit(main())
