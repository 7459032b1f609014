"""Kernels from the examples of rule rows, translated in one request."""

from __future__ import annotations

import ast
import json
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from gluonize.judge.lower.children.worker import WorkerPool
from gluonize.read.spec.launch import parse_launches
from gluonize.request import TranslateRequest, TranslateResult
from gluonize.rules.rows import Example, Row

_HEAD = """\
import triton
import triton.language as tl


@triton.jit
def combine(a, b):
    return a + b

"""
_VALUES = {
    "i": "tl.arange(0, 64)",
    "u": "i.to(tl.uint32)",
    "x": "tl.load(x_ptr + i)",
    "k": "x > 0",
    "r": "tl.arange(0, 16)",
    "m": "tl.load(x_ptr + r[:, None] * 16 + r[None, :])",
    "e": "tl.arange(0, 8)",
    "q": "tl.load(x_ptr + e[:, None] * 8 + e[None, :])",
}
_POINTERS = {"x_ptr": "*fp32", "y_ptr": "*fp32", "n_ptr": "*i32"}


@dataclass(frozen=True)
class Case:
    """Examples of rows, one after the other in one kernel."""

    name: str
    examples: tuple[Example, ...]

    def text(self) -> str:
        lines = []
        for example in self.examples:
            stored = example.use or ("y" if example.before.startswith("y = ") else "x")
            lines += [example.before, f"tl.store(y_ptr + i, {stored})"]
        own = {name: count for example in self.examples for name, count in _own_functions(example.before)}
        body = "".join(f"    {line}\n" for line in (*_values(lines), *lines))
        helpers = "".join(_function(name, count) for name, count in own.items() if name != "combine")
        return f"{helpers}\n@triton.jit\ndef {self.name}(x_ptr, y_ptr, n_ptr):\n{body}\n"


def _values(lines: list[str]) -> list[str]:
    """The definitions of the values that the lines speak of."""
    used = {n.id for n in ast.walk(ast.parse("\n".join(lines))) if isinstance(n, ast.Name)}
    for name in reversed(_VALUES):
        if name in used:
            used |= {n.id for n in ast.walk(ast.parse(_VALUES[name])) if isinstance(n, ast.Name)}
    return [f"{name} = {text}" for name, text in _VALUES.items() if name in used]


def _own_functions(statement: str) -> list[tuple[str, int]]:
    """Name and number of arguments of what a statement calls by a name of its own."""
    calls = [n for n in ast.walk(ast.parse(statement)) if isinstance(n, ast.Call) and isinstance(n.func, ast.Name)]
    return [(n.func.id, len(n.args)) for n in calls]


def _function(name: str, arguments: int) -> str:
    names = [f"a{n}" for n in range(arguments)]
    return f"\n@triton.jit\ndef {name}({', '.join(names)}):\n    return {' + '.join(names)} + 1\n\n"


def cases(rows: tuple[Row, ...], which: str, together: int = 1) -> dict[str, Case]:
    """The kernel with the `example` or `near_miss` of each row that has one, by name of the row; so many to a kernel."""
    found = [(row.name, getattr(row, which)) for row in rows if getattr(row, which) is not None]
    out = {}
    for at in range(0, len(found), together):
        part = found[at : at + together]
        case = Case(f"{which}_{part[0][0]}", tuple(example for _, example in part))
        out |= {name: case for name, _ in part}
    return out


def translated(file: Path, chosen: Iterable[Case], target: str, **options) -> TranslateResult:
    """All kernels in one file, those that are refused left out."""
    chosen = tuple(dict.fromkeys(chosen))
    file.write_text(_HEAD + "".join(case.text() for case in chosen))
    attrs = dict.fromkeys(_POINTERS, "DS")
    launches = [{"kernel": case.name, "signature": _POINTERS, "attrs": attrs} for case in chosen]
    specs = parse_launches(json.dumps({"version": 1, "launches": launches}))
    request = TranslateRequest(str(file), target, launches=tuple(specs), keep_going=True, **options)
    with WorkerPool(1) as pool:
        return pool.call("gluonize.translation:translate_kernel", request)


def kernel_text(result: TranslateResult, name: str) -> str:
    """The kernel `name` of the output; the codes of its refusal where there is none."""
    refused = [d.code for o in result.outcomes if o.spec.kernel == name for d in o.diagnostics]
    lines = (result.text or "").splitlines()
    start = next((n for n, line in enumerate(lines) if line.startswith(f"def {name}(")), None)
    if start is None:
        return " ".join(refused) or "nothing was written: " + "; ".join(d.render() for d in result.diagnostics)
    end = next(
        (n for n, line in enumerate(lines) if n > start and line and not line[0].isspace() and line[0] != ")"),
        len(lines),
    )
    return "\n".join(lines[start:end])
