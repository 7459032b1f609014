"""Inline assembly: AMDGCN stays, PTX is rewritten by the rows of `rules/ptx.py`, anything else is refused."""

from __future__ import annotations

import ast
import re
import zlib
from typing import TYPE_CHECKING

from rules import ptx
from translator.frontend.trace import ConstFact
from translator.layout.model import Layout
from translator.rewrite import call_text, callees
from translator.rewrite.splice import operand
from translator.rewrite.unit import Synthesized, refuse

if TYPE_CHECKING:
    from translator.rewrite.function import FunctionRewriter

_DUMMY = "pass  # AMD has no dependent launches to order: a stream does"


def inline_asm(rw: "FunctionRewriter", node: ast.Call, callee, given, want) -> str:
    """The Gluon text for a call of `inline_asm_elementwise`."""
    text = assembly(rw, given)
    arguments = given.get("args")
    items = list(arguments.elts) if isinstance(arguments, (ast.List, ast.Tuple)) else []
    tensors = [a for a in items if rw.tensor(a) is not None]
    shared = max((rw.tensor(a) for a in tensors), key=lambda f: f.rank, default=None)
    layout = want if isinstance(want, Layout) else None
    if shared is not None and layout is None:
        layout = rw.home(next(a for a in tensors if rw.tensor(a) is shared))
    operands = {a: rw.operand_in(a, shared, layout) for a in items}
    if text is None or is_ptx(text):
        rewritten = _rewritten(rw, node, text, given, items, operands) if text is not None else None
        if rewritten is None:
            raise refuse(
                rw.frame,
                node,
                "ptx-asm",
                "inline assembly is not AMDGCN",
                "the AMD compiler drops PTX without a message, and the result is undefined",
                "write the operation with tl.math or libdevice functions, or give AMDGCN assembly for this target",
            )
        return rewritten
    if shared is None:
        return call_text.generic(rw, node, {})
    return call_text.generic(rw, node, {arguments: rw.splice(arguments, operands)})


def assembly(rw: "FunctionRewriter", given: dict[str, ast.expr]) -> str | None:
    """The assembly text, where it is a constant."""
    fact = rw.fact(given["asm"]) if given.get("asm") is not None else None
    return fact.value if isinstance(fact, ConstFact) and isinstance(fact.value, str) else None


def statement(rw: "FunctionRewriter", node: ast.expr) -> str:
    """What replaces a statement without a result: a barrier, or PTX that orders dependent launches; else ""."""
    if not isinstance(node, ast.Call):
        return ""
    callee = callees.callee_of(rw, node)
    if callee is None:
        return ""
    if callee.name == "inline_asm_elementwise":
        text = assembly(rw, callees.bind(rw, node, callee))
        found = ptx.instructions(text) if text is not None else []
        if found and all(x in ptx.BARRIERS for x in found):
            return "gl.barrier()"
        return _DUMMY if found and all(x in ptx.NO_EFFECT for x in found) else ""
    module = getattr(callee.function, "__module__", None) or ""
    names = ("gdc_wait", "gdc_launch_dependents")
    return _DUMMY if module.startswith("triton.language.extra.cuda") and callee.name in names else ""


def _rewritten(rw, node: ast.Call, text: str, given, items, operands) -> str | None:
    """PTX in Gluon, or None when it has no row."""
    facts = [rw.fact(a) for a in items]
    numbers = (int, float)
    dtypes = [
        "fp32" if isinstance(f, ConstFact) and isinstance(f.value, numbers) else getattr(f, "dtype", "") for f in facts
    ]
    pack = rw.fact(given.get("pack")) if given.get("pack") is not None else None
    result = getattr(rw.fact(node), "dtype", None)
    if any(dtype != "fp32" for dtype in dtypes) or not (isinstance(pack, ConstFact) and pack.value == 1):
        return None
    given_texts = [operand(operands[a]) for a in items]
    only, *more = ptx.instructions(text) or [""]
    if not more and len(items) == 1 and (m := re.fullmatch(r"([\w.]+) \$0 ?, ?\$1", only)):
        if (dtype := ptx.CONVERSIONS.get(m.group(1))) and result in (
            {"bfloat16": "bf16", "float16": "fp16"}[dtype],
            "int16",
        ):
            return f"{given_texts[0]}.to(gl.{dtype})" + (".to(gl.int16, bitcast=True)" if result == "int16" else "")
    steps = ptx.read_steps(text)
    if steps is None or result != "fp32":
        return None
    known = {f"${i + 1}" for i in range(len(items))}
    for step in steps:
        if any(isinstance(x, str) and x not in known for x in step.operands):
            return None
        known.add(step.result)
    if any(step.row.libdevice for step in steps):
        rw.record.imports.add("from triton.language.extra import libdevice")
    if len(steps) == 1:
        return _spelled(steps[0], {f"${i + 1}": x for i, x in enumerate(given_texts)})
    function = _function(steps, len(items))
    rw.record.need(function, rw.frame.fn)
    return f"{function.name}({', '.join(operands[a] for a in items)})"


def _spelled(step: ptx.Step, values: dict[str, str]) -> str:
    template = step.row.exact if step.exact and step.row.exact else step.row.gluon
    texts = [repr(x) if isinstance(x, float) else values[x] for x in step.operands]
    return template.format(*texts)


def _function(steps: list[ptx.Step], arguments: int) -> Synthesized:
    """The steps as a function of the output; equal assembly makes one function."""
    parameters = [f"x{i}" for i in range(arguments)]
    values = {f"${i + 1}": x for i, x in enumerate(parameters)}
    body = []
    for n, step in enumerate(steps):
        last = n == len(steps) - 1
        text = _spelled(step, values)
        values[step.result] = f"r{n}"
        body.append(f"    return {text}" if last else f"    r{n} = {text}")
    digest = zlib.crc32("\n".join(body).encode()) & 0xFFFF  # the same instructions may differ in their operands
    name = f"asm_{'_'.join(step.row.opcode for step in steps)}_{digest:04x}"
    lines = [f"def {name}({', '.join(parameters)}):", '    """What the PTX assembly of the source computes."""', *body]
    return Synthesized(name, "@gluon.jit\n" + "\n".join(lines) + "\n")


def is_ptx(text: str) -> bool:
    """PTX names registers `%r1`/`$0` after dotted opcodes (`mov.b32`, `cvt.rn.f16.f32`), AMDGCN has `v_`/`s_` opcodes."""
    opcodes = re.findall(r"(?:^|[;\n{])\s*(?:@!?\S+\s+)?([a-zA-Z_][\w.]*)", text)
    amd = [o for o in opcodes if re.match(r"(v|s|ds|buffer|global|flat|scratch|tensor)_", o)]
    return bool(opcodes) and not amd
