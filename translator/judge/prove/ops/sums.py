"""What sums mean: reductions, scans, histograms, products of matrices, each of functions along an axis."""

from __future__ import annotations

import re
from collections.abc import Sequence

from gluonize.judge.prove.op_table import row
from gluonize.judge.prove.proof_values import NotProved, Tensor, argument, indices, lam_over, like, moved, wrap
from gluonize.judge.prove.symbolic_program import Machine
from gluonize.judge.prove.terms.decoded import decoded
from gluonize.judge.prove.terms.elements import Term, Terms, is_integer
from gluonize.judge.prove.terms.scaled_maxima import multiplied, ordered, scaled
from gluonize.trace.model.op import Op

# --- sums and the like


def region_terms(m: Machine, op: Op, given: Sequence[Tensor]) -> list[Term]:
    """What the region of a reduction or scan gives, of symbols for its operands."""
    block = op.regions[0].blocks[0]
    if len(op.regions[0].blocks) > 1:
        raise NotProved("branches in a function of elements", op)
    env = dict(m.env)
    for number, (name, kind) in enumerate(block.arguments):
        symbol = m.terms.node("sym", ("operand", number), (), kind.element)
        term = m.terms.integer_of(symbol) if is_integer(kind.element) else symbol
        env[name] = Tensor(term, (), kind.element)
    results = m.pure_block(block, env)
    return [argument(m.terms, x) for x in results]


def over_axis(m: Machine, x: Tensor, axis: int, rest: list[Term]) -> Term:
    """A tensor as a function along one axis, with the other indices given."""
    t, n = m.terms, x.shape[axis]
    along = t.fresh("idxf", "int", 0, n - 1)
    at = [*rest[:axis], t.integer_of(along) if n > 1 else t.integer(0), *rest[axis:]]
    body = moved(t, m.applied(x), x.shape, at)
    return t.lam(body, [along if n > 1 else None])


@row("tt.reduce")
def reduce_op(m: Machine, op: Op, given: list) -> list:
    t, axis = m.terms, op.attribute("axis")
    function = region_terms(m, op, given)
    shape = given[0].shape[:axis] + given[0].shape[axis + 1 :]
    if given[0].shape[axis] == 1:
        return [
            like(moved(t, x.term, x.shape, indices(t, shape)[:axis] + [t.integer(0)] + indices(t, shape)[axis:]), k)
            for x, k in zip(given, op.result_types)
        ]
    factors = []
    while len(given) == 1 and given[0].element == "f32" and ordered(function) and (found := scaled(t, given[0].term)):
        given = [Tensor(found[0], given[0].shape, "f32")]
        factors.append(found[1:])
    operands = [over_axis(m, x, axis, indices(t, shape)) for x in given]
    elements = tuple(x.element for x in given)
    group = t.node("region", (len(function), elements), function, "region")
    out = []
    for number, kind in enumerate(op.result_types):
        made = t.node("reduce", (number, given[0].shape[axis]), (group, *operands), kind.element)
        for by, said in reversed(factors):
            made = multiplied(t, said, (made, by))
        out.append(like(t.integer_of(made) if is_integer(kind.element) else made, kind))
    return out


@row("tt.scan")
def scan_op(m: Machine, op: Op, given: list) -> list:
    t, axis = m.terms, op.attribute("axis")
    function = region_terms(m, op, given)
    at = indices(t, given[0].shape)
    operands = [over_axis(m, x, axis, at[:axis] + at[axis + 1 :]) for x in given]
    group = t.node("region", (len(function), tuple(x.element for x in given)), function, "region")
    out = []
    for number, kind in enumerate(op.result_types):
        data = (number, given[0].shape[axis], bool(op.attribute("reverse", False)))
        made = t.node("scan", data, (group, at[axis], *operands), kind.element)
        out.append(like(t.integer_of(made) if is_integer(kind.element) else made, kind))
    return out


@row("tt.histogram")
def histogram(m: Machine, op: Op, given: list) -> list:
    t = m.terms
    operands = [lam_over(t, argument(t, x), x.shape) for x in given]
    made = t.node(
        "histogram", (given[0].shape, op.type.shape), (t.index(0, op.type.shape[0]), *operands), "int", 0, 1 << 31
    )
    return [like(wrap(t, t.integer_of(made), op.type.element), op.type)]


@row("tt.dot")
def dot(m: Machine, op: Op, given: list) -> list:
    a, b, acc = given[:3]
    how = op.attribute("inputPrecision", "ieee") if a.element == b.element == "f32" else ""
    return [product(m, op, a, b, acc, str(how))]


WIDER = ("f16", "bf16")


def narrow(t: Terms, term: Term) -> Term | None:
    """The number of 8 bits that a number was widened from, which is the same number; None of another. Of widened numbers the product is that of
    the numbers: both have their exact products summed in 32 bits."""
    if term.element == "f16" and (found := decoded(term)) is not None:
        return found
    if term.op == "fp_to_fp" and term.args[0].element.startswith("f8") and term.element in WIDER:
        return term.args[0]
    if term.op == "sel":
        ways = [narrow(t, x) for x in term.args[1:]]
        known = next((x for x in ways if x is not None), None)
        if known is None:
            return None
        ways = [
            (
                t.node("float", y.data, (), known.element)
                if x is None and y.op == "float" and y.data == "0.000000e+00"
                else x
            )
            for x, y in zip(ways, term.args[1:])
        ]
        return None if None in ways else t.select(term.args[0], *ways)
    return None


def product(m: Machine, op: Op, a: Tensor, b: Tensor, acc: Tensor, how: str, scales: Sequence[Term] = ()) -> Tensor:
    """acc + a @ b. What is multiplied is named by the elements of a row and of a column, in order."""
    t, rank = m.terms, len(a.shape)
    pair = [narrow(t, x.term) for x in (a, b)]
    if a.element in WIDER and b.element in WIDER and None not in pair:
        a, b = (Tensor(term, x.shape, term.element) for term, x in zip(pair, (a, b)))
    at = indices(t, acc.shape)
    row_of = over_axis(m, a, rank - 1, at[: rank - 1])
    column_of = over_axis(m, b, rank - 2, [*at[: rank - 2], at[rank - 1]])
    data = (how, a.shape[-1], a.element, b.element)
    made = t.node("dot", data, (row_of, column_of, argument(t, acc), *scales), acc.element)
    return like(t.integer_of(made) if is_integer(acc.element) else made, op.type)


WHOLE = (["e4m3", "e4m3"], ["e5m2", "e5m2"], ["e4m3", "e5m2"], ["e5m2", "e4m3"])  # each number in a byte of its own


@row("tt.dot_scaled")
def dot_scaled(m: Machine, op: Op, given: list) -> list:
    scaled = list(op.keywords("scale"))
    plain = [i for i in range(len(op.operands)) if i not in scaled]
    a, b, acc = (given[i] for i in plain[:3])
    if " lhs = " not in op.body:
        raise NotProved("a scaled product of what is not said", op)
    words = re.findall(r"(?:lhs|rhs) = (\w+)", op.body)
    # Scales of one number: 127 stands for 1.
    if all(given[i].term.constant == 127 for i in scaled):
        scaled = []
    if not scaled and all(x.element.startswith("f8") for x in (a, b)) and words in WHOLE:
        return [product(m, op, a, b, acc, "")]
    return [scaled_product(m, op, a, b, acc, [given[i] for i in scaled], int(1 in scaled))]


def scaled_product(
    m: Machine, op: Op, a: Tensor, b: Tensor, acc: Tensor, scales: Sequence[Tensor], of_a: int
) -> Tensor:
    """acc + (a * scale) @ (b * scale), named by rows and columns and by their scales; how numbers are packed is what the operation says. of_a: how
    many of the scales are those of `a`."""
    t, rank = m.terms, len(a.shape)
    at = indices(t, acc.shape)
    rows, columns = at[: rank - 1], [*at[: rank - 2], at[rank - 1]]
    operands = [over_axis(m, a, rank - 1, rows), over_axis(m, b, rank - 2, columns)]
    for number, scale in enumerate(scales):  # both have a row of scales for each row of the result, and for each column
        operands.append(over_axis(m, scale, rank - 1, rows if number < of_a else columns))
    said = re.sub(r"\{.*\}", "", op.body.partition(" lhs = ")[2])
    data = (
        said,
        a.shape[-1],
        b.shape[-2],
        tuple(x.shape[-1] for x in scales),
        of_a,
        op.attribute("lhs_k_pack", True),
        op.attribute("rhs_k_pack", True),
        op.attribute("fastMath", False),
    )
    made = t.node("dot_scaled", data, (*operands, argument(t, acc)), acc.element)
    return like(made, op.type)
