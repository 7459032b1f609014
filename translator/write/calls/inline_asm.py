"""Inline assembly: AMDGCN stays, PTX is rewritten by the rows of `rules/ptx.py`, anything else is refused."""

from __future__ import annotations

import ast
import json
import zlib
from string import Formatter
from dataclasses import dataclass, replace

from gluonize.diagnostics import TranslationError
from gluonize.facts import callees
from gluonize.facts.function import FunctionFacts
from gluonize.facts.refusals import refuse
from gluonize.gluon.imports import LIBDEVICE
from gluonize.gluon.written import Written, call, form_of, literal, made, method, name, operand, tuple_of
from gluonize.rules import ptx
from gluonize.trace.front.trace import ConstFact, TensorFact, TupleFact
from gluonize.trace.model.layouts import Layout
from gluonize.write.state import call_text
from gluonize.write.state.relations import Wants, operands_in
from gluonize.write.state.unit import Record, Synthesized
from gluonize.write.state.writing import added, Asking, Writing

_DUMMY = "pass  # AMD has no dependent launches to order: a stream does"


def inline_asm(writing: Writing, node: ast.Call, callee, given, want) -> Written:
    """The Gluon text for a call of `inline_asm_elementwise`."""
    facts = writing.facts
    text = assembly(facts, given)
    arguments = given.get("args")
    items, shared = _items(facts, given)
    operands = writing.texts(wants(writing, given, want), shared)
    if text is None or ptx.is_ptx(text):
        rewritten = _rewritten(facts, writing.record, node, text, given, items, operands) if text is not None else None
        if rewritten is None:
            raise _refusal(facts, node, text, given)
        return rewritten
    if shared is None:
        return call_text.generic(writing, node, {})
    return call_text.generic(writing, node, {arguments: writing.splice(arguments, operands)})


def _refusal(facts: FunctionFacts, node: ast.Call, text: str | None, given) -> TranslationError:
    """The refusal of PTX, at the instruction that has no row where there is one."""
    missing = ptx.without_row(text) if text is not None else ""
    why = "the AMD compiler drops PTX without a message, and the result is undefined"
    place: ast.AST = node
    if missing:
        what = f"the PTX instruction `{missing}` has no counterpart"
        place = _place(facts, given["asm"], missing) or node
    elif text is not None and (registers := ptx.special_registers(text)):
        what = f"the PTX register `{registers[0]}` has no counterpart"
        place = _place(facts, given["asm"], registers[0]) or node
    elif text is None:
        what = "the text of inline assembly is not known"
    else:
        what, why = "PTX whose instructions have counterparts, but not in this form", f"{_unlike(facts, given)}; {why}"
    help = "write the operation with tl.math or libdevice functions, or give AMDGCN assembly for this target"
    return refuse(facts.frame, place, "ptx-asm", what, why, help)


def _unlike(facts: FunctionFacts, given) -> str:
    """What about a call of inline assembly is not as rows have it."""
    pack = facts.fact(given["pack"]) if given.get("pack") is not None else None
    if not (isinstance(pack, ConstFact) and pack.value == 1):
        return f"it takes pack={getattr(pack, 'value', '?')} elements at once, and counterparts take one"
    return "counterparts take and give fp32 or integers of 32 bits, and set each result"


def _place(facts: FunctionFacts, asm: ast.expr, instruction: str) -> ast.AST | None:
    """The line of an instruction in assembly that is written at the call."""
    if not isinstance(asm, ast.Constant):
        return None
    before, found, _ = facts.source.of(asm).partition(instruction.partition(" ")[0])
    place = ast.Constant(0)
    place.lineno, place.col_offset = asm.lineno + before.count("\n"), len(before.rpartition("\n")[2])
    place.col_offset += asm.col_offset if "\n" not in before else 0
    return place if found else None


def in_plain_text(text: str, constraints: str, operands: list[str], results: list[str], pack: object) -> str:
    """PTX of a function that is carried over as it is written, so that nobody knows the types in it, as an expression. operands: as Python;
    results: their types, as Triton spells them. Where a row is missing, an assertion that fails."""
    missing = ptx.without_row(text)
    steps = ptx.read_steps(text, len(results)) if not missing and pack == 1 else None
    kinds = [
        {"f": "f", "r": "u"}.get(part.strip(), "")
        for part in constraints.split(",")
        if not part.strip().startswith("=")
    ]
    first, known = len(results), {"float32": "f", "uint32": "u", "int32": "s"}
    inputs = {f"${i + first}" for i in range(len(operands))}
    fits = len(kinds) == len(operands) and all(kinds) and all(result in known for result in results)
    if steps is None or not fits or any(s.row.needs or s.row.libdevice for s in steps):
        what = f"the PTX instruction `{missing}`" if missing else f"the PTX `{' '.join(text.split())}`"
        return f"gl.static_assert(False, {json.dumps(what + ' has no counterpart')})"
    values = {
        f"${i + first}": _Value(
            method(operand(x), "to", "gl.uint32", "bitcast=True") if kind == "u" else operand(x), kind
        )
        for i, (x, kind) in enumerate(zip(map(_parsed, operands), kinds))
    }
    for step in steps:
        if any(isinstance(x, str) and x not in values for x in step.operands):
            return 'gl.static_assert(False, "PTX reads a register that it did not set")'
        values[step.result] = _spelled(step, values)
    given = [_as_kind(values[f"${i}"], known[result]) for i, result in enumerate(results)]
    return (given[0] if first == 1 else tuple_of(*given)).text


def _parsed(text: str) -> Written:
    return Written(text, form_of(ast.parse(text, mode="eval").body))


def _items(facts: FunctionFacts, given) -> tuple[list[ast.expr], TensorFact | None]:
    """(the arguments of the assembly, the one of them with all dimensions)."""
    arguments = given.get("args")
    items = list(arguments.elts) if isinstance(arguments, (ast.List, ast.Tuple)) else []
    tensors = [fact for a in items if (fact := facts.tensor(a)) is not None]
    return items, max(tensors, key=lambda f: f.rank, default=None)


def wants(asking: Asking, given, want) -> Wants:
    """In which layouts inline assembly, wanted in `want`, wants its arguments."""
    items, shared = _items(asking.facts, given)
    layout = want if isinstance(want, Layout) else None
    if shared is not None and layout is None:
        layout = asking.home(next(a for a in items if asking.facts.tensor(a) is shared))
    return operands_in(asking.facts, items, shared, layout)


def assembly(facts: FunctionFacts, given: dict[str, ast.expr]) -> str | None:
    """The assembly text, where it is a constant."""
    fact = facts.fact(given["asm"]) if given.get("asm") is not None else None
    return fact.value if isinstance(fact, ConstFact) and isinstance(fact.value, str) else None


def statement(facts: FunctionFacts, node: ast.expr) -> str:
    """What replaces a statement without a result: a barrier, or PTX that orders dependent launches; else ""."""
    if not isinstance(node, ast.Call):
        return ""
    callee = callees.callee_of(facts, node)
    if callee is None:
        return ""
    if callee.name == "inline_asm_elementwise":
        text = assembly(facts, callees.bind(node, callee))
        found = ptx.instructions(text) if text is not None else []
        if found and all(x in ptx.BARRIERS for x in found):
            return "gl.barrier()"
        return _DUMMY if found and all(x in ptx.NO_EFFECT for x in found) else ""
    module = getattr(callee.function, "__module__", None) or ""
    names = ("gdc_wait", "gdc_launch_dependents")
    return _DUMMY if module.startswith("triton.language.extra.cuda") and callee.name in names else ""


def _rewritten(
    facts: FunctionFacts, record: Record, node: ast.Call, text: str, given, items, operands
) -> Written | None:
    """PTX in Gluon, or None when it has no row."""
    kinds = ["f" if _is_number(f) else _KINDS.get(getattr(f, "dtype", ""), "") for f in map(facts.fact, items)]
    pack = facts.fact(given.get("pack")) if given.get("pack") is not None else None
    fact = facts.fact(node)
    results = [getattr(f, "dtype", "") for f in (fact.items if isinstance(fact, TupleFact) else [fact])]
    if not all(kinds) or not (isinstance(pack, ConstFact) and pack.value == 1):
        return None
    texts = [operand(operands[a]) for a in items]
    only, *more = ptx.instructions(text) or [""]
    if not more and kinds == ["f"] and (dtype := ptx.conversion(only)):
        if results[0] in ({"bfloat16": "bf16", "float16": "fp16"}[dtype], "int16"):
            value = method(texts[0], "to", f"gl.{dtype}")
            return method(value, "to", "gl.int16", "bitcast=True") if results[0] == "int16" else value
    target = facts.kernel.target
    steps = [replace(step, row=step.row.on(target)) for step in ptx.read_steps(text, len(results)) or ()]
    if not steps or not all(result in _KINDS for result in results):
        return None
    first = len(results)
    values = {f"${i + first}": _Value(x, kind) for i, (x, kind) in enumerate(zip(texts, kinds))}
    known = set(values)
    for step in steps:
        if any(isinstance(x, str) and x not in known for x in step.operands):
            return None
        known.add(step.result)
    if any(step.row.libdevice for step in steps):
        record.imports.add(LIBDEVICE)
    for name in sorted({step.row.needs for step in steps} - {""}):
        record.need(Synthesized(name, ptx.FUNCTIONS[name]), facts.frame.fn)
    if len(steps) == 1 and _used_once(steps[0]):
        return _as_kind(_spelled(steps[0], values), _KINDS[results[0]])
    function = _function(steps, kinds, [_KINDS[result] for result in results])
    return call(added(facts, record, function), *(operands[a] for a in items))


@dataclass(frozen=True)
class _Value:
    """What a register holds, and its kind, as in `ptx.PtxRow.takes`. The text is one operand: a name, a call, or in parentheses."""

    text: Written
    kind: str


_KINDS = {"fp32": "f", "uint32": "u", "int32": "s"}
_DTYPES = {"f": "float32", "u": "uint32", "s": "int32"}


def _is_number(fact) -> bool:
    return isinstance(fact, ConstFact) and isinstance(fact.value, (int, float))


def _as_kind(value: _Value, kind: str) -> Written:
    """The text of a value with its 32 bits taken as another kind of number."""
    if kind in ("a", value.kind):
        return value.text
    return method(value.text, "to", f"gl.{_DTYPES[kind]}", "bitcast=True")


def _used_once(step: ptx.Step) -> bool:
    return all(step.row.gluon.count(f"{{{i}}}") <= 1 for i in range(step.row.operands))


def _spelled(step: ptx.Step, values: dict[str, _Value]) -> _Value:
    row = step.row
    template = row.exact if step.exact and row.exact else row.gluon
    texts = [
        _as_kind(values[x], kind) if isinstance(x, str) else literal(x) for kind, x in zip(row.takes, step.operands)
    ]
    gives = row.gives
    if gives == "a":
        first = step.operands[0]
        gives = values[first].kind if isinstance(first, str) else "u"
        texts = texts if isinstance(first, str) else [method(call("gl.to_tensor", repr(first)), "to", "gl.uint32")]
    if template == "{0}":
        return _Value(texts[0], gives)
    parts = [x for before, hole, *_ in Formatter().parse(template) for x in (before, texts[int(hole)] if hole else "")]
    return _Value(made(ast.Call, *parts, grouped=template.startswith("(")), gives)


def _function(steps: list[ptx.Step], kinds: list[str], results: list[str]) -> Synthesized:
    """The steps as a function of the output; equal assembly makes one function."""
    first = len(results)
    parameters = [f"x{i}" for i in range(len(kinds))]
    values = {f"${i + first}": _Value(name(x), kind) for i, (x, kind) in enumerate(zip(parameters, kinds))}
    last = first == 1 and steps[-1].result == "$0"
    body = []
    for n, step in enumerate(steps):
        value = _spelled(step, values)
        if last and n == len(steps) - 1:
            values[step.result] = value
        elif value.text.is_name:
            values[step.result] = value  # a move
        else:
            body.append(f"    r{n} = {value.text}")
            values[step.result] = _Value(name(f"r{n}"), value.kind)
    body.append(f"    return {', '.join(_as_kind(values[f'${i}'], kind).text for i, kind in enumerate(results))}")
    digest = zlib.crc32("\n".join(body).encode()) & 0xFFFF  # the same instructions may differ in their operands
    words = [step.row.word or step.row.opcode.split(".")[0] for step in steps if step.row.gluon != "{0}"]
    title = f"asm_{'_'.join(words[:6])}_{digest:04x}"
    lines = [f"def {title}({', '.join(parameters)}):", '    """What the PTX assembly of the source computes."""', *body]
    return Synthesized(title, "@gluon.jit\n" + "\n".join(lines) + "\n")
