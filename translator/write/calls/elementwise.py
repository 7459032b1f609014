"""Calls whose tensors have one layout, and calls that make a tensor: a layout is all that is added to them."""

from __future__ import annotations

from typing import Any

from gluonize.facts.callees import cast_of
from gluonize.facts.function import FunctionFacts
from gluonize.facts.products import products
from gluonize.facts.refusals import refuse
from gluonize.gluon.written import Written
from gluonize.trace.front.trace import TensorFact, TupleFact
from gluonize.trace.model.layouts import Layout
from gluonize.write.calls import inline_asm, tuples
from gluonize.write.calls.helpers import Helpers
from gluonize.write.calls.kind import Kind, LikeOperand, Place, for_tensors, tensors_of
from gluonize.write.products import fp8
from gluonize.write.programs.order import dealt
from gluonize.write.state.call_text import Called, by_template, generic, of_row, with_function
from gluonize.write.state.relations import Wants, operands_in
from gluonize.write.state.writing import Cheap, Writing

_ASSEMBLY = "inline_asm_elementwise"


class Elementwise(LikeOperand):
    """Every tensor argument has the layout of the result."""

    def homes(self, asked: Helpers, call: Called, fact: TupleFact) -> tuple:
        tensors = tensors_of(asked.facts, call)
        return for_tensors(fact, lambda f: asked.home(tensors[0])) if tensors else super().homes(asked, call, fact)

    def wants(self, at: Place, call: Called, want: Any) -> Wants:
        if call.callee.name == _ASSEMBLY:
            return inline_asm.wants(at.site, call.given, want)
        found = _result_of(at.site, call, want)
        return {} if found is None else operands_in(at.site.facts, call.given.values(), *found)

    def text(self, at: Place, call: Called, want: Any) -> Written:
        writing, facts, node = at.site, at.site.facts, call.node
        fact = facts.tensor(node)
        if call.callee.name == _ASSEMBLY:
            return inline_asm.inline_asm(writing, node, call.callee, call.given, want)
        found = _result_of(writing, call, want)
        if found is None:
            return generic(writing, node, {})
        shared, layout = found
        children = writing.texts(operands_in(facts, call.given.values(), shared, layout), shared)
        value = cast_of(facts, node)
        before = facts.tensor(value) if value is not None else None
        if before is not None and fp8.is_cast(facts, call.given, before.dtype, fact.dtype):
            text = children.get(value) or writing.operand_in(value, shared, layout)
            return fp8.cast(writing, text, before.dtype, fact.dtype, writing.emit(call.given["dtype"]))
        text = with_function(writing, node, call.callee, children)
        if fact is not None:
            return text
        return tuples.in_layouts(writing, text, layout if isinstance(layout, Layout) else None, want)


def _result_of(writing: Writing, call: Called, want: Any) -> tuple[TensorFact | None, Layout | None] | None:
    """What the operands of an elementwise call have to fit, and its layout; None for `device_print` and the like, which take any."""
    facts, node = writing.facts, call.node
    fact = facts.tensor(node)
    if fact is not None:
        return fact, want or writing.home(node)
    shapes = [facts.tensor(a) for a in tensors_of(facts, call)]
    if isinstance(facts.fact(node), TupleFact) and shapes:
        shared = max(shapes, key=lambda f: f.rank)
        first = want[0] if isinstance(want, tuple) else None
        return shared, first or writing.home(next(a for a in call.given.values() if facts.tensor(a) is shared))
    return None if shapes else (None, want)


class Same(Kind):
    """Nothing depends on layouts."""

    def cheap(self, facts: FunctionFacts, is_cheap: Cheap, call: Called) -> bool:
        return True

    def text(self, at: Place, call: Called, want: Any) -> Written:
        row = call.callee.row
        if row.template is not None and not row.template.holes:
            return Written(row.becomes, row.template.form)
        text = with_function(at.site, call.node, call.callee, {})
        return dealt(at.site, call.node, text) if call.callee.name == "program_id" else text


class Creator(Kind):
    """The result gets a layout argument, or lies as what it is made like."""

    def cheap(self, facts: FunctionFacts, is_cheap: Cheap, call: Called) -> bool:
        return not _is_like(call) or super().cheap(facts, is_cheap, call)

    def home(self, asked: Helpers, call: Called, fact: TensorFact) -> Layout | None:
        tensors = tensors_of(asked.facts, call)
        return asked.home(tensors[0]) if _is_like(call) and tensors else None

    def wants(self, at: Place, call: Called, want: Any) -> Wants:
        if at.site.facts.tensor(call.node) is None or not _is_like(call):
            return {}
        return {call.given["input"]: want or at.site.home(call.node)}

    def text(self, at: Place, call: Called, want: Any) -> Written:
        writing, row = at.site, call.callee.row
        if writing.facts.tensor(call.node) is None:
            return self._of_scalar(writing, call)
        want = want or writing.home(call.node)
        layout = writing.names.spell(want)
        if _is_like(call):
            texts = writing.texts(self.wants(at, call, want))
            return by_template(writing.record, row, {"input": texts[call.given["input"]]})
        return with_function(writing, call.node, call.callee, {}, of_row(row, call.given, layout))

    def _of_scalar(self, writing: Writing, call: Called) -> Written:
        """What is made like a scalar, which has no layout."""
        row = call.callee.row
        if not _is_like(call):
            return with_function(writing, call.node, call.callee, {})
        dtype = writing.facts.fact(call.node).dtype
        zero = "0.0" if dtype.startswith(("fp", "bf")) else "0"
        values = {"zero": zero, "dtype": f"gl.{products.DTYPE.get(dtype, dtype)}"}
        return by_template(writing.record, row, values, row.of_scalar)


def _is_like(call: Called) -> bool:
    """Whether a tensor is made like another one, as by `zeros_like`, and has its layout."""
    return call.callee.row.layouts == ("same",)


class Refused(Kind):
    """It has no meaning on these targets."""

    def text(self, at: Place, call: Called, want: Any) -> Written:
        what = f"`{call.callee.name}` cannot be translated"
        raise refuse(at.site.facts.frame, call.node, "builtin-refused", what, call.callee.row.note)


__all__ = ["Creator", "Elementwise", "Refused", "Same"]
