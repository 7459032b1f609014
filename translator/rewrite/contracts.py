"""What a translation relies on, as code that refuses everything else by name.

Compile-time assumptions become `gl.static_assert`s at the top of the kernel; run-time ones are checked before the launch
(`translator.rewrite.launch_checks`). A kernel relies on the number of warps as soon as it has a layout, and on tile sizes and element types as soon as
a layout is tied to them (matrix operands, linear layouts).
"""

from __future__ import annotations

import ast
import functools
import json
import os
import re
from collections.abc import Sequence, Set
from dataclasses import dataclass

from triton.runtime.jit import JITFunction

from translator.rewrite.configuration import Configuration, Key, any_of, common_keys, words_of
from translator.rewrite.parameters_read import fixed_parameters
from translator.source.moved_lines import file_line
from translator.layout.size_range import SizeRange

_UNTRANSLATED = "was in no translated launch"
_LAYOUT = re.compile(r"\bgl\.(?:amd\.)?\w*Layout(?:\.\w+)?\(")
# Layouts that fit one shape only.
_SHAPED = re.compile(
    r"\bgl\.(?:DistributedLinearLayout|DotOperandLayout|amd\.AMD(?:MFMA|WMMA)Layout|PaddedSharedLayout|SharedLinearLayout)(?:\.\w+)?\("
)
# Layouts that fit one element type only.
_MATRIX = re.compile(r"\bgl\.(?:DotOperandLayout|amd\.AMD(?:MFMA|WMMA)Layout)\(")
# Shapes that were written out as numbers.
_LITERAL_SHAPE = re.compile(
    r"\bgl\.(?:zeros|full|reshape|allocate_shared_memory)\([^()]*\[(?:[^][]*, )?\d+(?:, [^][]*)?\]"
)
# Calls whose arguments give shapes.
_SHAPE_CALLS = frozenset(
    "arange zeros full reshape view broadcast_to expand_dims make_tensor_descriptor make_block_ptr ones zeros_like rand"
    " randint randn".split()
)


def untranslated(fn: JITFunction, node: ast.AST, condition: str) -> str:
    """The statement that stands for code which no launch reached, under a compile-time condition."""
    line = file_line(fn, node.lineno)
    where = f"{os.path.basename(fn.file_name or '')}:{line}"
    what = " ".join(condition.split()) or "this code"
    return f"gl.static_assert(False, {quoted(f'{fn.__name__}: `{what}` {_UNTRANSLATED} ({where})')})"


def negated(condition: str) -> str:
    """The opposite of a condition, as source text."""
    if condition.startswith("not ") and condition[4:].isidentifier():
        return condition[4:]
    return f"not {condition}" if condition.isidentifier() else f"not ({condition})"


def is_untranslated(node: ast.AST) -> bool:
    """Whether the statement or expression is what `untranslated` wrote."""
    call = node.value if isinstance(node, ast.Expr) else node
    return (
        isinstance(call, ast.Call)
        and ast.unparse(call.func) == "gl.static_assert"
        and len(call.args) == 2
        and isinstance(call.args[1], ast.Constant)
        and _UNTRANSLATED in str(call.args[1].value)
    )


def quoted(text: str) -> str:
    """A string literal in double quotes."""
    return json.dumps(text, ensure_ascii=False)


@dataclass(frozen=True)
class Needs:
    """Which facts about a launch the text of a kernel is tied to."""

    num_warps: bool
    shapes: frozenset[str]  # constexpr parameters on which tensor shapes depend
    elements: bool  # element types of all pointers
    stored: frozenset[str] = frozenset()  # pointers whose element type a store relies on
    fixed: frozenset[str] = frozenset()  # constexpr parameters whose values stand in the text without their names

    def wants(self, key: Key) -> bool:
        if key.kind in ("num_warps", "num_ctas"):
            return self.num_warps
        if key.kind == "constexpr":
            return key.name in self.shapes or key.name in self.fixed
        return key.kind in ("element", "dtype") and (self.elements or key.name in self.stored)


def needs(fn: JITFunction, texts: Sequence[str], read: Set[str] = frozenset()) -> Needs:
    """What a translated kernel and its helpers, given as text in this order, are tied to.

    read: the parameters that the source depends on.
    """
    layouts = any(_LAYOUT.search(text) for text in texts)
    shaped = any(_SHAPED.search(text) or _LITERAL_SHAPE.search(text) for text in texts)
    matrix = any(_MATRIX.search(text) for text in texts)
    stored = stored_pointers(texts[0])
    # What a helper stores to is not looked into: then the types of all pointers count.
    elements = matrix or any(stored_pointers(text) for text in texts[1:])
    shapes = shape_parameters(fn) if shaped else frozenset()
    return Needs(layouts, shapes, elements, stored, fixed_parameters(set(read), texts[0]))


@functools.lru_cache(maxsize=1024)
def stored_pointers(text: str) -> frozenset[str]:
    """The names behind the pointers of buffer stores and atomics whose value is not cast to the pointer's own type."""
    tree = ast.parse(text).body[0]
    sources = _sources(tree)
    wanted: set[str] = set()
    for node in ast.walk(tree):
        name = node.func.attr if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) else ""
        if name == "buffer_store" and not _is_cast(node.args[0]):  # type: ignore[attr-defined]
            wanted |= _names(node.args[1])  # type: ignore[attr-defined]
        elif name.startswith("buffer_atomic"):
            wanted |= _names(node.args[0])  # type: ignore[attr-defined]
    return frozenset(_reached(wanted, sources))


def _is_cast(value: ast.expr) -> bool:
    """`x.to(ptr.dtype.element_ty)`, perhaps converted to another layout."""
    if isinstance(value, ast.Call) and isinstance(value.func, ast.Attribute):
        if value.func.attr == "convert_layout":
            return _is_cast(value.args[0])
        return value.func.attr == "to" and ast.unparse(value.args[0]).endswith(".dtype.element_ty")
    return False


def _sources(tree: ast.AST) -> dict[str, set[str]]:
    """The names in what is assigned to each name."""
    out: dict[str, set[str]] = {}
    for node in ast.walk(tree):
        targets = (
            node.targets if isinstance(node, ast.Assign) else [node.target] if isinstance(node, ast.AnnAssign) else []
        )
        for target in targets:
            if isinstance(target, ast.Name) and getattr(node, "value", None) is not None:
                out.setdefault(target.id, set()).update(_names(node.value))  # type: ignore[attr-defined]
    return out


def _reached(names: set[str], sources: dict[str, set[str]]) -> set[str]:
    """The names, and all that they are made of."""
    todo, found = set(names), set()
    while todo:
        name = todo.pop()
        if name not in found:
            found.add(name)
            todo |= sources.get(name, set())
    return found


def shape_parameters(fn: JITFunction, _busy: frozenset[int] = frozenset()) -> frozenset[str]:
    """The parameters of a source function on which the shapes of its tensors depend."""
    tree = ast.parse(fn.src).body[0]
    assert isinstance(tree, ast.FunctionDef)
    wanted: set[str] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Call):
            wanted |= _shape_names(fn, node, _busy | {id(fn)})
    reached = _reached(wanted, _sources(tree))
    return frozenset(p.name for p in fn.params if p.name in reached)


def _shape_names(fn: JITFunction, call: ast.Call, busy: frozenset[int]) -> set[str]:
    """The names in those arguments of a call that decide shapes."""
    name = call.func.attr if isinstance(call.func, ast.Attribute) else getattr(call.func, "id", "")
    arguments = [*call.args, *(k.value for k in call.keywords)]
    if name in _SHAPE_CALLS and isinstance(call.func, ast.Attribute):
        return set().union(*(_names(a) for a in arguments)) if arguments else set()
    helper = fn.__globals__.get(name)
    if not isinstance(helper, JITFunction) or id(helper) in busy or helper.__module__.startswith("triton."):
        return set()
    shapes = shape_parameters(helper, busy)
    bound = dict(zip((p.name for p in helper.params), call.args)) | {k.arg: k.value for k in call.keywords if k.arg}
    return set().union(*(_names(value) for parameter, value in bound.items() if parameter in shapes))


def _names(node: ast.AST) -> set[str]:
    return {n.id for n in ast.walk(node) if isinstance(n, ast.Name)}


def within(kernel: str, ranges: Sequence[SizeRange]) -> list[str]:
    """The statement that refuses sizes outside the ranges that layouts were tried for."""
    if not ranges:
        return []
    tests = [f"{size.least} <= {_size(size.name)} and {_size(size.name)} <= {size.most}" for size in ranges]
    message = f"{kernel} is translated for {', '.join(map(str, ranges))}"
    return [f"gl.static_assert({' and '.join(tests)}, {quoted(message)})"]


def _size(name: str) -> str:
    return Key("num_warps", name).expression if name == "num_warps" else name


def assertions(
    kernel: str, needed: Needs, configurations: Sequence[Configuration], elsewhere: Sequence[Key] = ()
) -> list[str]:
    """Statements that refuse every configuration but the given ones, naming what they assume.

    elsewhere: the keys that are checked in another place.
    """
    keys = [key for key in common_keys(configurations) if needed.wants(key) and key not in elsewhere]
    rows = list(dict.fromkeys(tuple(c[key] for key in keys) for c in configurations))
    fixed = [i for i in range(len(keys)) if len({repr(row[i]) for row in rows}) == 1]
    out = []
    for kinds in (("num_warps", "num_ctas"), ("constexpr",), ("element", "dtype")):
        chosen = [i for i in fixed if keys[i].kind in kinds]
        if chosen:
            out.append(_assertion(kernel, [keys[i] for i in chosen], [tuple(rows[0][i] for i in chosen)]))
    varying = [key for i, key in enumerate(keys) if i not in fixed]
    alike, varying = pointers_alike(varying, elsewhere, configurations)
    if varying:
        rows = list(dict.fromkeys(tuple(c[key] for key in varying) for c in configurations))
        out.append(_assertion(kernel, varying, rows))
    return out + [_same_type(kernel, names) for names in alike]


def pointers_alike(
    keys: Sequence[Key], elsewhere: Sequence[Key], configurations: Sequence[Configuration]
) -> tuple[list[list[str]], list[Key]]:
    """Pointers that always have one type among them, and the keys without all but the first of each such group.

    A pointer whose type is checked elsewhere comes first in its group, and then none of it is left.
    """
    groups: dict[tuple, list[Key]] = {}
    for key in (*elsewhere, *keys):
        if key.kind == "element" and all(key in c for c in configurations):
            groups.setdefault(tuple(c[key] for c in configurations), []).append(key)
    groups = {column: group for column, group in groups.items() if len(group) > 1 and set(group) & set(keys)}
    implied = {key for group in groups.values() for key in group[1:]}
    return [[key.name for key in group] for group in groups.values()], [key for key in keys if key not in implied]


def _same_type(kernel: str, pointers: Sequence[str]) -> str:
    first, *others = pointers
    message = f"{kernel} is translated for {', '.join(pointers)} of one type"
    condition = " and ".join(f"{name}.dtype.element_ty == {first}.dtype.element_ty" for name in others)
    return f"gl.static_assert({condition}, {quoted(message)})"


def _assertion(kernel: str, keys: Sequence[Key], rows: Sequence[tuple]) -> str:
    return f"gl.static_assert({any_of(keys, rows)}, {quoted(translated_for(kernel, keys, rows))})"


def translated_for(kernel: str, keys: Sequence[Key], rows: Sequence[tuple]) -> str:
    """The message for a launch outside the given configurations."""
    return f"{kernel} is translated for {' or '.join(words_of(keys, row) for row in rows)}"
