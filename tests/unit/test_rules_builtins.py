"""The rule rows against the Triton that is installed, and the examples and near misses that each of them has."""

import pytest
import triton.language as tl
from rule_examples import Case, cases, kernel_text, translated
from triton.experimental.gluon import language as gl
from triton.runtime.jit import JITCallable

from gluonize.rules import rows
from gluonize.rules.builtins import BUILTINS, ROWS
from gluonize.rules.rows import LANGUAGE, Example
from gluonize.write.calls.kinds import KINDS
from gluonize.write.calls.shapes import RELATIONS

WRITTEN = [row for row in ROWS if row.becomes]
NAMES = {row.name for row in ROWS}


def is_callable_in_kernels(value) -> bool:
    return getattr(value, "__triton_builtin__", False) or isinstance(value, JITCallable)


# Names that Triton has to say that they are gone: they are written as something else before a kernel is traced.
GONE = ("make_block_ptr", "advance")
EXPORTED = sorted(name for name in tl.__all__ if name not in GONE and is_callable_in_kernels(getattr(tl, name)))
METHODS = sorted(
    name
    for name, value in vars(tl.tensor).items()
    if not name.startswith("_") and name not in GONE and is_callable_in_kernels(value)
)
# Rows for names that are neither in triton.language nor methods of tensors.
ELSEWHERE = {
    "mulhi": "libdevice",
    "tanh": "libdevice",
    "pow": "libdevice",
    "ravel_index": "called by Triton's own library",
}


@pytest.mark.parametrize("name", EXPORTED)
def test_every_builtin_of_triton_has_a_row(name):
    assert (
        f"{LANGUAGE}.{name}" in BUILTINS.by_callee
    ), f"Triton exports tl.{name}, and rules/builtins.py has no row for it"


@pytest.mark.parametrize("name", METHODS)
def test_every_method_of_a_tensor_has_a_row(name):
    assert name in NAMES, f"tensors have a method {name}, and rules/builtins.py has no row for it"


@pytest.mark.parametrize("name", sorted(NAMES))
def test_every_row_is_about_something_that_exists(name):
    known = name in tl.__all__ or name in ELSEWHERE or hasattr(tl.tensor, name)
    assert known, f"the row {name} is about nothing that this Triton has"


@pytest.mark.parametrize("row", WRITTEN, ids=lambda row: row.name)
def test_templates_call_what_gluon_has(row):
    function = row.becomes.partition("(")[0]
    module, _, name = function.partition(".")
    assert row.template.holes or function == "gl.barrier"
    if module in ("gl", "tl"):
        assert hasattr({"gl": gl, "tl": tl}[module], name), f"{row.name}: there is no {function}"


def test_most_rows_are_templates():
    assert len(WRITTEN) >= 100 and all(row.note for row in ROWS if not row.becomes and row.kind not in ("descriptor",))


def test_refusals_say_what_to_do():
    assert [row.name for row in ROWS if row.kind == "refuse" and not row.note] == []


# What code writes: an expression that is a tensor of 64 elements.
BY_CODE = {
    "softmax": "tl.softmax(m, 0).reshape([256])[None, :].sum(0).sum(0) + x",
    "flip": "tl.flip(x)",
    "sort": "tl.sort(x)",
    "topk": "tl.topk(x, 16).sum(0) + x",
    "dot": "tl.dot(m, m).reshape([256, 1]).sum(1).sum(0) + x",
    "load": "tl.load(x_ptr + i)",
    "atomic_add": "tl.atomic_add(y_ptr + i, x)",
    "atomic_max": "tl.atomic_max(y_ptr + i, x)",
    "atomic_xchg": "tl.atomic_xchg(y_ptr + i, x)",
    "zeros": "tl.zeros((64,), tl.float32)",
    "cat": "tl.cat(x, x, can_reorder=True).reshape([64, 2]).sum(1)",
    "argmax": "tl.max(x, 0, return_indices=True)[1] + x",
    "expand_dims": "tl.expand_dims(tl.sum(m, 1), 1).broadcast_to([16, 4]).reshape([64])",
}
EXAMPLES, NEAR_MISSES = cases(ROWS, "example"), cases(ROWS, "near_miss", together=12)
CODE = {name: Case(f"code_{name}", (Example(f"y = {text}", ""),)) for name, text in BY_CODE.items()}


@pytest.fixture(scope="module")
def results(tmp_path_factory):
    """By the translator itself, for a 64-lane target; whether the code is right is for the fixtures to say."""
    folder = tmp_path_factory.mktemp("rows")
    kinds = {"example": EXAMPLES, "near_miss": NEAR_MISSES, "code": CODE}
    return {kind: translated(folder / f"{kind}.py", found.values(), "gfx942") for kind, found in kinds.items()}


@pytest.mark.parametrize("name", EXAMPLES)
def test_each_row_writes_its_example(name, results):
    (example,) = EXAMPLES[name].examples
    text = kernel_text(results["example"], EXAMPLES[name].name)
    assert example.after in text, text


@pytest.mark.parametrize("row", [row for row in ROWS if row.near_miss], ids=lambda row: row.name)
def test_each_row_leaves_its_near_miss(row, results):
    text = kernel_text(results["near_miss"], NEAR_MISSES[row.name].name)
    assert row.near_miss.after in text, text


@pytest.mark.parametrize("name", CODE)
def test_what_code_writes_is_translated(name, results):
    assert kernel_text(results["code"], CODE[name].name).startswith("def ")


def test_each_kind_of_row_has_one_object_that_decides():
    assert {*KINDS} == {*rows.KINDS}
    assert {row.layouts[0] for row in ROWS if row.kind == "shape"} <= {*RELATIONS}
