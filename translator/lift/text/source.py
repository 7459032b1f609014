"""The tree of a lifted kernel as Triton source."""

from __future__ import annotations

import keyword
from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from gluonize.lift.machine.functions import Function
from gluonize.lift.machine.machine import NotLifted
from gluonize.lift.machine.spelled import (
    ATOM,
    CALL,
    bound,
    dtype_text,
    expr_text,
    is_scalar_like,
    kind_text,
    node_text,
    shape_text,
    unspread,
)
from gluonize.lift.text.helpers import Helper, helper_of
from gluonize.lift.text.index import Index, index_of
from gluonize.lift.text.reach import exprs_of, exprs_under, folds_of, inputs, roots, under
from gluonize.lift.text.scaled import widened_product
from gluonize.lift.values.order import LOADS
from gluonize.lift.values.scalars import NAMES, Expr, atoms_of
from gluonize.lift.values.tensors import Node
from gluonize.lift.values.tree import BranchText, Fold, LoopText, StoreText, Text
from gluonize.rules.architecture import Target

# Lines of a lifted kernel's text that stand at one indentation, and what is known by name in them.


@dataclass(eq=False)
class Block:
    """Lines of one indentation. variables: those that exist in it; guarded: whether a branch decides that it runs."""

    outer: "Block | None" = None
    variables: frozenset[Expr] = frozenset()
    guarded: bool = False
    lines: list[str] = field(default_factory=list)
    names: dict[object, str] = field(default_factory=dict)
    indices: dict[Expr, Index] = field(default_factory=dict)

    def known(self, key: object) -> str | None:
        block: Block | None = self
        while block is not None:
            if key in block.names:
                return block.names[key]
            block = block.outer
        return None

    def index(self, variable: Expr) -> Index:
        block: Block | None = self
        while block is not None:
            if variable in block.indices:
                return block.indices[variable]
            block = block.outer
        raise AssertionError(f"{variable} belongs to no loop")


ALWAYS_NAMED = (
    "make_descriptor",
    "tt.load",
    "descriptor_load",
    "descriptor_gather",
    "dot",
    "dot_scaled",
    "fold",
    "tt.reduce",
    "tt.scan",
    "split",
    "half",
    "part",
)
TAKEN = frozenset(keyword.kwlist) | {"tl", "triton", "range", "float", "min", "max"}


class Emitter:
    """Writes the body of the kernel; parameters: names that are taken. helpers: the functions that it calls, by what they compute; wanted: what it is
    written for, where that is known."""

    def __init__(self, parameters: Sequence[str], prefix: str = "kernel", wanted: Target | None = None):
        self.taken, self.prefix, self.wanted = set(parameters) | TAKEN, prefix, wanted
        self.helpers: dict[str, Helper] = {}
        self.uses: dict[int, int] = {}
        self.frees: dict[int, frozenset[Expr]] = {}
        self.folds: list[Node] = []
        self.halves: dict[tuple, list[Node]] = {}
        self.pairs: dict[int, list[Node]] = {}

    def body(self, tree: list[Text]) -> list[str]:
        """The lines, unindented."""
        self._count(tree)
        block = Block()
        self._level(tree, block)
        return block.lines

    # --- statements

    def _level(self, tree: list[Text], block: Block) -> None:
        outer, self.folds = self.folds, folds_of(tree)
        for text in tree:
            if isinstance(text, StoreText):
                self._store(text, block)
            elif isinstance(text, BranchText):
                self._branch(text, block)
            else:
                self._loop(text, block)
        self.folds = outer

    def _loop(self, loop: LoopText, block: Block) -> None:
        index, inner = self._open(loop, exprs_under(loop.body), block)
        self._level(loop.body, inner)
        self._close(index.header(lambda e: self.expr(e, block)[0]), inner, block)

    def _open(self, loop: LoopText | Fold, exprs: list[Expr], block: Block) -> tuple[Index, Block]:
        index = index_of(loop, exprs, self.fresh(loop.name or "i"))
        inner = Block(block, block.variables | {loop.variable, index.atom})
        inner.indices[loop.variable] = index
        return index, inner

    @staticmethod
    def _close(header: str, inner: Block, block: Block) -> None:
        block.lines.append(header)
        block.lines += ["    " + line for line in inner.lines or ["pass"]]

    def _branch(self, branch: BranchText, block: Block) -> None:
        condition = self.expr(branch.condition, block)
        inner = Block(block, block.variables, guarded=True)
        self._level(branch.body, inner)
        self._close(
            f"if {'not ' if branch.taken else ''}{bound(condition, 0 if not branch.taken else CALL)}:", inner, block
        )

    def _store(self, store: StoreText, block: Block) -> None:
        masked = store.kind in ("store", "atomic") and len(store.operands) > 2 and store.operands[2] is not None
        given = (*store.operands[:2], unspread(store.operands[2])) if masked else store.operands  # type: ignore[arg-type]
        operands = [None if x is None else self.operand(x, block)[0] for x in given]
        if store.kind == "store":
            mask = f", mask={operands[2]}" if len(operands) > 2 and operands[2] else ""
            block.lines.append(f"tl.store({operands[0]}, {self._stored(store, block)}{mask})")
        elif store.kind == "atomic":
            how, semantics, scope = store.attrs
            mask = f", mask={operands[2]}" if masked else ""
            told = f', sem="{semantics}", scope="{scope}"'
            block.lines.append(f"tl.atomic_{how}({operands[0]}, {operands[1]}{mask}{told})")
        elif store.kind == "tile":
            block.lines.append(f"{operands[0]}.store([{', '.join(operands[1:-1])}], {operands[-1]})")
        elif store.kind == "scatter":
            block.lines.append(f"{operands[0]}.scatter({operands[3]}, {operands[1]}, {operands[2]})")
        elif store.kind == "reduce":
            how = store.attrs[0]
            if how not in ("add", "min", "max", "and", "or", "xor"):
                raise NotLifted(f"a reduction of a tile in memory by {how}")
            block.lines.append(f"{operands[0]}.atomic_{how}([{', '.join(operands[1:-1])}], {operands[-1]})")
        else:
            raise NotLifted(f"a store of kind {store.kind}")

    def _stored(self, store: StoreText, block: Block) -> str:
        value = store.operands[1]
        assert value is not None
        return self.operand(value, block)[0]

    # --- values

    def operand(self, x: Node | Expr, block: Block) -> tuple[str, int]:
        return self.node(x, block) if isinstance(x, Node) else self.expr(x, block)

    def expr(self, expr: Expr, block: Block) -> tuple[str, int]:
        """An integer: the author's name of it, written where it is first needed, or its text."""
        if expr[0] == "var":
            return (expr[1], ATOM) if isinstance(expr[1], str) else self.expr(block.index(expr).told(expr, expr), block)
        variables = [x for x in atoms_of(expr) if x[0] == "var"]
        for variable in variables:
            if not isinstance(variable[1], str):
                return self.expr(block.index(variable).told(expr, variable), block)
        if (known := block.known(expr)) is not None:
            return known, ATOM
        name = NAMES.get(expr, "")
        if expr[0] in ("pid", "np") and not any(word in name for word in ("pid", "prog", "num", "id")):
            name = f"pid_{expr[1]}" if expr[0] == "pid" else "programs"  # the name is that of what it is a part of
        if name and not expr.is_const and expr[0] != "arg":
            home = self._home(block, frozenset(variables), False)
            text = expr_text(expr, lambda e: self.expr(e, home))
            name = self.fresh(name)
            home.lines.append(f"{name} = {text[0]}")
            home.names[expr] = name
            return name, ATOM
        return expr_text(expr, lambda e: self.expr(e, block))

    def node(self, node: Node, block: Block) -> tuple[str, int]:
        if node.op == "argument":
            return node.name, ATOM
        if node.op == "carried":
            known = block.known(("carried", *node.attrs))
            assert known is not None, "a sum outside of its loop"
            return known, ATOM
        if node.op == "held":
            return self._held(node, block)
        if (known := block.known(id(node))) is not None:
            return known, ATOM
        cheap = is_scalar_like(node) or node.op in ("tt.make_range", "tt.broadcast")
        if node.op not in ALWAYS_NAMED and (cheap or (not node.name and self.uses.get(id(node), 1) < 2)):
            return node_text(node, lambda x: self.operand(x, block))
        home = self._home(block, self.free(node), node.op in LOADS)
        if node.op == "fold":
            return self._sum(node, home)
        if node.op == "part":
            return self.node(self.halved(node), block)
        if node.op in ("split", "half"):
            return self._half(node, home)
        if node.op in ("tt.reduce", "tt.scan") and isinstance(node.attrs[0], Function):
            return self._combined(node, home)
        text = (
            self._dot(node, home)
            if node.op in ("dot", "dot_scaled")
            else node_text(node, lambda x: self.operand(x, home))[0]
        )
        plain = "mask" if node.type.element == "i1" else "ptrs" if node.type.kind == "ptr" else "x"
        return self._assign(node, node.name or plain, text, home)

    def _assign(self, node: Node, name: str, text: str, home: Block) -> tuple[str, int]:
        name = self.fresh(name)
        home.lines.append(f"{name} = {text}")
        home.names[id(node)] = name
        return name, ATOM

    def _half(self, node: Node, home: Block) -> tuple[str, int]:
        """Both halves that `tl.split` gives; of a `half`, those of its last axis but in order."""
        source = node.args[0]
        assert isinstance(source, Node)
        text = self.operand(source, home)[0]
        if node.op == "half":
            shape = source.type.shape or ()
            halved = (*shape[:-1], 2, shape[-1] // 2)
            order = (*range(len(shape) - 1), len(shape), len(shape) - 1)
            text = f"tl.permute(tl.reshape({text}, {shape_text(halved)}), {shape_text(order)})"
        names = [self.fresh(name) for name in ("left", "right")]
        home.lines.append(f"{', '.join(names)} = tl.split({text})")
        for other in [node, *self.halves.get((node.op, id(source)), [])]:
            home.names[id(other)] = names[other.attrs[0]]
        return names[node.attrs[0]], ATOM

    def _combined(self, node: Node, home: Block) -> tuple[str, int]:
        """All tensors that a reduction or scan by a function gives."""
        function, axis, reverse, position = node.attrs
        key = (node.op, function, axis, reverse, *map(id, node.args))
        if (known := home.known((*key, position))) is None:
            helper = self.helpers.get(function.key)
            if helper is None:
                helper = self.helpers[function.key] = helper_of(function, f"{self.prefix}_combine_{len(self.helpers)}")
            given = ", ".join(self.operand(x, home)[0] for x in node.args)
            names = [self.fresh(f"{node.op[3:]}d_{i}") for i in range(len(node.args))]
            how = "tl.reduce" if node.op == "tt.reduce" else "tl.associative_scan"
            several = f"({given})" if len(names) > 1 else given
            text = f"{how}({several}, {axis}, {helper.name}{', reverse=True' if reverse else ''})"
            home.lines.append(f"{', '.join(names)} = {text}")
            home.names |= {(*key, i): name for i, name in enumerate(names)}
            known = names[position]
        return known, ATOM

    def halved(self, node: Node) -> Node:
        """A part of a tensor's last axis as halves of halves. Raises: NotLifted for another part."""
        whole, (box,) = node.args[0], node.attrs
        assert isinstance(whole, Node)
        shape = whole.type.shape or ()
        low, high = box[-1]
        if (
            any((a, b) != (0, n) for (a, b), n in zip(box[:-1], shape))
            or shape[-1] % (high - low)
            or low % (high - low)
        ):
            raise NotLifted("a part of a tensor that is not one of equal parts of its columns")
        while whole.type.shape[-1] > high - low:
            shape = whole.type.shape
            half = shape[-1] // 2
            which = int(low >= half)
            low, high = low - which * half, high - which * half
            pair = self.pairs.get(id(whole))
            if pair is None:
                kind = replace(whole.type, shape=(*shape[:-1], half))
                pair = self.pairs[id(whole)] = [Node("half", (h,), (whole,), kind) for h in (0, 1)]
                self.halves[("half", id(whole))] = pair
            whole = pair[which]
        return whole

    def _dot(self, node: Node, block: Block, carried: str = "") -> str:
        scaled = node.op == "dot_scaled"
        count = 4 if scaled else 2
        given = [self.operand(x, block)[0] for x in node.args[:count]]
        acc = carried or (self.operand(node.args[-1], block)[0] if node.attrs[0] else "")
        if scaled and (wide := widened_product(node, given, acc, self.wanted, self._own_helper)) is not None:
            return wide
        if scaled:
            formats = [f'"{x}"' for x in node.attrs[2:4]]
            text = f"tl.dot_scaled({given[0]}, {given[2]}, {formats[0]}, {given[1]}, {given[3]}, {formats[1]}"
            return text + (f", {acc})" if acc else ")")
        first = node.args[0]
        assert isinstance(first, Node)
        exact = ', input_precision="ieee"' if first.type.element == "f32" else ""
        kind = "" if node.type.element == "f32" or acc else f", out_dtype={dtype_text(node.type.element)}"
        return f"tl.dot({given[0]}, {given[1]}{', ' + acc if acc else ''}{exact}{kind})"

    def _own_helper(self, template: str) -> Helper:
        name = f"{self.prefix}_widened"
        return self.helpers.setdefault(template, Helper(name, template.replace("NAME", name)))

    def _sum(self, node: Node, home: Block) -> tuple[str, int]:
        """The loop of a sum, together with others of the same length that do not need it."""
        fold: Fold = node.attrs[0]
        beside = [n for n in self.folds if n is not node and home.known(id(n)) is None and self._beside(node, n, home)]
        names = []
        for n in (node, *beside):
            base = n.attrs[0].base
            name = self.fresh(n.attrs[0].products[0].name or n.name or "acc")
            home.lines.append(f"{name} = {self.operand(base, home)[0] if base is not None else kind_text(n.type)}")
            names.append(name)
        exprs = [e for n in (node, *beside) for p in n.attrs[0].products for e in exprs_of(p)]
        index, inner = self._open(fold, exprs, home)
        for n, name in zip((node, *beside), names):
            inner.indices[n.attrs[0].variable] = index
            inner.variables |= {n.attrs[0].variable}
            for product in n.attrs[0].products:
                inner.lines.append(f"{name} = {self._dot(product, inner, name)}")
        self._close(index.header(lambda e: self.expr(e, home)[0]), inner, home)
        for n, name in zip((node, *beside), names):
            home.names[id(n)] = name
        return names[0], ATOM

    def _held(self, node: Node, block: Block) -> tuple[str, int]:
        """A loop that carries tensors: all of them get their next values at its end."""
        held, position = node.attrs
        if (known := block.known((id(held), position))) is not None:
            return known, ATOM
        home = self._home(block, self.free(node), False)
        names = {}
        for k, first in held.first.items():
            text = self.operand(first, home)[0]
            names[k] = self.fresh(held.next[k].name or node.name or "x")
            home.lines.append(f"{names[k]} = {text}")
        index, inner = self._open(held, [e for x in held.next.values() for e in exprs_of(x)], home)
        inner.names |= {("carried", held.line, k): name for k, name in names.items()}
        later = {k: self.operand(x, inner)[0] for k, x in held.next.items()}
        if len(later) > 1:
            for k, text in later.items():
                later[k] = self.fresh(f"next_{names[k]}")
                inner.lines.append(f"{later[k]} = {text}")
        inner.lines += [f"{names[k]} = {text}" for k, text in later.items()]
        self._close(index.header(lambda e: self.expr(e, home)[0]), inner, home)
        home.names |= {(id(held), k): name for k, name in names.items()}
        return names[position], ATOM

    def _beside(self, node: Node, other: Node, home: Block) -> bool:
        one, two = node.attrs[0], other.attrs[0]
        same = (one.trips, one.low, one.step) == (two.trips, two.low, two.step)
        return (
            same
            and self._home(home, self.free(other), False) is home
            and not any(n is node or n.op == "fold" for n in under(other)[1:])
        )

    # --- where and how things are named

    def free(self, node: Node) -> frozenset[Expr]:
        """The loop variables that it needs."""
        key = id(node)
        if key not in self.frees:
            found: frozenset[Expr] = frozenset()
            for x in node.args:
                found |= self.free(x) if isinstance(x, Node) else frozenset(a for a in atoms_of(x) if a[0] == "var")
            if node.op == "held":
                held = node.attrs[0]
                for part in held.parts:
                    found |= self.free(part)
                for e in (held.trips, held.low, held.step):
                    found |= frozenset(a for a in atoms_of(e) if a[0] == "var")
                found -= {held.variable}
            if node.op == "fold":
                fold: Fold = node.attrs[0]
                for product in (*fold.products, *([fold.base] if fold.base is not None else [])):
                    found |= self.free(product)
                found -= {fold.variable}
                for e in (fold.trips, fold.low, fold.step):
                    found |= frozenset(a for a in atoms_of(e) if a[0] == "var")
            self.frees[key] = found
        return self.frees[key]

    def _home(self, block: Block, needed: frozenset[Expr], guarded: bool) -> Block:
        """The outermost block in which what is needed exists; a guarded load stays behind its branch."""
        home = block
        while home.outer is not None and needed <= home.outer.variables and not home.guarded:
            home = home.outer
        return home

    def fresh(self, name: str) -> str:
        """`name`, or the next one like it that is free."""
        chosen, number = name, 1
        while chosen in self.taken:
            chosen, number = f"{name}_{number}", number + 1
        self.taken.add(chosen)
        return chosen

    def _count(self, tree: list[Text]) -> None:
        seen: set[int] = set()
        for root in roots(tree):
            self.uses[id(root)] = self.uses.get(id(root), 0) + 1
            for node in under(root):
                if id(node) in seen:
                    continue
                seen.add(id(node))
                if node.op in ("split", "half"):
                    self.halves.setdefault((node.op, id(node.args[0])), []).append(node)
                for x in inputs(node):
                    self.uses[id(x)] = self.uses.get(id(x), 0) + 1
