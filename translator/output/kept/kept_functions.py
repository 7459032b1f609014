"""One function of a kernel that keeps its structure: calls become their counterparts, layouts those of the target, all else stays.

mbarrier.expect(full, 8192)                            (nothing: copies with a barrier arrive by themselves)
tma.async_load(a, [m, k], full, slot)                  tdm.async_load(a, [m, k], slot, mbarrier=full)
mbarrier.wait(full, phase, pred=more)                  if more: mbarrier.wait(full, phase)
acc = warpgroup_mma_wait(0, deps=(acc,))               (nothing: products are in order)
"""

from __future__ import annotations

import inspect
import types
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import libcst as cst
from gluonize.gluon.trees.function import GluonFunction, code, expression, statements
from gluonize.gluon.trees.long_lines import with_long_lines_wrapped
from gluonize.gluon.trees.walk import assigned, same, walk
from gluonize.output.kept.layout_counterparts import (
    NoCounterpart,
    given_name,
    is_products,
    is_shared,
    k_width,
    padded,
    products_layout,
)
from gluonize.output.kept.name_places import FunctionText, is_nvidias, nvidia_name
from gluonize.rules.architecture import Target
from gluonize.rules.nvidia import Counterpart, NvidiaRow, counterpart
from gluonize.rules.template import template
from gluonize.trace.front.trace import OpaqueFact, TensorFact
from gluonize.triton_api.gluon_language import gl
from gluonize.triton_api.jit_functions import JITFunction
from gluonize.triton_api.language import tl

# A call of a function for NVIDIA GPUs, with its counterpart's text.
#
# tma.async_load(a, [m, k], bar, slot)   ->   tdm.async_load(a, [m, k], slot, mbarrier=bar)


def arguments_by_name(function: Any, call: cst.Call) -> dict[str, cst.BaseExpression]:
    """The arguments that a call gives, by the parameters of the function. Raises: NoCounterpart for `*` and `**`."""
    if any(argument.star for argument in call.args):
        raise NoCounterpart("it takes its arguments from a sequence", "give each of them")
    plain = getattr(function, "fn", function)
    names = [name for name in inspect.signature(plain).parameters if not name.startswith("_")]
    given = dict(zip(names, (a.value for a in call.args if a.keyword is None)))
    return given | {a.keyword.value: a.value for a in call.args if a.keyword is not None}


def counterpart_call(
    row: Counterpart, given: Mapping[str, cst.BaseExpression], constants: Mapping[str, Any], more: Mapping[str, str]
) -> cst.BaseExpression:
    """The counterpart's expression. constants: values of arguments that are known; more: texts of holes that are no arguments.

    Raises: NoCounterpart for an argument that is not what the counterpart can do.
    """
    for name, value in row.only:
        if name in given and (name not in constants or constants[name] != value):
            raise NoCounterpart(f"its counterpart has no `{name}`")
    texts: dict[str, str | None] = {name: code(node) for name, node in given.items()} | dict(more)
    row_text = template(row.text)
    return expression("".join(row_text.filled({n: texts.get(n) for n in row_text.holes}, lambda text: f"({text})")))


_SAYS = "`NVMMASharedLayout.get_default_for(block, dtype)` where it is made"
GONE = "nothing_stands_for_this"  # in place of a call without a counterpart, until its statement goes


@dataclass(frozen=True)
class Surroundings:
    """What a function is written with. arrivals: of the barriers that are initialised in a line of the function; called: what another
    function is called in the output; needs: is told each name from outside; refused: makes the refusal at a line."""

    target: Target
    arrivals: Mapping[int, int]
    called: Callable[[JITFunction], str]
    needs: Callable[[str, Any], None]
    refused: Callable[[int, str, NoCounterpart], Exception]
    layouts: Mapping[str, Any]  # parameters that are layouts of NVIDIA's


def kept_function(text: FunctionText, around: Surroundings) -> GluonFunction:
    """The function. Raises: TranslationError at what has no counterpart."""
    rewriter = _Rewriter(text, around)
    node = text.function.node.visit(rewriter)
    assert isinstance(node, cst.FunctionDef), "bug in gluonize: a function became something else"
    used = rewriter.removed & {n.value for n in walk(node.body) if isinstance(n, cst.Name)}
    if used:
        why = NoCounterpart("what it is given to does not say of what blocks it is", _SAYS)
        raise around.refused(1, f"the layout {min(used)}", why)
    return with_long_lines_wrapped(text.function.with_node(node), text.function.text)


class _Rewriter(cst.CSTTransformer):
    def __init__(self, text: FunctionText, around: Surroundings):
        super().__init__()
        self.text, self.around = text, around
        self.plain: set[cst.CSTNode] = set()  # names that are no variables: of attributes, keywords, parameters
        self.under: cst.BaseExpression | None = None  # the predicate of the statement
        self.removed: set[str] = set()  # layouts that are written where they are used

    # --- names

    def visit_Attribute(self, node: cst.Attribute) -> None:
        self.plain.add(node.attr)
        owner = self.text.outside(node.value)
        if isinstance(owner, types.ModuleType) and owner not in (gl, tl):
            self.plain.add(node.value)  # all of it is written anew

    def visit_Arg(self, node: cst.Arg) -> None:
        self.plain.add(node.keyword)  # type: ignore[arg-type]

    def visit_Param(self, node: cst.Param) -> None:
        self.plain.add(node.name)

    def visit_FunctionDef(self, node: cst.FunctionDef) -> None:
        self.plain.add(node.name)

    def leave_Name(self, original_node: cst.Name, updated_node: cst.Name) -> cst.BaseExpression:
        if original_node in self.plain:
            return updated_node
        if original_node.value in self.around.layouts:
            if is_shared(self.around.layouts[original_node.value]):
                self.removed.add(original_node.value)  # unless what it is given to says of what blocks it is
                return updated_node
            return cst.Name(given_name(original_node.value))
        value = self.text.outside(original_node)
        if value is None or is_nvidias(value):  # what is called or asked of it says what stands for it
            return updated_node
        return self._named(original_node.value, value, original_node)

    def _named(self, name: str, value: Any, node: cst.CSTNode) -> cst.BaseExpression:
        if value is gl:
            return cst.Name("gl")
        if isinstance(value, JITFunction) and not value.__module__.startswith("triton."):
            return cst.Name(self.around.called(value))
        if getattr(value, "__triton_aggregate__", False):
            why = NoCounterpart(
                "its fields and methods are not written anew", "the class with the target's types in its fields"
            )
            raise self.around.refused(self.text.line(node), f"the class {name}", why)
        self.around.needs(name, value)
        return cst.Name(name)

    def leave_Attribute(self, original_node: cst.Attribute, updated_node: cst.Attribute) -> cst.BaseExpression:
        value, owner = self.text.outside(original_node), self.text.outside(original_node.value)
        if value is None or owner in (gl, tl) or is_nvidias(value):
            return updated_node
        if getattr(gl, original_node.attr.value, None) is value:
            return expression(f"gl.{original_node.attr.value}")
        return self._named(original_node.attr.value, value, original_node)

    # --- calls

    def leave_Call(self, original_node: cst.Call, updated_node: cst.Call) -> cst.BaseExpression:
        function = self.text.outside(original_node.func)
        try:
            if function is gl.warp_specialize:
                return _without_registers(updated_node)
            if function is gl.allocate_shared_memory:
                return self._allocation(original_node, updated_node)
            if function is gl.static_assert and any(self._is_of_layouts(n) for n in walk(original_node)):
                return cst.Name(GONE)  # it holds for the source
            if function is gl.DotOperandLayout:
                return self._operand(original_node, updated_node)
            found = self.text.constant(original_node)
            if is_products(found) or is_shared(found):
                return self._layout(original_node, found, original_node)
            if is_nvidias(function) or getattr(function, "__name__", "").startswith("NVMMA"):
                return self._counterpart(function, original_node, updated_node)
        except NoCounterpart as error:
            raise self.around.refused(self.text.line(original_node), _called(original_node), error) from None
        return updated_node

    def _counterpart(self, function: Any, original: cst.Call, updated: cst.Call) -> cst.BaseExpression:
        name = nvidia_name(function)
        if name.rpartition(".")[2].startswith("NVMMA"):
            raise NoCounterpart("it is not one layout, or the launch does not reach it")
        if name == "mbarrier.MBarrierLayout":
            return expression("mbarrier.MBarrierLayout()")
        if name == "mbarrier.allocate_mbarrier":
            return _barriers(arguments_by_name(function, updated))
        row = counterpart(name)
        if row is None:
            raise NoCounterpart("it is an operation of the machine that the kernel is for")
        if isinstance(row, NvidiaRow):
            raise NoCounterpart(row.why_not, row.data_mover)
        if not getattr(self.around.target, row.needs):
            raise NoCounterpart("the target has nothing of the kind")
        given = arguments_by_name(function, updated)
        before = arguments_by_name(function, original)
        constants = {name: self.text.constant(node) for name, node in before.items()}
        predicate = given.pop("pred", None)
        if predicate is not None and constants["pred"] is not True:
            self.under = predicate
        if row.text == "":
            return cst.Name(GONE)
        if row.text == "{deps}":
            return _one_or_all(given["deps"])
        more: dict[str, str] = {}
        if "{layout}" in row.text:  # of a descriptor that the kernel makes
            given["layout"] = self._of_blocks(before["layout"], constants["block_shape"], given["layout"])
        if "{arrivals}" in row.text:
            more["arrivals"] = str(self._arrivals(original))
        if "{k_width}" in row.text:
            more["k_width"] = str(k_width(self._element(before["a"]), self.around.target))
        return counterpart_call(row, given, constants, more)

    def _is_of_layouts(self, node: cst.CSTNode) -> bool:
        """Whether an expression names a class of NVIDIA's layouts."""
        value = self.text.outside(node) if isinstance(node, (cst.Name, cst.Attribute)) else None
        return isinstance(value, type) and (value.__name__.startswith("NVMMA") or is_nvidias(value))

    def _arrivals(self, call: cst.Call) -> int:
        found = self.around.arrivals.get(self.text.line(call))
        if found is None:
            raise NoCounterpart("nothing arrives at this barrier in the launch, so that its count is not known")
        return found

    def _element(self, node: cst.BaseExpression) -> str:
        for fact in self.text.facts(node):
            if isinstance(fact, TensorFact):
                return _type_name(fact.dtype)
            if isinstance(fact, OpaqueFact) and hasattr(fact.detail, "element_ty"):
                return _type_name(str(fact.detail.element_ty))
        raise NoCounterpart("the launch does not reach it, so that the type of its operands is not known")

    # --- layouts

    def _layout(self, node: cst.CSTNode, layout: Any, call: cst.Call | None) -> cst.BaseExpression:
        try:
            if is_products(layout):
                return expression(products_layout(layout, self.around.target))
            return self._shared(layout, call)
        except NoCounterpart as error:
            raise self.around.refused(self.text.line(node), type(layout).__name__, error) from None

    def _shared(self, layout: Any, call: cst.Call | None) -> cst.BaseExpression:
        """`NVMMASharedLayout.get_default_for(block, dtype)` says for what blocks."""
        if getattr(layout, "fp4_padded", False):
            raise NoCounterpart(
                "elements of 4 bits in bytes of their own", "pack two into a byte, as they lie in memory"
            )
        block = self.text.constant(call.args[0].value) if call is not None and call.args else None
        if call is None:
            raise NoCounterpart("it does not say of what blocks it is", _SAYS)
        if _called(call) != "get_default_for" or not isinstance(block, list):
            return cst.Name(GONE)  # what it is given to says it
        return expression(padded([int(n) for n in block], layout.element_bitwidth))

    def _allocation(self, original: cst.Call, updated: cst.Call) -> cst.BaseExpression:
        """A buffer whose layout is given as a variable gets one for its own blocks."""
        places = [i for i, a in enumerate(original.args) if _keyword(a) == "layout" or i == 2 and a.keyword is None]
        layout = self.text.constant(original.args[places[0]].value) if places else None
        if not is_shared(layout) or isinstance(original.args[places[0]].value, cst.Attribute):
            return updated  # a descriptor's
        shapes = [fact.detail.shape for fact in self.text.facts(original) if hasattr(fact.detail, "shape")]
        if not shapes:
            raise NoCounterpart("the launch does not reach it, so that its shape is not known")
        args = list(updated.args)
        block = [int(n) for n in shapes[0]][-layout.rank :]
        made = self._of_blocks(original.args[places[0]].value, block, args[places[0]].value)
        args[places[0]] = args[places[0]].with_changes(value=made)
        return updated.with_changes(args=args)

    def _of_blocks(self, original: cst.BaseExpression, block: Any, updated: cst.BaseExpression) -> cst.BaseExpression:
        """A layout that is given to what has such blocks."""
        layout = self.text.constant(original)
        if not is_shared(layout) or not isinstance(block, list):
            return updated
        return expression(padded([int(n) for n in block], layout.element_bitwidth))

    def _operand(self, original: cst.Call, updated: cst.Call) -> cst.BaseExpression:
        """The operand of a product has another width."""
        layout = self.text.constant(original)
        if layout is None or not is_products(layout.parent):
            return updated
        width = k_width("fp16" if layout.parent.instr_shape[2] == 16 else "int8", self.around.target)
        args = []
        for i, argument in enumerate(updated.args):
            is_width = _keyword(argument) == "k_width" or i == 2 and argument.keyword is None
            args.append(argument.with_changes(value=cst.Integer(str(width))) if is_width else argument)
        return updated.with_changes(args=args)

    # --- statements

    def visit_SimpleStatementLine(self, node: cst.SimpleStatementLine) -> None:
        self.under = None

    def leave_SimpleStatementLine(
        self, original_node: cst.SimpleStatementLine, updated_node: cst.SimpleStatementLine
    ) -> Any:
        every = [s for s in updated_node.body if not _is_nothing(s)]
        gone = [s for s in every if isinstance(s, (cst.Assign, cst.AnnAssign)) and _is_gone(s.value)]
        self.removed |= {name.value for s in gone for name in assigned(s)}
        kept = [s for s in every if s not in gone]
        if not kept:
            return cst.RemoveFromParent()
        if any(_is_gone(n) for s in kept for n in walk(s)):
            why = NoCounterpart("its value is used, and nothing stands for it")
            raise self.around.refused(self.text.line(original_node), "a value", why)
        line = updated_node if len(kept) == len(updated_node.body) else updated_node.with_changes(body=kept)
        if self.under is None:
            return line
        (test,) = statements("if x:\n    pass")
        body = test.body.with_changes(body=[line.with_changes(leading_lines=())])  # type: ignore[union-attr]
        return test.with_changes(test=self.under, body=body, leading_lines=updated_node.leading_lines)

    def leave_IndentedBlock(self, original_node: cst.IndentedBlock, updated_node: cst.IndentedBlock) -> Any:
        return updated_node if updated_node.body else updated_node.with_changes(body=statements("pass"))

    def leave_For(self, original_node: cst.For, updated_node: cst.For) -> Any:
        return cst.RemoveFromParent() if self._emptied(original_node, updated_node) else updated_node

    def leave_If(self, original_node: cst.If, updated_node: cst.If) -> Any:
        return cst.RemoveFromParent() if self._emptied(original_node, updated_node) else updated_node

    def _emptied(self, original: cst.For | cst.If, updated: cst.For | cst.If) -> bool:
        """Whether nothing of a loop or a branch is left."""
        had = [s for s in original.body.body if not _is_pass(s)]
        return bool(had) and updated.orelse is None and all(_is_pass(s) for s in updated.body.body)


def _is_gone(node: cst.CSTNode | None) -> bool:
    return isinstance(node, cst.Name) and node.value == GONE


def _is_pass(statement: cst.CSTNode) -> bool:
    return isinstance(statement, cst.SimpleStatementLine) and all(isinstance(s, cst.Pass) for s in statement.body)


def _is_nothing(statement: cst.BaseSmallStatement) -> bool:
    """`nothing_stands_for_this`, or `acc = acc`."""
    if isinstance(statement, cst.Expr):
        return _is_gone(statement.value)
    if isinstance(statement, cst.Assign) and len(statement.targets) == 1:
        return same(statement.targets[0].target, statement.value)
    return False


def _called(call: cst.Call) -> str:
    func = call.func
    return (
        func.attr.value if isinstance(func, cst.Attribute) else func.value if isinstance(func, cst.Name) else "a call"
    )


def _keyword(argument: cst.Arg) -> str:
    return argument.keyword.value if argument.keyword is not None else ""


def _type_name(dtype: str) -> str:
    return {"int32": "int32", "i8": "int8"}.get(dtype, dtype)


def _one_or_all(deps: cst.BaseExpression) -> cst.BaseExpression:
    """What a wait for products gives: its one dependence, or all of them."""
    if isinstance(deps, (cst.Tuple, cst.List)) and len(deps.elements) == 1:
        return deps.elements[0].value
    return deps


def _barriers(given: Mapping[str, cst.BaseExpression]) -> cst.BaseExpression:
    """`mbarrier.allocate_mbarrier(batch=2)` in full."""
    if "two_ctas" in given:
        raise NoCounterpart("barriers of two workgroups together")
    one = expression("gl.allocate_shared_memory(gl.int64, [1], mbarrier.MBarrierLayout())")
    if "batch" not in given:
        return one
    several = expression("gl.allocate_shared_memory(gl.int64, [batch, 1], mbarrier.MBarrierLayout())")
    return several.deep_replace(several.args[1].value.elements[0].value, given["batch"])  # type: ignore[attr-defined]


def _without_registers(call: cst.Call) -> cst.BaseExpression:
    """`warp_specialize` without numbers of registers, which are of another machine."""
    kept = ("functions_and_args", "worker_num_warps")
    args = [a for i, a in enumerate(call.args) if i < 2 and a.keyword is None or _keyword(a) in kept]
    return call.with_changes(args=[*args[:-1], args[-1].with_changes(comma=cst.MaybeSentinel.DEFAULT)])
