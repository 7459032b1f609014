"""Loops, branches, reductions and what ends a function."""

from __future__ import annotations

import re
from collections.abc import Sequence
from itertools import zip_longest

from gluonize.raised.naming.names import plain
from gluonize.raised.naming.origins import author_name
from gluonize.raised.text import Written
from gluonize.raised.writer import Line, Writer
from gluonize.trace.model.language import REDUCTIONS, SCANS
from gluonize.trace.model.op import Block, Op
from gluonize.trace.model.types import Type

_WORD = re.compile(r"[^\W\d]\w*")
_FREE = re.compile(r"[\w.-]+|gl\.full\(\[[\d, ]*\], [\w.-]+, [\w.]+(, \w+)?\)")  # what is written takes no instruction
_ENDS = ("scf.yield", "scf.condition", "tt.reduce.return", "tt.scan.return", "tt.map_elementwise.return")
_NAMES = {"arith.addi": "add", "arith.addf": "add", "arith.mulf": "multiply", "arith.muli": "multiply"}
_NAMES |= {f"arith.max{kind}": "larger" for kind in ("si", "ui", "numf", "imumf")}
_NAMES |= {f"arith.min{kind}": "smaller" for kind in ("si", "ui", "numf", "imumf")}
_NAMES |= {"arith.xori": "exclusive_or", "arith.andi": "both", "arith.ori": "either"}


def _mentions(op: Op) -> set[str]:
    """The values that an operation, or one in it, names."""
    return {*op.values}.union(*(region.values for region in op.regions))


def _split(block: Block) -> tuple[tuple[Op, ...], Op | None]:
    """The operations of a block, and the one that ends it."""
    if block.ops and block.ops[-1].name in _ENDS:
        return block.ops[:-1], block.ops[-1]
    return block.ops, None


def _given(last: Op | None) -> tuple[str, ...]:
    return last.operands if last is not None else ()


def become(w: Writer, pairs: Sequence[tuple[str, str]]) -> None:
    """Give variables the values that a region ends with, all at once. pairs: (variable, value)."""
    w.only([value for _, value in pairs])
    made = [(name, w.typed(w.read(value))) for name, value in pairs]
    made = [(name, written) for name, written in made if written.text != name]
    words = [set(re.findall(r"\w+", written.text)) for _, written in made]
    late = []
    for at, (name, written) in enumerate(made):
        # What one of them gets may name another that has got its own before.
        if any(name in words[later] for later in range(at + 1, len(made))):
            kept = written.text
            if not kept.isidentifier() or kept in [other for other, _ in made]:
                kept = w.fresh(f"next_{name}")
                w.line(f"{kept} = {written.text}")
            late.append((name, kept))
        else:
            w.line(f"{name} = {written.text}")
    for name, kept in late:
        w.line(f"{name} = {kept}")


def _may_become(w: Writer, ops: Sequence[Op], last: Op | None, argument: str, value: str) -> bool:
    """Whether a value of a loop's body can be put into the variable that carries it at once: nothing reads the old one any more."""
    given = _given(last)
    if given.count(value) != 1 or value in w.homes:
        return False
    at = next((i for i, op in enumerate(ops) if value in op.results), None)
    if at is None:
        return False
    later = list(ops[at + 1 :]) + ([last] if last is not None else [])
    return not any(argument in _mentions(op) for op in later)


def _carry(
    w: Writer, bindings: Sequence[tuple[str, str]], kinds: Sequence[Type], given: Sequence[str] = ()
) -> list[str | None]:
    """Variables for what a loop carries, with their first values; None for tokens, which Gluon has none of.

    Gluon's loops carry variables in the order in which these are first assigned, and registers follow that order: it is the module's.
    """
    w.only([first for _, first in bindings])
    names: list[str | None] = []
    of_loop = w.called.of_loop([argument for argument, _ in bindings])
    order = _Order(w)
    for (argument, first), kind, new in zip_longest(bindings, kinds, given, fillvalue=""):
        if kind.kind == "token":
            w.values[argument] = Written("", kind)
            names.append(None)
            continue
        written = w.typed(w.read(first))
        # Where nothing else reads it, nor a loop around anew, this one goes on with the variable.
        if w.own.get(written.text) == w.loop and w.uses[first] == 1 and order.goes_on(written.text):
            name = written.text
        else:
            known = written.text.isidentifier() and author_name(argument) in of_loop
            name = w.fresh(plain(written.text) if known else w.called.carried(argument, first, kind, new))
            order.begin(name, written.text)
        w.values[argument] = Written(name, kind)
        w.carried.add(name)
        names.append(name)
    order.end()
    return names


class _Order:
    """The places where the variables of a loop begin. What takes no instruction (a number, another variable) begins before a variable that
    is there already and comes behind it; everything else in front of the loop."""

    def __init__(self, w: Writer):
        self.w = w
        self.last = -1  # the line where the last one of them begins
        self.early: list[Line] = []  # those that have no place yet

    def goes_on(self, name: str) -> bool:
        """Whether a variable that is there can be the next one."""
        at = self._begins(name)
        if at is None or at <= self.last or self.w.lines[at].depth != self.w.depth:
            return False
        self.w.lines[at:at] = self.early
        self.last, self.early = at + len(self.early), []
        return True

    def begin(self, name: str, text: str) -> None:
        """A new variable is the next one."""
        line = Line(self.w.depth, f"{name} = {text}", self.w.place)
        self.w.first[name] = line
        self.early.append(line)
        begins = [self._begins(word) for word in _WORD.findall(text) if word in self.w.names]
        if not _FREE.fullmatch(text) or None in begins:
            self.end()
        else:
            self.last = max([self.last, *(at for at in begins if at is not None)])

    def end(self) -> None:
        """What has no place yet stands here."""
        self.w.lines += self.early
        self.last, self.early = len(self.w.lines) - 1, []

    def _begins(self, name: str) -> int | None:
        """The line where a variable begins that has the same value ever after, -1 for a parameter."""
        found = self.w.first.get(name)
        if name in self.w.carried or name not in self.w.first:
            return None
        return next((at for at, line in enumerate(self.w.lines) if line is found), -1)


def _counts_alone(w: Writer, body: Block, argument: str, new: str) -> tuple[Op, ...] | None:
    """What computes a number that a loop carries, where nothing else comes of it: it says which slot of a ring with one slot is meant.
    None where something does."""
    own: list[Op] = []
    values, wanted = [argument], {argument}
    while values:
        value = values.pop()
        for op in body.ops[:-1]:
            if value not in _mentions(op) or op in own or _names_only_slot(w, op, value):
                continue
            if not op.name.startswith("arith.") or op.regions:
                return None
            own.append(op)
            values += op.results
            wanted |= {*op.results}
    last = body.ops[-1]
    leaves = [value for value in last.operands if value in wanted]
    return tuple(own) if own and leaves == [new] else None


def _names_only_slot(w: Writer, op: Op, value: str) -> bool:
    """Whether an operation takes the one slot of a ring by this number."""
    if op.name != "ttg.memdesc_index" or op.operands[1] != value:
        return False
    source = w.values.get(op.operands[0])
    return source is not None and bool(source.type.shape) and source.type.shape[0] == 1


def _without_counters(w: Writer, op: Op) -> frozenset[int]:
    """The numbers of bindings that are not written: Gluon's passes find too that the slot of a ring with one slot is always the first."""
    loop, body = op.for_loop, op.regions[0].blocks[0]
    _, last = _split(body)
    out = set()
    for number, ((argument, first), new) in enumerate(zip(loop.bindings, _given(last))):
        if w.uses[op.results[number]] == 0 and (own := _counts_alone(w, body, argument, new)) is not None:
            out.add(number)
            w.uses[first] -= 1
            w.left_out |= {*own}
    return frozenset(out)


def for_loop(w: Writer, op: Op) -> None:
    loop, body = op.for_loop, op.regions[0].blocks[0]
    left_out = _without_counters(w, op)
    bindings = [pair for number, pair in enumerate(loop.bindings) if number not in left_out]
    w.only([loop.low, loop.high, loop.step, *(first for _, first in bindings)])
    low, high, step = (w.read(value) for value in (loop.low, loop.high, loop.step))
    if low.literal and high.literal and low.type.element != "i32":
        high = w.typed(high)
    if loop.unsigned:
        low, high, step = (w.without_sign(bound) for bound in (low, high, step))
    kinds = [kind for number, kind in enumerate(op.result_types) if number not in left_out]
    ops, last = _split(body)
    given = [value for number, value in enumerate(_given(last)) if number not in left_out]
    names = _carry(w, bindings, kinds, given)
    index = w.fresh(w.index_name(op))
    bounds = [high.text] if low.text == "0" and step.text == "1" and low.literal else [low.text, high.text]
    bounds += [step.text] if step.text != "1" else []
    w.line(f"for {index} in range({', '.join(bounds)}):", op.place.line)
    w.values[loop.variable] = Written(index, low.type)
    for (argument, _), value, name in zip(bindings, given, names):
        if name is not None and _may_become(w, ops, last, argument, value):
            w.homes[value] = name
        elif name is not None and given.count(value) == 1:
            w.following[value] = plain(name)
    with w.in_loop():
        _body(w, ops, [(name, value) for name, value in zip(names, given) if name is not None])
    results = [value for number, value in enumerate(op.results) if number not in left_out]
    for value, name, kind in zip(results, names, kinds):
        w.values[value] = Written(name or "", kind)


def _body(w: Writer, ops: Sequence[Op], pairs: Sequence[tuple[str, str]]) -> None:
    """Write the block of a loop or branch."""
    w.depth += 1
    before = len(w.lines)
    w.block(ops)
    become(w, pairs)
    if len(w.lines) == before:
        w.line("pass", 0)
    w.depth -= 1


def while_loop(w: Writer, op: Op) -> None:
    before, after = (region.blocks[0] for region in op.regions)
    w.only([first for _, first in op.bindings])
    kinds = [kind for kind in op.result_types]
    names = _carry(w, op.bindings, _argument_types(w, op))
    ops, condition = _split(before)
    start = len(w.lines)
    w.block(ops)
    assert condition is not None
    w.only(condition.operands[:1])
    if len(w.lines) != start:
        raise w.refuse(op, "its condition is more than one expression")
    test = w.read(condition.operands[0])
    handed = [w.read(value) for value in condition.operands[1:]]
    if any(written.text not in names for written in handed):
        raise w.refuse(op, "its condition hands on what it computes")
    w.line(f"while {test.text}:", op.place.line)
    for (value, kind), written in zip(after.arguments, handed):
        w.values[value] = written
    inside, last = _split(after)
    with w.in_loop():
        _body(w, inside, [(name, value) for name, value in zip(names, _given(last)) if name is not None])
    for value, written, kind in zip(op.results, handed, kinds):
        w.values[value] = Written(written.text, kind)


def _argument_types(w: Writer, op: Op) -> list[Type]:
    return [w.values[first].type if first in w.values else w.waiting(first).type for _, first in op.bindings]


def branch(w: Writer, op: Op) -> None:
    w.only([op.condition])
    test = w.read(op.condition)
    homes = []
    for value, kind in zip(op.results, op.result_types):
        if kind.kind == "token":
            w.values[value] = Written("", kind)
            homes.append(None)
        elif value in w.homes:
            homes.append(w.homes[value])
        else:
            homes.append(w.fresh(w.called.of_branch(value, op, kind)))
    w.line(f"if {test.text}:", op.place.line)
    for number, region in enumerate(op.regions):
        if number:
            w.line("else:", 0)
        ops, last = _split(region.blocks[0])
        pairs = [(name, value) for name, value in zip(homes, _given(last)) if name is not None]
        for name, value in pairs:
            inside = any(value in inner.results for inner in ops)
            if inside and value not in w.homes and name not in w.carried and _given(last).count(value) == 1:
                w.homes[value] = name
        _body(w, ops, pairs)
    for value, name, kind in zip(op.results, homes, op.result_types):
        if name is not None:
            w.values[value] = Written(name, kind)


def reduction(w: Writer, op: Op) -> None:
    """A reduction or a scan, with the function that combines two elements."""
    operands = [w.read(value).whole for value in op.operands]
    source = operands[0].text if len(operands) == 1 else f"({', '.join(x.text for x in operands)})"
    axis, more = op.attribute("axis"), ", reverse=True" if op.attribute("reverse") else ""
    if known := _known_reduction(op):
        text = f"gl.{known}({source}, {axis}{more})"
    else:
        function = "associative_scan" if op.name == "tt.scan" else "reduce"
        text = f"gl.{function}({source}, {axis}, {_helper(w, op, _pairs(len(op.operands)))}{more})"
    if len(op.results) == 1:
        w.keep(op, Written(text, op.type), False)
    else:
        w.several(op, text)


def _known_reduction(op: Op) -> str:
    """The function of the language that a reduction or scan of one tensor is, "" of another one. Of narrow types these give wider ones."""
    block = op.regions[0].blocks[0]
    combine, last = block.ops[0], block.ops[-1]
    alone = len(block.ops) == 2 and last.operands == combine.results and "fastmath<" not in combine.text
    in_order = combine.operands == tuple(value for value, _ in block.arguments)
    if not alone or not in_order or len(op.operands) > 1 or op.type.element not in ("f32", "f64", "i32", "i64"):
        return ""
    return (SCANS if op.name == "tt.scan" else REDUCTIONS).get(combine.name, "")


def elementwise(w: Writer, op: Op) -> None:
    """A function of single elements, or of several that lie side by side."""
    operands = ", ".join(w.read(value).whole.text for value in op.operands)
    pack = op.attribute("pack", 1)
    sides = [""] if pack == 1 else [f"_{number}" for number in range(pack)]
    helper = _helper(w, op, [f"{chr(ord('a') + at)}{side}" for at in range(len(op.operands)) for side in sides])
    w.several(op, f"gl.map_elementwise({helper}, {operands}{f', pack={pack}' if pack > 1 else ''})")


def _helper(w: Writer, op: Op, parameters: Sequence[str]) -> str:
    block = op.regions[0].blocks[0]
    inner = Writer(w.shared, None, w.handlers, w.layouts)
    called, given = w.shared.source.function(block.ops[0].place.line)
    entry = w.shared.module.entry
    if block.ops[0].place.file != entry.place.file or called in ("", entry.name):
        called = "combine"
    elif len(given) == len(parameters):
        parameters = given
    names = [inner.fresh(name) for name in parameters]
    for (value, kind), name in zip(block.arguments, names):
        inner.values[value] = Written(name, kind)
    inner.count_uses(block)
    ops, last = _split(block)
    for outside in {value for each in ops for value in each.operands} - set(inner.values):
        if outside in w.values and w.values[outside].literal:
            inner.values[outside] = w.values[outside]
    inner.block(ops)
    inner.only(_given(last))
    made = [inner.typed(inner.read(value)).text for value in _given(last)]
    inner.lines.append(Line(1, f"return {', '.join(made)}"))
    base = _NAMES.get(ops[0].name, called) if len(ops) == 1 else called
    body = (f"({', '.join(names)}):", *("    " * line.depth + line.text for line in inner.lines))
    return w.helper(base, body, lambda name: ["@gluon.jit", f"def {name}{body[0]}", *body[1:]])


def _pairs(count: int) -> list[str]:
    """The elements that a reduction of so many tensors combines."""
    if count == 1:
        return ["a", "b"]
    return [f"{side}{number}" for side in "ab" for number in range(count)]


def leave(w: Writer, op: Op) -> None:
    w.only(op.operands)
    if op.operands:
        w.line(f"return {', '.join(w.read(value).whole.text for value in op.operands)}", op.place.line)
