"""Partitions of warps that run side by side: a function for each, and the call that starts them."""

from __future__ import annotations

from collections.abc import Sequence

from gluonize.raised.control import leave
from gluonize.raised.function_text import text_of
from gluonize.raised.naming.names import plain
from gluonize.raised.text import Written
from gluonize.raised.writer import Writer
from gluonize.trace.model.op import Op, Region

_ENDS = ("ttg.warp_yield", "ttg.warp_return")


def specialize(w: Writer, op: Op) -> None:
    """The default region goes on with all that is there; a partition knows what it is handed. Those that do nothing fill the
    warps up to what the hardware starts at once, and Triton adds them by itself."""
    default, *partitions = (region for region in op.regions if region.runs_beside)
    w.flush()
    values = default.values - {value for inner in default.walk() for value in inner.results} - _arguments(default)
    around = [value for value in w.values if value in values]
    call, results = _function(w, default, "default", around, around)
    calls = [call]
    registers = op.integers("requestedRegisters")
    warps: list[int | None] = []
    kept: list[int] = []
    for number, region in enumerate(partitions):
        if len(region.blocks[0].ops) > 1:
            inside = [value for value, _ in region.blocks[0].arguments]
            calls.append(_function(w, region, f"partition_{len(warps)}", inside, op.captures)[0])
            warps.append(region.warps)
            kept += registers[number : number + 1]
    text = f"gl.warp_specialize([{', '.join(calls)}], {warps}{f', {kept}' if kept else ''})"
    if not op.results:
        w.statement(op, text)
    else:
        w.several(op, text, results)


def _arguments(region: Region) -> set[str]:
    """What regions inside name: what blocks, loops and reductions begin with."""
    found = {value for block in region.blocks for value, _ in block.arguments}
    for op in region.walk():
        found |= {value for inner in op.regions for block in inner.blocks for value, _ in block.arguments}
        if op.name == "scf.for":
            found |= {op.for_loop.variable, *(argument for argument, _ in op.for_loop.bindings)}
        elif op.name == "scf.while":
            found |= {argument for argument, _ in op.bindings}
    return found


def _function(
    w: Writer, region: Region, base: str, inside: Sequence[str], outside: Sequence[str]
) -> tuple[str, list[str]]:
    """Write the function of a region; -> the pair of it and its arguments, and what it calls what it returns. inside: what its values are
    called there, outside: here."""
    assert w.function is not None
    inner = Writer(w.shared, w.function, w.handlers)
    inner.called, inner.warps, inner.place = w.called, region.warps or w.warps, w.place
    constants = {each.results[0]: each for each in w.function.walk() if each.name == "arith.constant"}
    used = region.values
    given: list[str] = []
    parameters: list[str] = []
    for value, known in zip(inside, outside):
        if value not in used:
            continue
        if known in constants:
            inner.handlers[constants[known].name](inner, constants[known])
            inner.values[value] = inner.values[known]
            continue
        here = w.variable(known)
        name = inner.fresh(plain(here.text))
        inner.values[value] = Written(name, here.type)
        given.append(here.text)
        parameters.append(name)
    inner.first |= dict.fromkeys(parameters)
    block = region.blocks[0]
    inner.count_uses(block)
    inner.block(block.ops[:-1])
    last = block.ops[-1]
    if last.name not in _ENDS or len(region.blocks) > 1:
        raise w.refuse(last, "a partition that ends so")
    results = [inner.variable(value).text for value in last.operands]
    leave(inner, last)
    if not inner.lines:
        inner.line("pass")
    around = (w.shared.source.function(op.place.line)[0] for op in region.walk())
    called = next((each for each in around if each not in ("", w.function.name)), f"{w.function.name}_{base}")
    name = w.helper(
        called,
        (base, str(last.line)),
        lambda own: text_of(inner, "@gluon.jit", own, parameters, w.function.place.file),
    )
    return f"({name}, ({', '.join(given)}{',' * (len(given) == 1)}))", results
