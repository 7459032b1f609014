"""Layouts of variables as the walk finds them: from the uses to the definitions, with nothing written."""

from __future__ import annotations

from pathlib import Path

import pytest

from gluonize.decide.layouts.demands import Round, Wanted
from gluonize.decide.readback.traced_launch import trace_launch
from gluonize.diagnostics import TranslationError
from gluonize.facts.reading import read_function
from gluonize.loops.kernel import kernel_facts
from gluonize.read.kernels.load import load_for_launch
from gluonize.read.spec.launch import LaunchSpec
from gluonize.trace.front.trace import TensorFact
from gluonize.trace.model.layouts import Blocked, Slice
from gluonize.write.accesses import accesses
from gluonize.write.function.rewriter import FunctionRewriter
from gluonize.write.layouts import demand_walk
from gluonize.write.state.relations import operand_layout, sliced
from gluonize.write.state.unit import Unit

ROWS = Blocked((1, 4), (8, 8), (4, 1), (1, 0))
HEAD = """
import triton
import triton.language as tl


@triton.jit
def kernel(x_ptr, y_ptr, N, BLOCK: tl.constexpr):
"""


def rewriter_of(body: str, folder: Path) -> FunctionRewriter:
    path = folder / "kernel.py"
    path.write_text(HEAD + body)
    signature = {"x_ptr": "*fp32", "y_ptr": "*fp32", "N": "i32", "BLOCK": "constexpr"}
    attrs = {"x_ptr": "DS", "y_ptr": "DS", "N": "D"}
    spec = LaunchSpec("t", "kernel", str(path), signature, {"BLOCK": 64}, attrs, {"num_warps": 4, "num_stages": 1})
    traced = trace_launch(load_for_launch(spec).fn, spec, "gfx950")
    facts = read_function(kernel_facts(traced), traced.trace.frames[0])
    return FunctionRewriter(Unit(facts.kernel), facts)


def layouts(rewriter: FunctionRewriter, name: str) -> list[list]:
    """Of each variable of this name the layouts in which it is computed, the one with the author's name first."""
    return [s.variants for s in rewriter.layouts.states.values() if s.web.name == name and s.variants]


TWO_USES = """\
    start = tl.arange(0, BLOCK)
    offs = start * 2
    x = tl.load(x_ptr + offs[:, None] * N + offs[None, :])
    tl.store(y_ptr + offs[:, None] * N + offs[None, :], x)
"""


def test_each_use_has_its_layout_and_the_first_the_name(tmp_path: Path):
    rewriter = rewriter_of(TWO_USES, tmp_path)
    rewriter.layouts.find()
    ((rows, columns),) = layouts(rewriter, "offs")
    assert (rows.dim, columns.dim) == (1, 0) and rows.parent == columns.parent
    assert layouts(rewriter, "start") == [[rows, columns]]


CHAIN = """\
    a = tl.arange(0, BLOCK)
    b = a * 2
    c = b + 1
    tl.store(y_ptr + c, tl.load(x_ptr + c))
"""


def test_what_a_value_is_made_of_is_wanted_with_it(tmp_path: Path):
    rewriter = rewriter_of(CHAIN, tmp_path)
    rewriter.layouts.find()
    (wanted,) = layouts(rewriter, "c")
    assert len(wanted) == 1 and layouts(rewriter, "a") == layouts(rewriter, "b") == [wanted]


CARRIED = """\
    start = tl.arange(0, BLOCK)
    offs = start
    for i in range(N):
        x = tl.load(x_ptr + offs[:, None] + start[None, :])
        tl.store(y_ptr + offs[:, None] + start[None, :], x)
        step = start * 3
        offs += step
"""


def test_what_a_loop_carries_is_wanted_where_it_starts_and_where_it_moves(tmp_path: Path):
    rewriter = rewriter_of(CARRIED, tmp_path)
    rewriter.layouts.find()
    ((rows,),) = layouts(rewriter, "offs")
    assert layouts(rewriter, "step") == [[rows]]
    ((first, second),) = layouts(rewriter, "start")  # in the columns, too, where it is no start of rows
    assert first == rows and isinstance(rows, Slice) and second.dim != rows.dim


def test_a_contradiction_names_both_uses(monkeypatch: pytest.MonkeyPatch, tmp_path: Path):
    layouts, known = (Blocked((2**i,), (64,), (4,), (0,)) for i in range(1000)), demand_walk.DemandWalk.asked

    def asked(self, node, web, want):
        return known(self, node, web, next(layouts) if node.id == "a" else want)

    monkeypatch.setattr(demand_walk.DemandWalk, "asked", asked)
    with pytest.raises(TranslationError) as refused:
        rewriter_of(CHAIN.replace("b + 1", "b + a"), tmp_path).layouts.find()
    (diagnostic,) = refused.value.diagnostics
    assert diagnostic.code == "layout-fixpoint"
    assert all(f"line {line} wants it in gl.BlockedLayout(" in diagnostic.why for line in (9, 10))


def test_a_use_that_the_walk_did_not_foresee_is_refused_with_its_place(monkeypatch: pytest.MonkeyPatch, tmp_path: Path):
    monkeypatch.setattr(
        accesses,
        "store_wants",
        lambda writing, addressing, call, alone: dict.fromkeys(call.given.values(), demand_walk.NOT_READ),
    )
    body = TWO_USES.replace(
        "    tl.store(y_ptr + offs[:, None]", "    cols = offs + 1\n    tl.store(y_ptr + cols[:, None]"
    )
    with pytest.raises(TranslationError) as refused:
        rewriter_of(body, tmp_path).rewrite()
    why = refused.value.diagnostics[0].why
    assert "`cols`: line 12 wants it in gl.SliceLayout(1, " in why and "a bug in gluonize" in why


def test_the_first_unforeseen_use_is_told():
    wanted, found = Wanted(), Round()
    assert found.unforeseen() == ""
    found.demand("x", wanted, ROWS, (3, 4))
    found.demand("x", wanted, Slice(0, ROWS), (2, 4))
    assert found.unforeseen(first_line=10).startswith("`x`: line 12 wants it in gl.BlockedLayout([1, 4], ")


def test_operands_lack_the_leading_dimensions_of_the_result():
    class Facts:
        def tensor(self, node):
            return {"row": TensorFact((64,), "fp32"), "whole": TensorFact((64, 64), "fp32")}.get(node)

    result = TensorFact((64, 64), "fp32")
    wanted = [operand_layout(Facts(), node, result, ROWS) for node in ("row", "whole", "scalar")]
    assert wanted == [Slice(0, ROWS), ROWS, None]
    assert operand_layout(Facts(), "row", None, ROWS) is operand_layout(Facts(), "row", result, None) is None


def test_a_tensor_that_gets_new_axes_is_a_slice_in_each():
    assert sliced(Slice(2, ROWS), ()) == Slice(2, ROWS) and sliced(ROWS, (1,)) == Slice(1, ROWS)
    assert sliced(ROWS, (0, 2)) == sliced(ROWS, (2, 0)) == Slice(0, Slice(2, ROWS))
