"""Texts of several sizes that differ in where values are converted: which layout is which."""

from __future__ import annotations

from dataclasses import replace

import pytest
from gluonize.general.converted_texts import in_words_of
from gluonize.general.detours import without_detours
from gluonize.general.launches.trials import joinable
from gluonize.gluon.trees.function import parsed
from gluonize.trace.model.layouts import Blocked, DotOperand, Mfma
from gluonize.write.state.emitted import EmittedFunction, EmittedKernel, LaidOut

ROWS = Blocked((1, 4), (16, 4), (4, 1), (1, 0))
COLUMNS = Blocked((4, 1), (4, 16), (1, 4), (0, 1))
MMA = Mfma(version=4, instr_shape=(32, 32, 16), transposed=True, warps_per_cta=(2, 2), element_bitwidth=32)
WIDE = replace(MMA, warps_per_cta=(4, 1))
LAYOUTS = {
    "rows": ROWS,
    "columns": COLUMNS,
    "mma": MMA,
    "a_operand": DotOperand(0, MMA, 8),
    "load": ROWS,
    "a": ROWS,
    "b": ROWS,
}


def emitted(text: str, **layouts) -> EmittedKernel:
    """`z = text` with layouts by their names, those of the text where none are given."""
    function = parsed(f"def kernel(x, y):\n    z = {text}\n    gl.store(y, z)\n")
    found = tuple((layouts or {name: LAYOUTS[name] for name in function.variables if name in LAYOUTS}).items())
    return EmittedKernel(EmittedFunction(function, None, laid_out=LaidOut(function, found)), [])


def text_of(kernel: EmittedKernel) -> str:
    return kernel.kernel.laid_out.function.text.splitlines()[1].strip().removeprefix("z = ")


@pytest.mark.parametrize(
    "own, other, same",
    [
        ("gl.log(x) + y", "gl.log(gl.convert_layout(x, load)) + y", True),
        ("x * 2", "gl.convert_layout(gl.convert_layout(x, a) * 2, b)", True),
        ("gl.log(x) + y", "gl.log(gl.convert_layout(y, load)) + y", False),
        ("gl.convert_layout(x + y, load) * 2", "x + y * 2", False),
        ("gl.zeros([2], gl.int32, rows)", "gl.zeros([2], gl.int32, columns)", False),
        ("gl.log(gl.convert_layout(x, load)) + y", "gl.log(x) + y", False),  # nothing says what `load` is there
    ],
    ids=["converted", "converted-twice", "another-value", "another-order", "another-layout", "unknown"],
)
def test_where_values_are_converted_is_no_other_text(own, other, same):
    """Conversions stand where they cost least, which depends on sizes; what is computed does not."""
    assert (in_words_of(emitted(own), emitted(other)) is not None) == same
    assert not joinable(emitted(own), emitted(other))


def test_an_operand_is_found_by_where_it_stands():
    """Its name counts the layouts before it, of which the other text has more."""
    own = emitted("amd.mfma(gl.convert_layout(x, a_operand), y, gl.zeros([16, 16], gl.float32, mma))")
    text = "amd.mfma(b=y, a=gl.convert_layout(x, a_operand_2), acc=gl.convert_layout(gl.zeros([16, 16], gl.float32, mma), rows))"
    theirs = {"mma": WIDE, "a_operand": DotOperand(1, WIDE, 4), "a_operand_2": DotOperand(0, WIDE, 4), "rows": ROWS}
    found = in_words_of(own, emitted(text, **theirs))
    assert dict(found.kernel.laid_out.constants) == {"a_operand": DotOperand(0, WIDE, 4), "mma": WIDE}


def test_a_product_that_is_none_for_other_sizes_is_another_text():
    own = emitted("gl.zeros([16, 16], gl.float32, mma)")
    assert in_words_of(own, emitted("gl.zeros([16, 16], gl.float32, mma)*1", mma=WIDE)) is None  # another text
    other = emitted("gl.convert_layout(gl.zeros([16, 16], gl.float32, mma), rows)", mma=COLUMNS, rows=ROWS)
    assert in_words_of(own, other) is None
    other = emitted("gl.convert_layout(gl.zeros([16, 16], gl.float32, mma), rows)", mma=WIDE, rows=ROWS)
    assert dict(in_words_of(own, other).kernel.laid_out.constants) == {"mma": WIDE}


def test_what_is_stored_may_lie_as_its_product_does():
    """Whether lanes exchange columns before they store follows from sizes; there is a product in both."""
    layouts = {"mma": MMA, "a_operand": LAYOUTS["a_operand"], "load": ROWS, "store": ROWS}
    text = "gl.convert_layout(mfma(gl.convert_layout(x, a_operand), y, gl.zeros([4], gl.float32, mma)), store)"
    own = emitted(text, **layouts)
    other = emitted(text.replace("y,", "gl.convert_layout(y, load),"), **layouts | {"store": MMA})
    assert dict(in_words_of(own, other).kernel.laid_out.constants)["store"] == MMA
    other = emitted(text.replace("y,", "gl.convert_layout(y, load),"), **layouts | {"mma": ROWS})
    assert in_words_of(own, other) is None


@pytest.mark.parametrize(
    "text, wanted",
    [
        ("gl.convert_layout(gl.convert_layout(x, a), b)", "gl.convert_layout(x, b)"),
        ("gl.convert_layout(gl.permute(gl.convert_layout(x, a), [1, 0]), b)", "gl.convert_layout(gl.permute(x, [1, 0]), b)"),
        ("gl.convert_layout(gl.convert_layout(x, a).T, b)", "gl.convert_layout(x.T, b)"),
        ("gl.convert_layout(gl.reshape(gl.convert_layout(x, a), (8, 1)), b)", "gl.convert_layout(gl.reshape(x, (8, 1)), b)"),
        ("gl.convert_layout(gl.convert_layout(x, a) * gl.convert_layout(y, a), b)", "gl.convert_layout(x, b) * gl.convert_layout(y, b)"),
        (
            "gl.sum(gl.convert_layout(gl.convert_layout(x, a) * gl.convert_layout(y, a), b), axis=1)",
            "gl.sum(gl.convert_layout(x, b) * gl.convert_layout(y, b), axis=1)",
        ),
        ("gl.convert_layout(gl.convert_layout(x + y, a).T, b)", "gl.convert_layout((x + y).T, b)"),
        ("gl.convert_layout(gl.sum(gl.convert_layout(x, a), 1), b)", None),  # a sum is no arithmetic of single elements
        ("gl.convert_layout(gl.convert_layout(x, a) + y, b) + gl.convert_layout(y, a)", None),  # is converted for something else too
        ("gl.convert_layout(gl.convert_layout(x, mma) * 2, a_operand)", None),  # operands have elements several times
    ],
    ids=["twice", "transposed", "T", "reshaped", "product", "argument", "T-of-sum", "sum", "elsewhere", "operand"],
)  # fmt: skip
def test_values_go_straight_to_where_they_are_used(text, wanted):
    found = without_detours(emitted(text))
    assert text_of(found) == (wanted or text)
    assert ("a" in dict(found.kernel.laid_out.constants)) == ("a" in found.kernel.laid_out.function.variables)
    assert wanted is not None or found.kernel.laid_out.constants == emitted(text).kernel.laid_out.constants
