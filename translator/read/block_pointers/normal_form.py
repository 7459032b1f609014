"""A function with each block pointer made in a statement of its own, so that other modules need to know only that form.

before: x = tl.load(tl.make_block_ptr(x_ptr, ...))      p, q = tl.advance(p, ...), r if flag else s
after:  x_block_ptr = tl.make_block_ptr(x_ptr, ...)     p = tl.advance(p, ...)
        x = tl.load(x_block_ptr)                        if flag: q = r
                                                        else: q = s
"""

from __future__ import annotations

import ast
from collections.abc import Collection, Iterator

from gluonize.numbered import numbered
from gluonize.read.block_pointers.builtin_calls import given, is_made, refuse
from gluonize.read.block_pointers.makers import is_maker_call, made_lines
from gluonize.read.text.own_lines import take_apart
from gluonize.read.text.source_text import Edit, SourceText, edit_function
from gluonize.triton_api.jit_functions import JITFunction

_BLOCKS = ("body", "orelse", "finalbody")


def normalize(fn: JITFunction, pointers: Collection[str]) -> None:
    """Bring a function into that form, in place. pointers: its parameters that are block pointers."""
    take_apart(fn)
    while edits := _step(fn, pointers):
        edit_function(fn, SourceText(fn.src), edits)


def hoist(fn: JITFunction, statement: ast.stmt, call: ast.Call, name: str) -> None:
    """Move a call to a statement of its own in front of the one that it stands in, under a name like `name`."""
    edit_function(fn, SourceText(fn.src), _hoisted(fn, statement, call, name))


def own_expressions(s: ast.stmt) -> list[ast.expr]:
    """The expressions of a statement that are not in a statement within it."""
    found = []
    for field, value in ast.iter_fields(s):
        if field not in _BLOCKS and field != "decorator_list":
            found += [v for v in (value if isinstance(value, list) else [value]) if isinstance(v, ast.expr)]
    return found


def statements(block: list[ast.stmt]) -> Iterator[ast.stmt]:
    """The statements of a block, and those within them, in their order."""
    for s in block:
        yield s
        for field in _BLOCKS:
            yield from statements(getattr(s, field, []))


def _step(fn: JITFunction, pointers: Collection[str]) -> list[Edit]:
    tree = ast.parse(fn.src).body[0]
    assert isinstance(tree, ast.FunctionDef)
    known = _pointers(fn, tree, pointers)
    for s in statements(tree.body):
        if edits := _changed(fn, s, known):
            return edits
    return []


def _pointers(fn: JITFunction, tree: ast.FunctionDef, pointers: Collection[str]) -> set[str]:
    """The names that are block pointers somewhere."""
    known = set(pointers)
    while True:
        before = len(known)
        for s in statements(tree.body):
            if isinstance(s, ast.Assign):
                known |= {
                    name.id for name, value in _pairs(s) if isinstance(name, ast.Name) and _is_pointer(fn, value, known)
                }
        if len(known) == before:
            return known


def _pairs(s: ast.Assign) -> list[tuple[ast.expr, ast.expr]]:
    """What is assigned to what, by element where both sides are tuples."""
    target, value = s.targets[0], s.value
    if isinstance(target, ast.Tuple) and isinstance(value, ast.Tuple) and len(target.elts) == len(value.elts):
        return list(zip(target.elts, value.elts))
    return [(target, value)]


def _is_pointer(fn: JITFunction, node: ast.expr, known: Collection[str]) -> bool:
    if isinstance(node, ast.IfExp):
        return _is_pointer(fn, node.body, known) or _is_pointer(fn, node.orelse, known)
    return _makes(fn, node) or isinstance(node, ast.Name) and node.id in known


def _makes(fn: JITFunction, node: ast.AST) -> bool:
    return is_made(node) or is_maker_call(fn, node)


def _changed(fn: JITFunction, s: ast.stmt, known: Collection[str]) -> list[Edit]:
    """What brings one statement nearer to the form; nothing where it has it."""
    if isinstance(s, ast.Assign):
        pairs = _pairs(s)
        if len(pairs) > 1 and any(_is_pointer(fn, value, known) for _, value in pairs):
            return _apart(fn, s, pairs)
        if isinstance(s.value, ast.IfExp) and _is_pointer(fn, s.value, known):
            return _branches(fn, s, s.value)
    if isinstance(s, ast.Return) and s.value is not None:
        values = s.value.elts if isinstance(s.value, ast.Tuple) else [s.value]
        if chosen := next((v for v in values if isinstance(v, ast.IfExp) and _is_pointer(fn, v, known)), None):
            return _named(fn, s, chosen, "block_ptr")
    own = s.value if isinstance(s, ast.Assign) and len(s.targets) == 1 and isinstance(s.targets[0], ast.Name) else None
    if own is not None and is_maker_call(fn, own):
        return _made_here(fn, s, own)  # type: ignore[arg-type]
    for expression in own_expressions(s):
        for node in _innermost_first(expression):
            if _makes(fn, node) and node is not own:
                return _hoisted(fn, s, node, _root(node))
    return []


def _innermost_first(node: ast.AST) -> Iterator[ast.AST]:
    for child in ast.iter_child_nodes(node):
        yield from _innermost_first(child)
    yield node


def _root(node: ast.Call) -> str:
    """A name for what a call makes, after the pointer that it is made of."""
    base: ast.expr | None = given(node).get("base") if is_made(node) else next(iter(node.args), None)
    while base is not None and not isinstance(base, ast.Name):
        base = next((n for n in ast.walk(base) if isinstance(n, ast.Name)), None)
    stem = base.id if isinstance(base, ast.Name) else ""
    return f"{stem.removesuffix('_ptr').removesuffix('_block')}_block_ptr".lstrip("_")


def _hoisted(fn: JITFunction, s: ast.stmt, node: ast.expr, name: str) -> list[Edit]:
    source = SourceText(fn.src)
    line = source.lines[s.lineno - 1].lstrip()
    if isinstance(s, ast.While | ast.For) or line.startswith("elif"):
        why = "it would be made anew at every test, which no statement before it does"
        raise refuse(fn, node, "a block pointer is made in a condition", why, "make it in a statement of its own")
    return _named(fn, s, node, name)


def _named(fn: JITFunction, s: ast.stmt, node: ast.expr, name: str) -> list[Edit]:
    """The edits that give an expression a name before the statement that it stands in."""
    source = SourceText(fn.src)
    tree = ast.parse(fn.src)
    names = {n.id for n in ast.walk(tree) if isinstance(n, ast.Name)}
    if isinstance(s, ast.Return):
        names -= _returned(tree)
    name = numbered(name, lambda n: n in names or n in fn.__globals__ or n in fn.arg_names)
    at = source.span(s)[0]
    return [(at, at, f"{name} = {source.of(node)}\n{source.indent(s)}"), (*source.span(node), name)]


def _returned(tree: ast.AST) -> set[str]:
    """The names that are assigned only for the `return` right behind: a function may use such a name more than once."""
    kept: set[int] = set()
    found: set[str] = set()
    for block in (getattr(n, field, []) for n in ast.walk(tree) for field in ("body", "orelse")):
        for s, after in zip(block, block[1:]) if isinstance(block, list) else ():
            if isinstance(s, ast.Assign) and isinstance(after, ast.Return) and isinstance(s.targets[0], ast.Name):
                found.add(s.targets[0].id)
                kept |= {id(n) for n in (*ast.walk(s.targets[0]), *ast.walk(after))}
    return found - {n.id for n in ast.walk(tree) if isinstance(n, ast.Name) and id(n) not in kept}


def _apart(fn: JITFunction, s: ast.Assign, pairs: list[tuple[ast.expr, ast.expr]]) -> list[Edit]:
    source = SourceText(fn.src)
    for n, (target, _) in enumerate(pairs):
        later = {name.id for _, value in pairs[n + 1 :] for name in ast.walk(value) if isinstance(name, ast.Name)}
        if isinstance(target, ast.Name) and target.id in later:
            why = f"`{target.id}` is read after it is assigned if one is assigned after the other"
            raise refuse(fn, s, "block pointers change places", why, "use a third name")
    lines = [f"{source.of(target)} = {source.of(value)}" for target, value in pairs]
    return [(*source.span(s), f"\n{source.indent(s)}".join(lines))]


def _made_here(fn: JITFunction, s: ast.Assign, call: ast.Call) -> list[Edit]:
    source = SourceText(fn.src)
    indent = source.indent(s)
    lines = made_lines(fn, source.of(s.targets[0]), call, "\t" if "\t" in indent else "    ")
    return [(*source.span(s), f"\n{indent}".join(lines))]


def _branches(fn: JITFunction, s: ast.Assign, chosen: ast.IfExp) -> list[Edit]:
    source = SourceText(fn.src)
    indent = source.indent(s)
    step = "\t" if "\t" in indent else "    "
    target = source.of(s.targets[0])
    lines = [
        f"if {source.of(chosen.test)}:",
        f"{step}{target} = {source.of(chosen.body)}",
        "else:",
        f"{step}{target} = {source.of(chosen.orelse)}",
    ]
    return [(*source.span(s), f"\n{indent}".join(lines))]


__all__ = ["hoist", "normalize", "own_expressions", "statements"]
