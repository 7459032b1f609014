"""Calls: the home of what they return, and the Gluon text by the kind of their row in `rules/`."""

from __future__ import annotations

import ast
from collections.abc import Callable, Container, Mapping
from typing import Any

from gluonize.facts.callees import Callee, bind, callee_of, cast_of, first_tensor, is_descriptor, is_helper
from gluonize.facts.function import FunctionFacts
from gluonize.facts.integers.operations import range_of_loop
from gluonize.facts.products import products
from gluonize.facts.refusals import refuse
from gluonize.facts.syntax import arguments_of
from gluonize.gluon.imports import TRITON_LANGUAGE
from gluonize.gluon.written import Part, Written, attribute, call, keyword, literal, operand
from gluonize.rules.builtins import BUILTINS
from gluonize.trace.front.trace import ConstFact, TensorFact, TupleFact
from gluonize.trace.model.layouts import Layout, Slice
from gluonize.triton_api.jit_functions import JITFunction
from gluonize.triton_api.language import tl
from gluonize.write import costs
from gluonize.write.accesses import accesses
from gluonize.write.accesses.addresses import Addressing
from gluonize.write.accesses.run_time import as_tensor
from gluonize.write.calls import helpers, inline_asm, reductions, shape_calls, tuples
from gluonize.write.calls import wants as call_wants
from gluonize.write.calls.helpers import Helpers
from gluonize.write.descriptors import descriptors
from gluonize.write.products import dots, fp8, scaled_dots
from gluonize.write.programs.order import dealt
from gluonize.write.state.call_text import Called, by_template, generic, of_row, with_function
from gluonize.write.state.relations import operands_in
from gluonize.write.state.site import Site
from gluonize.write.state.writing import Cheap, Writing

# Cost and homes -----------------------------------------------------------------------------------------------------


def cheap(facts: FunctionFacts, is_cheap: Cheap, staged: Container[ast.AST], node: ast.Call) -> bool:
    if node in staged:  # reading LDS again in another layout is what LDS is for
        return True
    callee = callee_of(facts, node)
    if callee is None or callee.row is None:
        return False
    if callee.row.cost != "cheap":
        return _made_anew(facts, is_cheap, node, callee)
    if callee.row.kind == "same" or callee.row.kind == "creator" and callee.name != "zeros_like":
        return True
    arguments = arguments_of(node)
    if callee.owner is not None:
        arguments.append(callee.owner)
    return all(is_cheap(a) for a in arguments) or costs.spread(facts, node, callee)


def _made_anew(facts: FunctionFacts, is_cheap: Cheap, node: ast.Call, callee: Callee) -> bool:
    """Whether Triton makes a reshaped value once for each layout that it is wanted in, as an outer product of tiles."""
    data = first_tensor(facts, bind(node, callee)) if callee.name in ("reshape", "view") else None
    if data is None or len(facts.visits(node)) != 1 or facts.tensor(data).rank <= facts.tensor(node).rank:
        return False
    return len(facts.placed_layouts(node)) > 1 and is_cheap(data)


def home(helper: Helpers, held: Mapping[ast.Call, Any], node: ast.Call) -> Layout | None:
    facts, home_of = helper.facts, helper.home
    callee = callee_of(facts, node)
    fact = facts.tensor(node)
    if callee is None or fact is None:
        return None
    if node in held:
        return held[node].layout
    kind = callee.row.kind if callee.row else "helper"
    given = bind(node, callee)
    tensors = [a for a in given.values() if facts.tensor(a) is not None]
    if kind in ("elementwise", "scan", "load", "atomic"):
        for argument in sorted(tensors, key=helper.is_one_value):
            if facts.tensor(argument).rank == fact.rank:
                return home_of(argument)
    if kind == "creator" and callee.name == "zeros_like" and tensors:
        return home_of(tensors[0])
    if kind == "reduce" and tensors:
        axis = reductions.axis_of(facts, given, facts.tensor(tensors[0]).rank)
        parent = reductions.reduce_operand_layout(facts, home_of, node, tensors[0], axis)
        return parent if fact.rank == parent.rank else Slice(axis, parent)
    if kind == "shape":
        return shape_calls.home(facts, home_of, node, callee, given)
    if kind == "gather" and "index" in given:
        return home_of(given["index"])
    if is_helper(facts, node):
        return helpers.return_home(helper, node, callee)
    return None


def tuple_home(helper: Helpers, node: ast.Call, fact: TupleFact) -> tuple:
    facts, home_of = helper.facts, helper.home
    callee = callee_of(facts, node)
    if callee is not None and callee.row is not None:
        kind = callee.row.kind
        given = bind(node, callee)
        tensors = [a for a in given.values() if facts.tensor(a) is not None]
        if kind == "shape" and callee.name == "split" and tensors:
            got = shape_calls.split_home(facts, home_of, node, tensors[0])
            return (got, got)
        if kind == "reduce":
            return reductions.multi_reduce_home(facts, home_of, node, callee, given, fact)
        if kind == "scan" and reductions.operand_fact(facts, reductions.operands_of(given)[0]) is not None:
            got = reductions.scan_layout(facts, home_of, node, reductions.operands_of(given)[0])
            return _for_tensors(fact, lambda f: got)
        if kind == "elementwise" and tensors:
            return _for_tensors(fact, lambda f: home_of(tensors[0]))
        if kind == "shape" and tensors:  # the operand that has all dimensions of what both become
            got = home_of(max(tensors, key=lambda a: facts.tensor(a).rank))
            return _for_tensors(fact, lambda f: got)
    if is_helper(facts, node):
        return helpers.return_homes(helper, node, callee, fact)
    return _for_tensors(fact, lambda f: facts.default_layout(f.shape))


def _for_tensors(fact: TupleFact, layout: Callable[[TensorFact], Layout | None]) -> tuple:
    """A layout for each element of a tuple that is a tensor; None for the others."""
    return tuple(layout(f) if isinstance(f, TensorFact) and f.shape else None for f in fact.items)


def role_of(facts: FunctionFacts, staged: Container[ast.AST], value: ast.expr, name: str) -> tuple[str, int] | None:
    """A role for the layout of `name = value`: `a = tl.load(...)` gives `a_load`."""
    if isinstance(value, ast.Call):
        if value in staged:
            return f"{name}_operand", 1
        callee = callee_of(facts, value)
        if callee is not None and callee.row is not None:
            if callee.row.kind == "load":
                return f"{name}_load", 1
            if callee.row.kind == "dot":
                return None
        if callee is not None and callee.owner is not None and isinstance(callee.owner, ast.Call):
            return role_of(facts, staged, callee.owner, name)
    return None


# Emission -----------------------------------------------------------------------------------------------------------


def emit_statement_call(site: Site, addressing: Addressing, helper: Helpers, node: ast.expr) -> Part:
    if isinstance(node, ast.Call):
        return inline_asm.statement(site.facts, node) or emit_call(site, addressing, helper, node, None)
    return site.emit(node)


def emit_iterator(writing: Writing, node: ast.expr) -> Written:
    """`tl.range(a, b, num_stages=3)` -> `range(a, b)`: Gluon's loops take no schedule, it is written out instead."""
    if not isinstance(node, ast.Call):
        return writing.emit(node)
    fact = writing.facts.fact(node.func)
    if isinstance(fact, ConstFact) and fact.value is tl.range:
        unroll = [k for k in node.keywords if k.arg == "loop_unroll_factor"]
        arguments = [writing.emit(a) for a in node.args]
        bounds = range_of_loop(node, fact)
        if bounds is not None and any(k.arg in ("arg1", "arg2", "step") for k in node.keywords):  # in whatever order
            low, high, step = bounds
            low_text = literal(0) if low is None else writing.emit(low)
            arguments = [low_text, writing.emit(high), *([] if step is None else [writing.emit(step)])]
        if unroll:
            writing.record.imports.add(TRITON_LANGUAGE)
            return call("tl.range", *arguments, keyword("loop_unroll_factor", writing.emit(unroll[0].value)))
        return call("".join(BUILTINS.by_callee["triton.language.range"].template.called({}, operand)), *arguments)
    return writing.emit(node)


def emit_call(site: Site, addressing: Addressing, helper: Helpers, node: ast.Call, want: Any) -> Written:
    if (tile := site.staged.get(node) or site.held.get(node)) is not None:
        return tile.text(site, want or site.home(node))
    callee = callee_of(site.facts, node)
    if callee is None:
        return generic(site, node, {})
    if callee.row is None or callee.row.kind == "helper":
        if isinstance(callee.function, JITFunction):
            return helpers.emit_helper_call(site, helper, node, callee, want)
        return generic(site, node, {})
    kind = callee.row.kind
    if kind == "refuse":
        raise refuse(
            site.facts.frame, node, "builtin-refused", f"`{callee.name}` cannot be translated", callee.row.note
        )
    given = bind(node, callee)
    if callee.owner is not None and is_descriptor(site.facts.fact(callee.owner)):
        return descriptors.emit_method(site, node, callee, given, want)
    if kind == "load":
        return accesses.emit_load(site, addressing, Called(node, callee, given), want)
    if kind == "atomic":
        return accesses.emit_atomic(site, addressing, Called(node, callee, given), want)
    if kind == "store":
        return accesses.emit_store(
            site, addressing, Called(node, callee, given), not site.loops and not site.partitioned
        )
    if kind == "dot":
        return dots.emit_dot(site, node, want)
    if kind == "dot_scaled":
        return scaled_dots.emit_dot_scaled(site, node, given, want)
    return _EMITTERS.get(kind, _elementwise)(site, node, callee, given, want)


def _elementwise(writing: Writing, node: ast.Call, callee: Callee, given, want):
    facts = writing.facts
    fact = facts.tensor(node)
    if callee.name == "inline_asm_elementwise":
        return inline_asm.inline_asm(writing, node, callee, given, want)
    wants, found = want, call_wants.result_of(writing, node, given, want)
    if found is None:
        return generic(writing, node, {})
    shared, want = found
    children = writing.texts(operands_in(facts, given.values(), shared, want), shared)
    value = cast_of(facts, node)
    before = facts.tensor(value) if value is not None else None
    if before is not None and fp8.is_cast(facts, given, before.dtype, fact.dtype):
        text = children.get(value) or writing.operand_in(value, shared, want)
        return fp8.cast(writing, text, before.dtype, fact.dtype, writing.emit(given["dtype"]))
    text = with_function(writing, node, callee, children)
    if fact is not None:
        return text
    own = want if isinstance(want, Layout) else None
    return tuples.in_layouts(writing, text, own, wants)


def _same(writing: Writing, node, callee, given, want):
    if callee.row.template is not None and not callee.row.template.holes:
        return Written(callee.row.becomes, callee.row.template.form)
    text = with_function(writing, node, callee, {})
    return dealt(writing, node, text) if callee.name == "program_id" else text


def _creator(writing: Writing, node: ast.Call, callee: Callee, given, want):
    facts = writing.facts
    fact = facts.tensor(node)
    if fact is None:
        if callee.name == "zeros_like":  # of a scalar, which has no layout
            dtype = facts.fact(node).dtype
            zero = "0.0" if dtype.startswith(("fp", "bf")) else "0"
            values = {"zero": zero, "dtype": f"gl.{products.DTYPE.get(dtype, dtype)}"}
            return by_template(writing.record, callee.row, values, callee.row.of_scalar)
        return with_function(writing, node, callee, {})
    want = want or writing.home(node)
    layout = writing.names.spell(want)
    if not callee.row.template.takes_arguments:
        texts = writing.texts(call_wants.creator_wants(writing, node, callee, given, want))
        return by_template(writing.record, callee.row, {"input": texts[given["input"]]})
    return with_function(writing, node, callee, {}, of_row(callee.row, given, layout))


def _gather(writing: Writing, node, callee, given, want):
    return with_function(
        writing, node, callee, writing.texts(call_wants.gather_wants(writing, node, callee, given, want))
    )


def _histogram(writing: Writing, node, callee, given, want):
    facts = writing.facts
    want = want or writing.home(node)
    data, mask = given["input"], given.get("mask")
    texts = writing.texts(call_wants.histogram_wants(writing, node, callee, given, want), facts.tensor(data))
    values: dict[str, Part | None] = {"input": texts[data], "mask": None}
    if mask in texts:
        values["mask"] = as_tensor(facts, mask, texts[mask])
    values |= {"num_bins": writing.emit(given["num_bins"]), "layout": writing.names.spell(want)}
    return by_template(writing.record, callee.row, values)


def emit_attribute(writing: Writing, node: ast.Attribute, want: Any) -> Written:
    """`x.T`, and fields of namedtuples and aggregates that hold tensors."""
    facts = writing.facts
    base = facts.tensor(node.value)
    if node.attr == "T" and base is not None:
        return shape_calls.permuted(writing, node, node.value, (1, 0), want, lambda text: attribute(text, "T"))
    text = writing.splice(node, {node.value: writing.emit(node.value)})
    homes = writing.home(node.value)
    fact = facts.fact(node.value)
    if isinstance(fact, TupleFact) and fact.fields and isinstance(homes, tuple) and node.attr in fact.fields:
        own = homes[fact.fields.index(node.attr)]
        if want is not None and own != want:
            return writing.convert(text, want)
    return text


def fused_dot(site: Site, node: ast.AST, want: Layout | None) -> Written | None:
    """`acc + tl.dot(a, b)` as one matrix operation with `acc` as accumulator."""
    found = call_wants.fused(site.facts, node)
    return None if found is None else dots.emit_dot(site, found[0], want, accumulator=found[1])


def accumulated_dot(site: Site, s: ast.AugAssign, variant: str, layout: Layout) -> Written | None:
    """`acc += tl.dot(a, b)` as one matrix operation."""
    if call_wants.accumulates(site.facts, s):
        return dots.emit_dot(site, s.value, layout, accumulator_text=variant)
    return None


_EMITTERS = {
    "elementwise": _elementwise,
    "same": _same,
    "creator": _creator,
    "reduce": reductions.emit_reduce,
    "scan": reductions.emit_scan,
    "shape": shape_calls.emit_shape,
    "gather": _gather,
    "histogram": _histogram,
    "descriptor": descriptors.emit_make,
}
