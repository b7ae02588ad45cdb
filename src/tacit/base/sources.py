"""The code that a function rests on, found by reading and not by running.

Definitions at the top level of a module (functions, classes, assignments) are nodes; a definition leads to those
that its text names, through imports and facades, in tacit, in packages that offer exhibits, and in all that is
not installed (Python's library and site-packages count by their versions). Not followed are annotations and
what stands under TYPE_CHECKING; comments and docstrings do not count. So a claim or a figure that a training
does not call may change, and the training's digest stays.

A text `"package.module:name"` is a reference that is resolved late, as registrations of nets have it. It is
followed once the keyword that holds it is the name of an attribute somewhere in the code that was reached:
`certificate="tacit.certify.radius:two_layer_radius"` counts for code that asks for `.certificate`, and not else.
"""

import ast
import hashlib
import importlib.util
import re
import sys
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from functools import cache
from importlib.metadata import entry_points
from pathlib import Path

Reference = tuple[str, str]
"""A module and a name at its top level; the empty name is the whole module."""

EFFECTS = "(effects)"  # names nothing: the statements of a module that bind nothing
LATE = re.compile(r"[A-Za-z_][\w.]*:[A-Za-z_]\w*")


@dataclass(frozen=True)
class Source:
    """A module's top level: what each name is bound to, what is imported, and statements that bind nothing."""

    package: str
    bound: dict[str, list[ast.stmt]] = field(default_factory=dict)
    imported: dict[str, Reference] = field(default_factory=dict)
    effects: list[ast.stmt] = field(default_factory=list)


@cache
def code_digest(*starts: Reference, asked: frozenset[str] = frozenset()) -> str:
    """The sha256 of all that these definitions reach; the same in every process that sees the same files.

    `asked` are attributes that are asked for besides, by code that is no definition (a lambda).
    """
    hasher = hashlib.sha256()
    for line in sorted(_reached(starts, asked)):
        hasher.update(line.encode())
    return hasher.hexdigest()


@cache
def followed(module: str) -> bool:
    """Whether a module's text counts: tacit's, that of who offers exhibits, and all that is not installed."""
    root = module.partition(".")[0]
    if root == "tacit":
        return True
    path = None if root in sys.stdlib_module_names or not root else _path_of(root)
    installed = {"site-packages", "dist-packages"}
    return path is not None and (not installed & set(path.parts) or root in _offering())


def packaged(module: str) -> bool:
    """Whether a module that is followed is in a package; of a script the values count, as they are."""
    path = _path_of(module.partition(".")[0]) if followed(module) else None
    return path is not None and path.name == "__init__.py"


@cache
def _offering() -> frozenset[str]:
    """Packages with exhibits: what they compute is kept, so that a version, if there is one, is too little."""
    points = entry_points(group="tacit.exhibits")
    return frozenset(point.value.partition(":")[0].partition(".")[0] for point in points)


def _reached(starts: Iterable[Reference], asked: frozenset[str] = frozenset()) -> set[str]:
    """A line for each definition, `module:name text`; `asked` grows by the attributes that the code asks for."""
    todo, seen, lines = list(starts), set[Reference](), set[str]()
    late: list[tuple[str, Reference]] = []  # references that wait for their keyword
    while todo:
        reference = todo.pop()
        if reference in seen:
            continue
        seen.add(reference)
        module, name = reference
        source = _source_of(module) if followed(module) else None
        if source is None:
            continue
        if source.package:  # its own first lines run too
            todo.append((source.package, EFFECTS))
        if name in source.imported:
            todo.append(source.imported[name])
        elif name in ("", "*"):
            todo += [(module, each) for each in (*source.bound, *source.imported)]
        elif (whole := _module_of(reference)) is not None:
            todo.append((whole, ""))
        for node in [*source.bound.get(name, ()), *source.effects]:
            text = _text(node)
            if f"{module}:{text}" in lines:
                continue
            lines.add(f"{module}:{text}")
            named, attributes, waiting = _facts(node, module)
            asked |= attributes
            late += waiting
            todo += named
        todo += [found for keyword, found in late if keyword in asked]
        late = [waits for waits in late if waits[0] not in asked]
    return lines


@cache
def _facts(
    node: ast.AST, module: str
) -> tuple[list[Reference], set[str], list[tuple[str, Reference]]]:
    """What a definition's text names, the attributes that it asks for, and its late references."""
    attributes = {part.attr for part in _walk(node) if isinstance(part, ast.Attribute)}
    return list(_named(node, module)), attributes, list(_late(node))


def _named(node: ast.AST, module: str) -> Iterator[Reference]:
    """What a definition's text names."""
    source = _source_of(module)
    assert source is not None
    for part in _walk(node):
        if isinstance(part, ast.Name):
            yield from _resolved(part.id, module, source)
        elif isinstance(part, ast.Attribute):
            yield from _dotted(part, source)
        elif isinstance(part, ast.Import) and part is node:
            yield from ((alias.name, EFFECTS) for alias in part.names)
        elif isinstance(part, (ast.Import, ast.ImportFrom)):
            yield from _imports(part, source.package).values()


def _dotted(part: ast.Attribute, source: Source) -> Iterator[Reference]:
    """What `a.b.c` means where a is a module: c of its module b, as far as modules go."""
    names, root = [part.attr], part.value
    while isinstance(root, ast.Attribute):
        names, root = [root.attr, *names], root.value
    base = source.imported.get(root.id) if isinstance(root, ast.Name) else None
    module = None if base is None else _module_of(base)
    if module is not None:
        while len(names) > 1 and (below := _module_of((module, names[0]))):
            module, names = below, names[1:]
        yield module, names[0]


def inner_facts(module: str, line: int) -> tuple[list[str], list[Reference], set[str]]:
    """Texts, names and attributes of the functions and lambdas that begin in this line of a module."""
    source, texts = _source_of(module), list[str]()
    named, asked = list[Reference](), set[str]()
    tops = (
        [] if source is None else [*source.effects, *(n for b in source.bound.values() for n in b)]
    )
    for node in (part for top in tops for part in ast.walk(top)):
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda)):
            first = min([node.lineno, *(d.lineno for d in getattr(node, "decorator_list", ()))])
            if first == line:
                found = _facts(node, module)
                texts.append(_text(node))
                named, asked = named + found[0], asked | found[1]
    return texts, named, asked


def _resolved(name: str, module: str, source: Source) -> Iterator[Reference]:
    """A name of this module; a module that was imported whole counts by the attributes that are asked of it."""
    known = source.imported.get(name)
    if known is not None and _module_of(known) is None:
        yield known
    elif name in source.bound:
        yield module, name


def _late(node: ast.AST) -> Iterator[tuple[str, Reference]]:
    """References as texts, with the keywords that hold them."""
    for part in _walk(node):
        if isinstance(part, ast.keyword) and isinstance(part.value, ast.Constant):
            text = part.value.value
            if part.arg and isinstance(text, str) and LATE.fullmatch(text):
                module, _, name = text.partition(":")
                yield part.arg, (module, name)


@cache
def _source_of(module: str) -> Source | None:
    """The module's top level; None where its text cannot be had."""
    path = _path_of(module)
    if path is None:
        return None
    try:
        tree = ast.parse(path.read_bytes())
    except (OSError, SyntaxError, ValueError):
        return None
    facade = path.name == "__init__.py"
    source = Source(module if facade else module.rpartition(".")[0])
    if any(isinstance(node, ast.FunctionDef) and node.name == "__getattr__" for node in tree.body):
        for (
            node
        ) in tree.body:  # names that are imported when they are asked for stand under TYPE_CHECKING
            if isinstance(node, ast.If) and "TYPE_CHECKING" in ast.dump(node.test):
                _take(node.body, source)
    _take(tree.body, source)
    used = {part.id for part in ast.walk(tree) if isinstance(part, ast.Name)}
    for node in tree.body:  # what is imported for its effect alone; `import a.b` may be used as a.c
        if facade or not isinstance(node, (ast.Import, ast.ImportFrom)):
            continue
        if isinstance(node, ast.Import) or used.isdisjoint(_imports(node, source.package)):
            source.effects.append(node)
    return source


def _take(body: list[ast.stmt], source: Source) -> None:
    """Sort statements into bindings, imports and effects; both branches of an `if` or a `try` count."""
    for node in body:
        if isinstance(node, (ast.Import, ast.ImportFrom)):
            source.imported.update(_imports(node, source.package))
            if "*" in source.imported:
                source.effects.append(node)
        elif isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
            source.bound.setdefault(node.name, []).append(node)
            if any(_registers(decorator, source) for decorator in node.decorator_list):
                source.effects.append(node)
        elif isinstance(node, (ast.Assign, ast.AnnAssign, ast.AugAssign)):
            targets = node.targets if isinstance(node, ast.Assign) else [node.target]
            names = [n.id for t in targets for n in ast.walk(t) if isinstance(n, ast.Name)]
            for name in names:
                source.bound.setdefault(name, []).append(node)
        elif isinstance(node, ast.If) and "TYPE_CHECKING" in ast.dump(node.test):
            _take(node.orelse, source)
        elif isinstance(node, (ast.If, ast.Try)):
            handlers = [part for h in getattr(node, "handlers", ()) for part in h.body]
            _take([*node.body, *handlers, *node.orelse, *getattr(node, "finalbody", ())], source)
            if isinstance(node, ast.If):
                source.effects.append(ast.Expr(node.test))
        elif not (isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)):
            source.effects.append(node)


def _registers(decorator: ast.expr, source: Source) -> bool:
    """Whether a decorator may keep what it decorates: one of the code that is followed, or any `.register`."""
    call = decorator.func if isinstance(decorator, ast.Call) else decorator
    root = call
    while isinstance(root, ast.Attribute):
        root = root.value
    name = root.id if isinstance(root, ast.Name) else ""
    known = source.imported.get(name)
    own = name in source.bound or (known is not None and followed(known[0]))
    return own or (isinstance(call, ast.Attribute) and call.attr == "register")


def _imports(node: ast.Import | ast.ImportFrom, package: str) -> dict[str, Reference]:
    """What each imported name stands for."""
    if isinstance(node, ast.Import):
        return {
            alias.asname or alias.name.partition(".")[0]: (
                alias.name if alias.asname else alias.name.partition(".")[0],
                "",
            )
            for alias in node.names
        }
    above = package.rsplit(".", node.level - 1)[0] if node.level else ""
    home = ".".join(part for part in (above, node.module) if part)
    return {alias.asname or alias.name: (home, alias.name) for alias in node.names}


def _module_of(reference: Reference) -> str | None:
    """The module that is meant, where it is one: imported whole, or by its package, which binds no such name."""
    module, name = reference
    if not name:
        return module
    source = _source_of(module) if followed(module) else None
    if source is None or name in source.bound or name in source.imported:
        return None
    return f"{module}.{name}" if _path_of(f"{module}.{name}") else None


def _walk(node: ast.AST) -> Iterator[ast.AST]:
    """The node and what is in it, but for annotations."""
    yield node
    for name, value in ast.iter_fields(node):
        if name in ("annotation", "returns"):
            continue
        for child in value if isinstance(value, list) else (value,):
            if isinstance(child, ast.AST):
                yield from _walk(child)


@cache
def _text(node: ast.AST) -> str:
    """The statement without docstrings, comments and layout."""
    for part in ast.walk(node):
        body = getattr(part, "body", None)
        if isinstance(part, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)) and body:
            first = body[0]
            if isinstance(first, ast.Expr) and isinstance(first.value, ast.Constant):
                part.body = body[1:] or [ast.Pass()]
    return ast.dump(node)


@cache
def _path_of(module: str) -> Path | None:
    """The file of a module's text, without importing it; None where there is none."""
    try:
        root = importlib.util.find_spec(module.partition(".")[0])
    except (ImportError, ValueError, AttributeError):
        return None
    if root is None or root.origin is None:
        return None
    path = Path(root.origin)
    for part in module.split(".")[1:]:
        if path.name != "__init__.py":
            return None
        below = path.parent / part
        path = (
            below / "__init__.py" if (below / "__init__.py").is_file() else below.with_suffix(".py")
        )
    return path.resolve() if path.suffix == ".py" and path.is_file() else None
