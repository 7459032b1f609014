"""What a translation rests on is written down, wherever it rests on something, and agrees with what the launch is checked for."""

from __future__ import annotations

import ast
from dataclasses import replace
from pathlib import Path

import gluonize
import own_modules
import pytest
from gluonize.facts.integers.host_bounds import Condition, argument, number, times
from gluonize.facts.obligations import Obligation, checked
from gluonize.output.contracts.launch_checks import RunTimeContract
from gluonize.product.report.explain.job import explain_launch
from gluonize.read.spec.launch import read_launches
from gluonize.request import TranslateRequest
from gluonize.write.state.unit import Record
from translation_of import dedent, launch

ROOT = Path(gluonize.__file__).parent
FIXTURES = ROOT.parent / "fixtures"


def obligations(source: Path, spec, target: str) -> tuple[Obligation, ...]:
    return explain_launch(TranslateRequest(str(source), target, launches=(spec,)), spec, "rewrite").obligations


def of_text(tmp_path: Path, body: str, signature: dict, target: str = "gfx950", **constexprs):
    path = tmp_path / "source.py"
    head = "import triton\nimport triton.language as tl\n\n\n@triton.jit\n"
    path.write_text(head + dedent(body))
    spec = replace(launch("kernel", signature, constexprs or {"B": 64}), source=str(path))
    return obligations(path, spec, target)


MOVED = """
    def kernel(x_ptr, y_ptr, S, n, B: tl.constexpr):
        offs = tl.arange(0, B)
        row_ptr = x_ptr + tl.program_id(0) * S
        tl.store(y_ptr + offs, tl.load(row_ptr + {added}))
"""
SIGNATURE = {"x_ptr": "*fp32", "y_ptr": "*fp32", "S": "i32", "n": "i32"}


def about_offsets(found) -> set[tuple]:
    return {
        (o.kind, o.expression, o.discharge, str(o.condition or o.arguments), o.line)
        for o in found
        if o.kind not in ("storage", "start")
    }


@pytest.mark.parametrize(
    "added, said",
    [
        ("offs", {("not-negative", "offs", "proven", "()", 9)}),
        (
            "offs * n",
            {
                ("not-negative", "offs * n", "launch", "('n',)", 9),
                ("no-overflow", "offs * n", "launch", "(B - 1) * n <= 2**31 - 1", 9),
                ("reach", "offs * n", "launch", "(B - 1) * n <= 2**29 - 2", 9),
            },
        ),
        ("(offs & 15)", {("not-negative", "offs & 15", "proven", "()", 9)}),
        ("(offs - n)", set()),  # everything is an offset from the tensor
    ],
)
def test_offsets(tmp_path, added, said):
    found = of_text(tmp_path, MOVED.format(added=added), SIGNATURE)
    assert about_offsets(found) == said
    assert checked(found, "storage") == ({"y_ptr"} if said else {"x_ptr", "y_ptr"})
    assert all(o.file.endswith("source.py") for o in found if o.line)


def test_a_helpers_offsets_are_checked_by_the_kernels_argument(tmp_path):
    body = """
        def read(ptr, offs, by):
            return tl.load(ptr + offs * by)


        @triton.jit
        def kernel(x_ptr, y_ptr, S, n, B: tl.constexpr):
            offs = tl.arange(0, B)
            row_ptr = x_ptr + tl.program_id(0) * S
            tl.store(y_ptr + offs, read(row_ptr, offs, n))
    """
    found = of_text(tmp_path, body, SIGNATURE)
    said = [o for o in found if o.expression == "offs * by" and o.kind == "not-negative"]
    assert [o.arguments for o in said] == [("n",)]


def test_what_is_checked_is_what_obligations_say():
    record = Record()
    record.reaches("x_ptr")
    record.obligations.add(Obligation(3, "o * n", "not-negative", "a test", "launch", ("n",)))
    record.obligations.add(Obligation(3, "o", "not-negative", "a test", "proven"))
    condition = Condition(times(number(63), argument("n")), 2**31 - 1)
    record.obligations.add(Obligation(4, "o * n", "no-overflow", "a test", "launch", ("n",), "", condition))
    most = Condition(argument("n"), (2**31 - 1) // 63)
    assert RunTimeContract.of([record]) == RunTimeContract(("x_ptr",), ("n",), (), ((most, "o * n"),))


def test_an_obligation_that_is_checked_names_what():
    with pytest.raises(AssertionError):
        Obligation(3, "o * n", "not-negative", "a test", "launch")
    with pytest.raises(AssertionError):
        Obligation(3, "o * n", "not-negative", "a test", "hoped")


def test_tiles_that_end_with_their_mask_and_bases_that_move(tmp_path):
    source = FIXTURES / "matmul/kernel.py"
    spec, *_ = read_launches(str(FIXTURES / "matmul/launches.json"))
    kinds = {o.kind for o in obligations(source, replace(spec, source=str(source)), "gfx950")}
    assert kinds >= {"storage", "ends", "shrinks", "not-negative"}


# Nothing rests on a fact without one -----------------------------------------------------------------------------------------

NEGATIVE_USES = {
    "may_be_negative",
    "may_start_before",
    "_may_miss",
    "_serves_any_storage",  # each use asks again
    *("why_not_at", "why_not"),  # of a plan: what is written by it asks again (`rests_on`, `access`)
}  # what they cannot prove is written in the safe form


def functions_that_ask() -> dict[str, ast.FunctionDef]:
    """The functions of the translator that ask for the sign of an expression."""
    found = {}
    for path in own_modules.modules("translator"):
        if path.relative_to(ROOT).parts[0] == "facts" or path.parent.name == "block_pointers":
            continue  # block pointers become the safe form where a sign is not known
        text = own_modules.read(path)
        for node in own_modules.nodes(path) if "Signs(" in text or "sign_of(" in text else ():
            if isinstance(node, ast.FunctionDef) and any(
                isinstance(n, ast.Call) and getattr(n.func, "id", "") in ("Signs", "sign_of") for n in ast.walk(node)
            ):
                found[f"{path.relative_to(ROOT)}:{node.name}"] = node
    return found


def test_who_asks_for_a_sign_writes_down_what_it_rests_on():
    asking = functions_that_ask()
    assert len(asking) >= 8
    silent = [
        place
        for place, node in asking.items()
        if node.name not in NEGATIVE_USES
        and not any(isinstance(n, ast.Attribute) and n.attr == "assumed" for n in ast.walk(node))
        and not any(isinstance(n, ast.Name) and n.id == "obligations_of" for n in ast.walk(node))
    ]
    assert not silent


def test_a_contract_has_nothing_that_is_no_obligation():
    fields = set(Record.__dataclass_fields__)
    assert not fields & {"non_negative", "buffer_pointers", "offsets"} and "obligations" in fields
