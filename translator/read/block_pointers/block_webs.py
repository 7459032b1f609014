"""The functions that a kernel calls, and the block pointers in each: what they are made of, and what must be kept of them.

A block pointer is a base, and of each dimension an offset, a size and a stride. Of these a function keeps what its accesses ask for, in
variables: the tensor of pointers, the offsets of dimensions that are checked, and sizes and strides that are not what they were.
"""

from __future__ import annotations

import ast
import functools
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from gluonize.read.block_pointers.builtin_calls import (
    arguments_of,
    given,
    helper_of,
    is_access,
    is_made,
    name_of,
    refuse,
)
from gluonize.read.block_pointers.normal_form import hoist, normalize
from gluonize.read.block_pointers.offset_signs import Signs
from gluonize.read.block_pointers.reaching import Definition, Flow, read_flow
from gluonize.read.text.parsed import parsed_text
from gluonize.triton_api.jit_functions import JITFunction

Part = tuple[str, Any]  # ("ptrs", None), ("offs" | "size" | "stride", dimension), ("mask", checked dimensions)
PTRS: Part = ("ptrs", None)


@dataclass(eq=False)
class Web:
    """The definitions of one name that meet in its uses. needs: the parts that are kept in variables or known as text; dimensions: their
    names; of: the function."""

    of: "Function"
    name: str
    definitions: list[Definition]
    uses: list["Use"] = field(default_factory=list)
    rank: int = 0
    needs: set[Part] = field(default_factory=set)
    dimensions: tuple[str, ...] = ()
    nonnegative: list[bool] = field(default_factory=list)

    @property
    def makes(self) -> list[Definition]:
        return [d for d in self.definitions if d.kind == "make"]

    @property
    def pinned(self) -> bool:
        """Whether it stays where it was made, so that its masks are made there too."""
        return all(d.kind in ("make", "none") for d in self.definitions)


@dataclass(eq=False)
class Use:
    """A name of a block pointer where it is read. kind: load, store, advance, copy, argument, return, attribute or test."""

    node: ast.Name
    kind: str
    statement: ast.stmt
    call: ast.Call | None = None
    position: int | None = None


class Function:
    """One function, in normal form, and its block pointers. pointers: the parameters that are."""

    def __init__(self, fn: JITFunction, pointers: frozenset[str], constants: Mapping[str, Any]):
        self.fn, self.pointers, self.constants = fn, pointers, constants
        self.webs: list[Web] = []
        self.web_of: dict[Definition, Web] = {}
        self.calls: list[tuple[ast.Call, "Function"]] = []
        self.results: dict[int | None, list[Web]] = {}

    def read(self, tree: ast.FunctionDef, flow: Flow) -> None:
        self.tree, self.flow = tree, flow
        self.parents = {child: node for node in ast.walk(tree) for child in ast.iter_child_nodes(node)}
        self.signs = Signs(self.fn, tree, self.constants)
        self._join()
        for node in sorted(flow.reaching, key=lambda n: (n.lineno, n.col_offset)):
            if flow.is_pointer(node):
                self._use(node)

    def _join(self) -> None:
        """The definitions in webs."""
        found = [d for d in self.flow.definitions.values() if d.kind != "other"]
        group = {d: [d] for d in found}

        def join(definitions: Collection[Definition]) -> None:
            first, *rest = [d for d in found if d in definitions]
            for d in rest:
                if group[d] is not group[first]:
                    group[first] += group[d]
                    for other in group[d]:
                        group[other] = group[first]

        for node, reaching in self.flow.reaching.items():
            if not self.flow.is_pointer(node):
                continue
            if any(d.kind == "other" for d in reaching):
                why = "another value of its name reaches this place too"
                raise refuse(
                    self.fn, node, f"`{node.id}` may be a block pointer, or something else", why, "give them two names"
                )
            join(reaching)
        for d in found:
            if same := [b for b in d.before if b.name == d.name and b.kind != "other"]:
                join([d, *same])
        for d in found:
            members = group[d]
            if d is members[0] and any(m.kind != "none" for m in members):
                members.sort(key=lambda m: (m.statement.lineno if m.statement else 0))
                web = Web(self, d.name, members)
                self.webs.append(web)
                self.web_of |= dict.fromkeys(members, web)

    def web(self, node: ast.AST) -> Web:
        """The web of a use of a name."""
        reaching = self.flow.reaching[node]  # type: ignore[index]
        return next(self.web_of[d] for d in reaching if d in self.web_of)

    def before(self, d: Definition) -> Web:
        """The web of what an advance or a copy starts from. Raises: TranslationError where that is no block pointer."""
        web = next((self.web_of[b] for b in d.before if b in self.web_of), None)
        if web is None:
            raise refuse(
                self.fn, d.value, "what is advanced is no block pointer", "it was not made by make_block_ptr here"
            )
        return web

    def _use(self, node: ast.Name) -> None:
        parent, statement = self.parents[node], self.flow.statement_of[node]
        web, use = self.web(node), None
        if isinstance(parent, ast.keyword):
            parent = self.parents[parent]
        if isinstance(parent, ast.Call):
            named = given(parent) if is_made(parent) or is_access(parent) else {}
            if is_access(parent) and named.get("pointer") is node:
                use = Use(node, name_of(parent), statement, parent)
            elif name_of(parent) == "advance" and named.get("base") is node:
                use = Use(node, "advance", statement, parent)
            elif helper_of(self.fn, parent) is not None:
                use = Use(node, "argument", statement, parent)
        elif isinstance(parent, ast.Attribute) and parent.attr in ("dtype", "type"):
            use = Use(node, "attribute", statement)
        elif (
            isinstance(parent, ast.Attribute)
            and parent.attr == "advance"
            and name_of(self.parents[parent]) == "advance"
        ):
            use = Use(node, "advance", statement, self.parents[parent])  # type: ignore[arg-type]
        elif isinstance(parent, ast.Compare) and isinstance(parent.ops[0], ast.Is | ast.IsNot):
            use = Use(node, "test", statement)
        elif isinstance(parent, ast.Assign) and parent.value is node:
            use = Use(node, "copy", statement)
        elif isinstance(statement, ast.Return):
            values = statement.value.elts if isinstance(statement.value, ast.Tuple) else None
            if values is None or node in values:
                position = None if values is None else values.index(node)
                use = Use(node, "return", statement, position=position)
                self.results.setdefault(position, []).append(web)
        if use is None:
            text = ast.unparse(parent)
            why = f"in `{text}` it is neither loaded, stored, advanced, assigned, returned nor handed to a function of the file"
            raise refuse(self.fn, node, f"the block pointer `{node.id}` is used in another way", why)
        web.uses.append(use)


class Functions:
    """All functions that one kernel calls, itself included, and what each keeps of its block pointers."""

    def __init__(self, kernel: JITFunction, constants: Mapping[str, Any]):
        self.constants, self.kernel = constants, kernel
        self.known: dict[int, Function] = {}
        self.known_in_order: list[Function] = []
        self._function(kernel, frozenset())
        for caller in self.known_in_order:
            for call, callee in caller.calls:
                callee.signs.calls.append((caller.signs, call))

    def _function(self, fn: JITFunction, pointers: frozenset[str]) -> Function:
        if id(fn) in self.known:
            return self.known[id(fn)]
        found = Function(fn, pointers, self.constants if fn is self.kernel else {})
        self.known[id(fn)] = found
        if pointers or has_block_pointers(fn):
            normalize(fn, pointers)
        while True:
            found.calls.clear()
            tree = ast.parse(fn.src).body[0]
            assert isinstance(tree, ast.FunctionDef)
            try:
                flow = read_flow(tree, pointers, lambda flow, s, call: self._results(found, flow, s, call))
            except _Nested as nested:
                hoist(fn, nested.statement, nested.call, f"{name_of(nested.call).strip('_')}_block_ptr")
                continue
            break
        found.read(tree, flow)
        self.known_in_order.append(found)
        return found

    def _results(self, caller: Function, flow: Flow, s: ast.stmt, call: ast.Call) -> Collection[int | None]:
        """Which results of a call are block pointers."""
        helper = helper_of(caller.fn, call)
        if helper is None:
            return ()
        handed = frozenset(name for name, node in arguments_of(helper, call) if flow.is_pointer(node))
        callee = self._function(helper, handed)
        nones = {
            name for name, node in arguments_of(helper, call) if isinstance(node, ast.Constant) and node.value is None
        }
        if handed - callee.pointers or callee.pointers - handed - nones:
            why = f"{helper.__name__} is given block pointers here and something else in another call"
            raise refuse(
                caller.fn, call, f"{helper.__name__} is called with and without block pointers", why, "write it twice"
            )
        if all(call is not known for known, _ in caller.calls):
            caller.calls.append((call, callee))
        assigned = isinstance(s, ast.Assign) and s.value is call
        returned = isinstance(s, ast.Return) and s.value is call
        if callee.results and not assigned:
            if returned or None not in callee.results:
                why = "what a function returns is taken apart into its parts, which need names here"
                raise refuse(
                    caller.fn, call, "block pointers that a function returns have no names", why, "assign them first"
                )
            raise _Nested(s, call)
        if callee.results and None not in callee.results and isinstance(s.targets[0], ast.Name):  # type: ignore[attr-defined]
            why = "a tuple with a block pointer in it is taken apart into its parts"
            raise refuse(caller.fn, call, "a tuple of block pointers has one name", why, "give each element a name")
        return callee.results.keys()

    @property
    def webs(self) -> Iterator[Web]:
        for function in self.known_in_order:
            yield from function.webs


class _Nested(Exception):
    """A call that returns a block pointer stands within another expression."""

    def __init__(self, statement: ast.stmt, call: ast.Call):
        self.statement, self.call = statement, call


def has_block_pointers(kernel: JITFunction) -> bool:
    """Whether a kernel, or a function that it calls, makes block pointers."""
    seen: set[int] = set()
    open_ = [kernel]
    while open_:
        fn = open_.pop()
        if id(fn) in seen:
            continue
        seen.add(id(fn))
        if "make_block_ptr" in fn.src:
            return True
        open_ += [h for call in _calls(fn.src) if (h := helper_of(fn, call)) is not None]
    return False


@functools.lru_cache(
    maxsize=512
)  # Triton's own functions are called by most kernels, and a kernel is loaded for each of its launches
def _calls(text: str) -> tuple[ast.Call, ...]:
    """The calls in the text of a function, which are only looked at."""
    return tuple(n for n in ast.walk(parsed_text(text)) if isinstance(n, ast.Call))


__all__ = ["Function", "Functions", "PTRS", "Part", "Use", "Web", "has_block_pointers"]
