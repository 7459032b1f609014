"""Every rewrite that rests on a fact writes it down: where code is written for one, and in what comes out of kernels."""

from __future__ import annotations

import ast
import re
from dataclasses import replace
from pathlib import Path

import own_modules
import pytest
from slow_rows import slow

import gluonize
from test_obligations import obligations, of_text
from gluonize.read.spec.launch import read_launches

ROOT = Path(gluonize.__file__).parent
FIXTURES = ROOT.parent / "fixtures"
# What is written because offsets fit, are not negative, or tiles past the end do no harm.
RESTING = re.compile(r"buffer_(?:load|store|atomic)|\.async_(?:load|store|gather|scatter)\b|buffer_load_to_shared")
BACK = ("write", "loops", "decide", "output")
# Functions that only write the text: who calls them has written down what it rests on.
TEXT = {
    "loops/loop/reads.py:tile_copies": "loops/copies/producer.py:_code",
    "write/accesses/accesses.py:_buffer_atomic": "",
    "write/descriptors/tile_functions.py:_memory_statement": "write/descriptors/descriptors.py:_access",
    "write/descriptors/tdm.py:load_text": "write/descriptors/descriptors.py:_access",
    "write/descriptors/tdm.py:store_text": "write/descriptors/descriptors.py:_access",
    "write/descriptors/tdm.py:copy_text": "loops/copies/mover.py:",
    "write/descriptors/tdm_rows.py:_gather": "write/descriptors/tdm_rows.py:access",
    "write/descriptors/tdm_rows.py:_scatter": "write/descriptors/tdm_rows.py:access",
}
READS_ONLY = {
    "write/contracts/contracts.py:uses_of",
    "write/accesses/accesses.py:emit_atomic",
    "decide/readback/traced_launch.py:trace_launch",
}
RECORDS = {"reaches", "rest_on_storage", "check_offsets", "obligations", "assumed", "starts_at"}


def functions() -> dict[str, ast.FunctionDef]:
    found = {}
    for folder in BACK:
        for path in own_modules.modules(f"translator/{folder}"):
            for node in own_modules.nodes(path):
                if isinstance(node, ast.FunctionDef):
                    found[f"{path.relative_to(ROOT)}:{node.name}"] = node
    return found


def writes_it(function: ast.FunctionDef) -> bool:
    body = function.body[1:] if ast.get_docstring(function) else function.body
    texts = (n.value for s in body for n in ast.walk(s) if isinstance(n, ast.Constant) and isinstance(n.value, str))
    return any(RESTING.search(text) for text in texts)


def records(function: ast.FunctionDef) -> bool:
    names = {n.attr for n in ast.walk(function) if isinstance(n, ast.Attribute)}
    return bool(RECORDS & (names | {n.id for n in ast.walk(function) if isinstance(n, ast.Name)}))


def test_who_writes_a_buffer_operation_or_a_copy_writes_down_what_it_rests_on():
    every = functions()
    writing = {place for place, node in every.items() if writes_it(node)} - READS_ONLY
    assert len(writing) >= 9, writing
    assert {place for place in TEXT if place in every} == set(TEXT), "a function of the table is gone"
    for place in sorted(writing):
        answerable = TEXT.get(place) or place
        if answerable.endswith(":"):
            kept = [node for name, node in every.items() if name.startswith(answerable)]
        else:
            kept = [every[answerable]] if answerable in every else []
        assert any(map(records, kept)), f"{place} rests on facts, and {answerable} writes none down"


FOUND = {
    "matmul": ("gfx942", "gfx950", "gfx1250", "gfx1201"),
    "flash_attention": ("gfx950", "gfx1250"),
    "descriptor_matmul": ("gfx1250", "gfx950"),
    "layer_norm": ("gfx950",),
}


@pytest.mark.parametrize(
    "fixture, target",
    [slow((f, t)) if f == "flash_attention" else (f, t) for f, targets in FOUND.items() for t in targets],
)
def test_every_record_says_how_it_is_made_sure_of(fixture: str, target: str):
    source = FIXTURES / fixture / "kernel.py"
    spec, *_ = read_launches(str(FIXTURES / fixture / "launches.json"))
    found = obligations(source, replace(spec, source=str(source)), target)
    assert found and {o.discharge for o in found} <= {"proven", "launch", "contract"}
    assert {o.kind for o in found if o.discharge == "contract"} <= {"start", "apart"}
    stored = {o.expression for o in found if o.kind == "storage"}
    assert all(o.expression in stored for o in found if o.kind == "start")


LOOP = """
    def kernel(x_ptr, w_ptr, y_ptr, S, n, K, B: tl.constexpr):
        offs = tl.arange(0, B)
        acc = tl.zeros((B, B), tl.float32)
        for k in range({bounds}):
            cols = {columns}
            x = tl.load(x_ptr + offs[:, None] * S + cols[None, :], mask={mask}, other=0.0)
            w = tl.load(w_ptr + cols[:, None] * B + offs[None, :])
            acc = tl.dot(x, w, acc)
        tl.store(y_ptr + offs[:, None] * B + offs[None, :], acc)
"""
SIGNATURE = {"x_ptr": "*fp16", "w_ptr": "*fp16", "y_ptr": "*fp32", "S": "i32", "n": "i32", "K": "i32"}


@pytest.mark.one_of(3)
@pytest.mark.parametrize(
    "bounds, columns, mask, said",
    [
        ("0, K, B", "k + offs", "cols[None, :] < K", {r"K \+ B \+ \d+ <= 2\*\*31 - 1", r"K \+ \d+ <= 2\*\*31 - 1"}),
        (
            "tl.cdiv(K, B)",
            "k * B + offs",
            "cols[None, :] < K",
            {r".*K.* \+ B - 1\) // B \+ \d\) \* B.* <= 2\*\*31 - 1"},
        ),
        ("0, 4096, B", "k + offs", "cols[None, :] < 4096", {r"B \+ \d+ <= 2\*\*31 - 1"}),
        ("0, 4096, 32", "k + tl.arange(0, 32)", "cols[None, :] < 4096", set()),  # by the numbers
    ],
)
def test_a_mask_that_ends_with_its_loop_is_checked_past_the_end(bounds, columns, mask, said, tmp_path):
    body = LOOP.format(bounds=bounds, columns=columns, mask=mask)
    found = [o for o in of_text(tmp_path, body, SIGNATURE, B=32) if o.kind == "ends"]
    conditions = {str(o.condition) for o in found if o.condition is not None}
    assert found and all(any(re.fullmatch(one, c) for c in conditions) for one in said), conditions
    assert bool(conditions) == bool(said)
