"""What a kernel does with each argument, and with what it loads through it: the evidence for types and values."""

from __future__ import annotations

import ast
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any, TypeGuard

from gluonize.read.launches.derive.kernel.address_calls import ADDRESS_CALLS, DESCRIPTOR_METHODS, POINTER_MAKERS
from gluonize.read.launches.derive.kernel.origins import INDEX, Flow, JitSource, Origins, expressions
from gluonize.triton_api.language import tl

Guards = tuple[tuple[ast.expr, bool], ...]
# Functions of floating-point numbers (`tl.math`, `libdevice`); their operands are no integers.
_FLOAT_CALLS = frozenset(
    "exp exp2 log log2 log10 log1p expm1 sqrt rsqrt sqrt_rn sigmoid sin cos tan tanh erf softmax fma div_rn fdiv fast_expf "
    "floor ceil round rint trunc pow isnan isinf finitef tanh atan asin acos sinh cosh fast_dividef div_rz".split()
)
# Arguments of builtins that are texts, with one that every target takes.
_TEXT_OPTIONS = {
    "eviction_policy": "", "cache_modifier": "", "padding_option": "", "input_precision": "ieee", "sem": "relaxed", "scope": "gpu",
}  # fmt: skip
_BITS = (ast.BitAnd, ast.BitOr, ast.BitXor, ast.LShift, ast.RShift)


@dataclass
class Use:
    """How often each kind of use occurs, and what goes with it.

    `kinds` counts: offset, stride, bound, tile, integer, bits, shift, masked, condition, float, dot, dtype, called, is-none, tested,
    static, scale and format:TEXT (of a scaled product), with-loads (added to or multiplied with what is loaded), cast:TYPE (`to(...)` of the plain value), stored:NAME (copied to that pointer).
    `texts` and `numbers` are what it is compared with, `equal` the integers that it may be equal to, `options` the texts that Triton takes where it is passed on,
    `reach` how many bits each operation on bits reaches: one more than it shifts by, the length of a mask; None of what is no constant.
    """

    kinds: Counter = field(default_factory=Counter)
    texts: list[str] = field(default_factory=list)
    numbers: list[Any] = field(default_factory=list)
    options: list[str] = field(default_factory=list)
    equal: list[int] = field(default_factory=list)
    reach: list[int | None] = field(default_factory=list)

    def any(self, *kinds: str) -> bool:
        return any(self.kinds[kind] for kind in kinds)


@dataclass
class Uses:
    """`arguments`: uses of each argument itself; `loads`: of what is loaded through it; `stores`: how what is stored there was
    made (`cast` to its own element type, `plain` otherwise, `computed` from what was converted); `guards`: the tests under which each pointer is accessed.
    """

    arguments: dict[str, Use]
    loads: dict[str, Use]
    stores: dict[str, Counter]
    guards: dict[str, list[Guards]]
    pointers: frozenset[str]
    descriptors: frozenset[str]


def read_uses(flow: Flow) -> Uses:
    """The uses of every argument of the kernel, those inside helpers included."""
    names = flow.kernel.parameters
    uses = Uses(
        {n: Use() for n in names}, {n: Use() for n in names}, {n: Counter() for n in names}, {n: [] for n in names},
        frozenset(flow.pointers), frozenset(_descriptors(flow)),
    )  # fmt: skip
    reader = _Reader(flow, uses)
    for function, node, guards in expressions(flow):
        reader.node(function, node, guards)
    return uses


def _descriptors(flow: Flow) -> set[str]:
    """Arguments whose own methods load and store: tensor descriptors made by the host."""
    out = set()
    for function, node, _ in expressions(flow):
        if isinstance(node, ast.Call) and flow.is_method(function, node) and isinstance(node.func, ast.Attribute):
            if node.func.attr in DESCRIPTOR_METHODS:
                owner = node.func.value
                direct = isinstance(owner, ast.Name) and not _made_here(flow, owner)
                out |= {o.name for o in flow.of(owner).bases if not o.loaded} if direct else set()
    return out


def _made_here(flow: Flow, owner: ast.Name) -> bool:
    for _, node, _ in expressions(flow):
        if isinstance(node, ast.Assign) and any(isinstance(t, ast.Name) and t.id == owner.id for t in node.targets):
            return True
    return False


class _Reader:
    def __init__(self, flow: Flow, uses: Uses):
        self.flow, self.uses = flow, uses

    def mark(self, origins: Origins, kind: str, plain: bool = True) -> None:
        for use in self.used(origins, plain):
            use.kinds[kind] += 1

    def used(self, origins: Origins, plain: bool = True) -> Iterable[Use]:
        for origin in origins:
            table = self.uses.loads if origin.loaded else self.uses.arguments
            if origin.name in table and (origin.plain or not plain):
                yield table[origin.name]

    def origins(self, node: ast.AST | None) -> Origins:
        return self.flow.of(node).origins

    def node(self, function: JitSource, node: ast.AST, guards: Guards) -> None:
        method = getattr(self, "_" + type(node).__name__, None)
        if method is not None:
            method(function, node, guards)

    def _AugAssign(self, function: JitSource, node: ast.AugAssign, guards: Guards) -> None:
        self.operation(function, node.op, node.target, node.value)

    def _BinOp(self, function: JitSource, node: ast.BinOp, guards: Guards) -> None:
        self.operation(function, node.op, node.left, node.right)

    def operation(self, function: JitSource, op: ast.operator, left: ast.expr, right: ast.expr) -> None:
        a, b = self.flow.of(left), self.flow.of(right)
        if isinstance(op, (ast.Add, ast.Sub)):
            for side, other, node in ((a, b, right), (b, a, left)):
                if self.flow.is_address(side) and not self.flow.is_address(other):
                    self.mark(other.origins, "offset")
                    self.strides(node)
        if isinstance(op, (ast.FloorDiv, ast.Mod)):
            self.mark(a.origins | b.origins, "integer")
        elif isinstance(op, _BITS):
            kind = "shift" if isinstance(op, (ast.LShift, ast.RShift)) else "bits"
            truths = any(isinstance(side, (ast.Compare, ast.BoolOp)) for side in (left, right))
            self.mark(a.origins | b.origins, "condition" if kind == "bits" and truths else kind)
            masked = [(a, left, right), (b, right, left)] if isinstance(op, ast.BitAnd) else []
            for side, node, number in masked or ([(a, left, right)] if kind == "shift" else []):
                for use in self.used(side.origins):
                    use.reach.append(_reach(self.constants(function, number), kind))
                    use.kinds["masked"] += bool(masked) and not _is_packing(node)  # as it is, before any shift
        elif isinstance(op, ast.Div):
            self.mark(a.origins, "float")
        for side, other in ((a, b), (b, a)):
            if isinstance(op, (ast.Mult, ast.Add, ast.Sub)) and any(o.loaded for o in other.origins):
                self.mark(frozenset(o for o in side.origins if not o.loaded), "with-loads")
        for side, number in ((a, right), (b, left)):
            if isinstance(number, ast.Constant) and isinstance(number.value, float):
                self.mark(side.origins, "float")

    def strides(self, offset: ast.expr) -> None:
        """Arguments that an index is multiplied with."""
        for inner in ast.walk(offset):
            if isinstance(inner, ast.BinOp) and isinstance(inner.op, ast.Mult):
                for side in (inner.left, inner.right):
                    if isinstance(side, ast.Name):
                        self.mark(self.origins(side), "stride")

    def _Compare(self, function: JitSource, node: ast.Compare, guards: Guards) -> None:
        for op, one, two in zip(node.ops, [node.left, *node.comparators], node.comparators):
            self.compared(function, one, two, op)
            self.compared(function, two, one, op)
            sides = self.origins(one) | self.origins(two)
            if isinstance(op, (ast.Lt, ast.LtE, ast.Gt, ast.GtE)) and not any(origin.loaded for origin in sides):
                self.mark(sides, "bound")  # of an index, as in masks
            if INDEX in sides:
                self.mark(frozenset(origin for origin in sides if origin.loaded), "integer")

    def compared(self, function: JitSource, one: ast.expr, two: ast.expr, op: ast.cmpop) -> None:
        origins = self.origins(one)
        if isinstance(two, ast.Constant) and two.value is None:
            self.mark(origins, "is-none")
            return
        for value in self.constants(function, two):
            if isinstance(value, str):
                for use in self.used(origins):
                    use.texts += [value] if value not in use.texts else []
            elif isinstance(value, tl.dtype):
                self.mark(origins, "dtype")
            elif isinstance(value, (bool, int, float)):
                for use in self.used(origins):
                    use.numbers += [value] if value not in use.numbers else []
                    may_be = isinstance(op, (ast.Eq, ast.NotEq, ast.In, ast.NotIn)) and type(value) is int
                    use.equal += [value] if may_be and value not in use.equal else []
                self.mark(origins, "float" if isinstance(value, float) else "compared")
        if isinstance(two, ast.Attribute) and two.attr in ("dtype", "element_ty"):
            self.mark(origins, "dtype")
        if isinstance(two, ast.Call) and self.flow.callee(function, two) in ("arange", "program_id"):
            self.mark(origins, "integer")

    def constants(self, function: JitSource, node: ast.expr) -> list[Any]:
        if isinstance(node, (ast.Tuple, ast.List, ast.Set)):
            return [value for item in node.elts for value in self.constants(function, item)]
        if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub) and isinstance(node.operand, ast.Constant):
            return [-node.operand.value] if isinstance(node.operand.value, (int, float)) else []
        if isinstance(node, ast.Constant):
            return [node.value]
        value = self.flow._named(function, node)
        value = getattr(value, "value", value) if not isinstance(value, tl.dtype) else value
        return [value] if isinstance(value, (str, bool, int, float, tl.dtype)) else []

    def _If(self, function: JitSource, node: ast.If | ast.IfExp | ast.While, guards: Guards) -> None:
        self.tested(node.test)

    _IfExp = _While = _If

    def tested(self, test: ast.expr) -> None:
        if isinstance(test, ast.BoolOp):
            for value in test.values:
                self.tested(value)
        elif isinstance(test, ast.UnaryOp) and isinstance(test.op, ast.Not):
            self.tested(test.operand)
        else:
            self.mark(self.origins(test), "tested")

    def _Assert(self, function: JitSource, node: ast.Assert, guards: Guards) -> None:
        self.tested(node.test)

    def _For(self, function: JitSource, node: ast.For, guards: Guards) -> None:
        if isinstance(node.iter, ast.Call):
            kind = "static" if self.flow.callee(function, node.iter) == "static_range" else "bound"
            for bound in node.iter.args:
                self.mark(self.origins(bound), kind)

    def _Attribute(self, function: JitSource, node: ast.Attribute, guards: Guards) -> None:
        if node.attr == "element_ty":
            self.mark(self.flow.of(node.value).origins, "element")

    def _Call(self, function: JitSource, node: ast.Call, guards: Guards) -> None:
        name = self.flow.callee(function, node)
        named = {k.arg: k.value for k in node.keywords if k.arg}
        if isinstance(node.func, ast.Name):
            self.mark(self.origins(node.func), "called")
        if isinstance(node.func, ast.Name) and node.func.id in ("range",):
            return
        method = self.flow.is_method(function, node)
        operands = [*([node.func.value] if method and isinstance(node.func, ast.Attribute) else []), *node.args]
        if name in ADDRESS_CALLS or (method and name in DESCRIPTOR_METHODS):
            self.access(function, name, operands, named, guards)
        elif name == "arange":
            for bound in operands:
                self.mark(self.origins(bound), "tile", plain=False)
        elif name in ("zeros", "full", "reshape", "view", "broadcast_to"):
            shape = named.get("shape") or (operands[0] if name in ("zeros", "full") and operands else None)
            for part in [shape] if shape is not None else operands[1:]:
                for item in part.elts if isinstance(part, (ast.Tuple, ast.List)) else [part]:
                    self.mark(self.origins(item), "tile", plain=False)
        elif name in POINTER_MAKERS:
            self.block(name, operands, named)
        elif name == "dot_scaled":
            self.scaled(function, operands, named)
        elif name == "dot":
            for operand in operands[:2] + [named[k] for k in ("input", "other") if k in named]:
                self.mark(self.origins(operand), "dot")
        elif name in _FLOAT_CALLS:
            for operand in operands:
                self.mark(self.origins(operand), "float")
        elif name == "where" and operands:
            self.mark(self.origins(operands[0]), "condition")
        elif name == "cdiv":
            for operand in operands:
                self.mark(self.origins(operand), "integer")
        elif name == "inline_asm_elementwise":
            self.assembly(function, operands, named)
        elif name in ("to", "cast") and operands:
            kind = operands[1] if len(operands) > 1 else named.get("dtype")
            self.mark(self.origins(kind), "dtype")
            self.cast(function, operands[0], kind)
        for option in sorted(_TEXT_OPTIONS.keys() & named.keys()):
            for use in self.used(self.origins(named[option])):
                use.options.append(_TEXT_OPTIONS[option])
        if "dtype" in named:
            self.mark(self.origins(named["dtype"]), "dtype")
        elif name in ("zeros", "full") and len(operands) > (1 if name == "zeros" else 2):
            self.mark(self.origins(operands[-1]), "dtype")

    def scaled(self, function: JitSource, operands: list[ast.expr], named: dict[str, ast.expr]) -> None:
        """Both sides of a `dot_scaled`: an operand, its scales, and the format that it is in."""
        for side, at in (("lhs", 0), ("rhs", 3)):
            given = [named.get(side + name, operands[at + n] if at + n < len(operands) else None)
                     for n, name in enumerate(("", "_scale", "_format"))]  # fmt: skip
            operand, scale, kind = given
            self.mark(self.origins(operand), "dot")
            for text in self.constants(function, kind) if kind is not None else []:
                self.mark(self.origins(operand), f"format:{text}")
            self.mark(self.origins(scale), "scale")

    def assembly(self, function: JitSource, operands: list[ast.expr], named: dict[str, ast.expr]) -> None:
        """What assembly takes in a register of fp32 each."""
        constraints, given, pack = (
            named.get(name, operands[at] if at < len(operands) else None)
            for name, at in (("constraints", 1), ("args", 2), ("pack", 5))
        )
        text = next(iter(self.constants(function, constraints)), None) if constraints is not None else None
        single = pack is None or 1 in self.constants(function, pack)
        if not isinstance(text, str) or not isinstance(given, (ast.List, ast.Tuple)) or not single:
            return
        inputs = [part.strip() for part in text.split(",") if not part.strip().startswith("=")]
        for constraint, value in zip(inputs, given.elts):
            if constraint == "f":
                self.mark(self.origins(value), "register:fp32")

    def cast(self, function: JitSource, operand: ast.expr, kind: ast.expr | None) -> None:
        value = self.flow._named(function, kind) if kind is not None else None
        value = getattr(value, "value", value)
        text = value.name if isinstance(value, tl.dtype) else "other"
        whole = isinstance(operand, (ast.Name, ast.Call, ast.Subscript))
        if whole:
            self.mark(self.origins(operand), f"cast:{text}")

    def access(
        self, function: JitSource, name: str, operands: list[ast.expr], named: dict[str, ast.expr], guards: Guards
    ) -> None:
        address = named.get("pointer") or (operands[0] if operands else None)
        bases = [o.name for o in self.flow.of(address).bases if not o.loaded and o.name in self.uses.guards]
        for base in bases:
            self.uses.guards[base].append(guards)
        for origin in self.flow.of(address).bases:
            if origin.loaded and origin.name in self.uses.loads:
                self.uses.loads[origin.name].kinds["address"] += 1
        mask = named.get("mask")
        if mask is not None:
            self.mark(self.origins(mask), "condition")
        other = named.get("other")
        if isinstance(other, ast.Constant) and isinstance(other.value, float) or _is_infinite(other):
            for base in bases:
                self.uses.loads[base].kinds["float-other"] += 1
        if name in ("load", "gather", "prefetch") or len(operands) < 2 and "value" not in named:
            return
        value = named.get("value") or operands[-1 if isinstance(operands[1], (ast.List, ast.Tuple)) else 1]
        for base in bases:
            self.stored(function, base, value)
            if name.startswith("atomic"):
                self.uses.stores[base]["atomic"] += 1

    def stored(self, function: JitSource, base: str, value: ast.expr) -> None:
        found = self.uses.stores[base]
        conversions = [kind for node in _meant(function, value) if (kind := _conversion(node)) is not None]
        for kind in conversions:
            found["cast" if kind == "element" else "converted"] += 1
            if kind not in ("element", ""):
                found[f"to:{kind}"] += 1
        if conversions:
            return
        found["plain"] += 1
        self.mark(self.origins(value), f"stored:{base}")
        if any(origin.loaded and not origin.plain for origin in self.origins(value)):
            found["computed"] += 1
        packed = [node for meant in _meant(function, value) for node in ast.walk(meant) if _is_packing(node)]
        if packed:
            found["bits"] += 1
            reach = [_reach(self.constants(function, node.right), "shift") for node in packed]
            found["byte"] += all(bits is not None and bits <= 8 for bits in reach)
        if isinstance(value, ast.Constant):
            found["float" if isinstance(value.value, float) else "constant"] += 1
        elif isinstance(value, ast.Compare):
            found["truth"] += 1

    def block(self, name: str, operands: list[ast.expr], named: dict[str, ast.expr]) -> None:
        order = (
            ("base", "shape", "strides", "offsets", "block_shape")
            if name == "make_block_ptr"
            else ("base", "shape", "strides", "block_shape")
        )
        given = {**dict(zip(order, operands)), **named} if name != "advance" else {"offsets": operands[-1]}
        kinds = {"shape": "bound", "strides": "stride", "offsets": "offset", "block_shape": "tile"}
        for part, kind in kinds.items():
            for item in getattr(given.get(part), "elts", []):
                self.mark(self.origins(item), kind)
                if kind != "tile":
                    self.mark(self.origins(item), "offset")


def _meant(function: JitSource, value: ast.expr) -> list[ast.expr]:
    """The expressions whose value is stored: of a name all that it is given in the function."""
    if not isinstance(value, ast.Name):
        return [value]
    assigned = [node for node in ast.walk(function.node) if isinstance(node, ast.Assign)]
    return [a.value for a in assigned if any(isinstance(t, ast.Name) and t.id == value.id for t in a.targets)]


def _reach(numbers: list[Any], kind: str) -> int | None:
    """How many bits an operation with one of these constants reaches: of a shift one more than it shifts by, of a mask its length."""
    if len(numbers) != 1 or type(numbers[0]) is not int or numbers[0] < 0:
        return None
    return numbers[0] + 1 if kind == "shift" else numbers[0].bit_length()


def _is_packing(node: ast.AST) -> TypeGuard[ast.BinOp]:
    """Whether an expression shifts values, which only integers are."""
    return isinstance(node, ast.BinOp) and isinstance(node.op, (ast.LShift, ast.RShift))


def _conversion(value: ast.expr) -> str | None:
    """What `x.to(...)` converts to: `element` for the element type of a pointer, the name of a type, "" for anything else; None for
    what is no conversion."""
    if not (
        isinstance(value, ast.Call) and isinstance(value.func, ast.Attribute) and value.func.attr in ("to", "cast")
    ):
        return None
    if any(isinstance(x, ast.Attribute) and x.attr == "element_ty" for a in value.args for x in ast.walk(a)):
        return "element"
    return ast.unparse(value.args[-1]).rpartition(".")[2] if value.args else ""


def _is_infinite(node: ast.expr | None) -> bool:
    return node is not None and "inf" in ast.unparse(node)
