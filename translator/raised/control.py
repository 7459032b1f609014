"""Loops, branches, reductions and what ends a function."""

from __future__ import annotations

import re
from collections.abc import Sequence

from gluonize.raised.text import Written
from gluonize.raised.writer import Line, Writer
from gluonize.trace.model.op import Block, Op
from gluonize.trace.model.op_text import VALUES, author_name
from gluonize.trace.model.types import Type

_ENDS = ("scf.yield", "scf.condition", "tt.reduce.return", "tt.scan.return")
_NAMES = {"arith.addi": "add", "arith.addf": "add", "arith.mulf": "multiply", "arith.muli": "multiply"}
_NAMES |= {f"arith.max{kind}": "larger" for kind in ("si", "ui", "numf", "imumf")}
_NAMES |= {f"arith.min{kind}": "smaller" for kind in ("si", "ui", "numf", "imumf")}
_NAMES |= {"arith.xori": "exclusive_or", "arith.andi": "both", "arith.ori": "either"}


def _mentions(op: Op) -> set[str]:
    """The values that an operation, or one in it, names."""
    found = set(VALUES.findall(op.text) + VALUES.findall(op.tail))
    for region in op.regions:
        for inner in region.walk():
            found |= set(VALUES.findall(inner.text) + VALUES.findall(inner.tail))
    return found


def _split(block: Block) -> tuple[tuple[Op, ...], Op | None]:
    """The operations of a block, and the one that ends it."""
    if block.ops and block.ops[-1].name in _ENDS:
        return block.ops[:-1], block.ops[-1]
    return block.ops, None


def _given(last: Op | None) -> tuple[str, ...]:
    return last.operands if last is not None else ()


def _become(w: Writer, pairs: Sequence[tuple[str, str]]) -> None:
    """Give variables the values that a region ends with, all at once. pairs: (variable, value)."""
    w.only([value for _, value in pairs])
    made = [(name, w.typed(w.read(value))) for name, value in pairs]
    made = [(name, written) for name, written in made if written.text != name]
    words = [set(re.findall(r"\w+", written.text)) for _, written in made]
    late = []
    for at, (name, written) in enumerate(made):
        # What one of them gets may name another that has got its own before.
        if any(name in words[later] for later in range(at + 1, len(made))):
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


def _carry(w: Writer, bindings: Sequence[tuple[str, str]], kinds: Sequence[Type]) -> list[str | None]:
    """Variables for what a loop carries, with their first values; None for tokens, which Gluon has none of."""
    w.only([first for _, first in bindings])
    names: list[str | None] = []
    for (argument, first), kind in zip(bindings, kinds):
        if kind.kind == "token":
            w.values[argument] = Written("", kind)
            names.append(None)
            continue
        written = w.typed(w.read(first))
        name = w.fresh(_base(argument, first))
        w.line(f"{name} = {written.text}")
        w.values[argument] = Written(name, kind)
        w.carried.add(name)
        names.append(name)
    return names


def _base(*values: str) -> str:
    return next((name for name in map(author_name, values) if name and not name.startswith("arg")), "carried")


def for_loop(w: Writer, op: Op) -> None:
    loop, body = op.for_loop, op.regions[0].blocks[0]
    w.only([loop.low, loop.high, loop.step, *(first for _, first in loop.bindings)])
    low, high, step = (w.read(value) for value in (loop.low, loop.high, loop.step))
    if low.literal and high.literal and low.type.element != "i32":
        high = w.typed(high)
    if loop.unsigned:
        low, high, step = (w.without_sign(bound) for bound in (low, high, step))
    names = _carry(w, loop.bindings, op.result_types)
    index = w.fresh(_base(loop.variable) if author_name(loop.variable) else "i")
    bounds = [high.text] if low.text == "0" and step.text == "1" and low.literal else [low.text, high.text]
    bounds += [step.text] if step.text != "1" else []
    w.line(f"for {index} in range({', '.join(bounds)}):", op.place.line)
    w.values[loop.variable] = Written(index, low.type)
    ops, last = _split(body)
    given = _given(last)
    for (argument, _), value, name in zip(loop.bindings, given, names):
        if name is not None and _may_become(w, ops, last, argument, value):
            w.homes[value] = name
    _body(w, ops, [(name, value) for name, value in zip(names, given) if name is not None])
    for value, name, kind in zip(op.results, names, op.result_types):
        w.values[value] = Written(name or "", kind)


def _body(w: Writer, ops: Sequence[Op], pairs: Sequence[tuple[str, str]]) -> None:
    """Write the block of a loop or branch."""
    w.depth += 1
    before = len(w.lines)
    w.block(ops)
    _become(w, pairs)
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
            homes.append(w.fresh(author_name(value) or op.place.name or "chosen"))
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
    helper = _helper(w, op)
    axis = op.attribute("axis")
    source = operands[0].text if len(operands) == 1 else f"({', '.join(x.text for x in operands)})"
    if op.name == "tt.scan":
        more = ", reverse=True" if op.attribute("reverse") else ""
        text = f"gl.associative_scan({source}, {axis}, {helper}{more})"
    else:
        text = f"gl.reduce({source}, {axis}, {helper})"
    if len(op.results) == 1:
        w.keep(op, Written(text, op.type), False)
    else:
        w.several(op, text)


def _helper(w: Writer, op: Op) -> str:
    block = op.regions[0].blocks[0]
    inner = Writer(w.shared, None, w.handlers, w.layouts)
    count = len(block.arguments) // 2
    names = [inner.fresh(name) for name in _parameters(count)]
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
    base = _NAMES.get(ops[0].name, "combine") if len(ops) == 1 else "combine"
    body = (f"({', '.join(names)}):", *("    " * line.depth + line.text for line in inner.lines))
    known = w.shared.helpers
    if body not in known:
        name, number = base, 1
        while name in w.shared.taken:
            number += 1
            name = f"{base}_{number}"
        w.shared.taken.add(name)
        known[body] = (name, ["@gluon.jit", f"def {name}{body[0]}", *body[1:]])
    return known[body][0]


def _parameters(count: int) -> list[str]:
    if count == 1:
        return ["a", "b"]
    return [f"{side}{number}" for side in "ab" for number in range(count)]


def leave(w: Writer, op: Op) -> None:
    w.only(op.operands)
    if op.operands:
        w.line(f"return {', '.join(w.read(value).whole.text for value in op.operands)}", op.place.line)
