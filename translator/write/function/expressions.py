"""Expressions of a function: the Gluon text of each in the layout that its user wants."""

from __future__ import annotations

import ast
import functools
import sys
import types
from collections.abc import Container, Sequence
from typing import Any

from gluonize.facts import callees
from gluonize.facts.desugar import Promotion
from gluonize.facts.function import FunctionFacts
from gluonize.facts.refusals import refuse
from gluonize.facts.syntax import ELEMENTWISE_NODES
from gluonize.gluon.code import code_of, joined, spliced
from gluonize.gluon.imports import LIBDEVICE, TRITON_LANGUAGE
from gluonize.gluon.layout_names import LayoutNames
from gluonize.gluon.nodes import ElementType, Name
from gluonize.gluon.written import (
    Part,
    Written,
    attribute,
    binary,
    call,
    converted,
    doing,
    form_of,
    grouped,
    indexed,
    keyword,
    name,
    operand,
    tuple_of,
)
from gluonize.read.names.renamed import is_tritons, resolved
from gluonize.rules.renamed import renamed
from gluonize.trace.front.trace import ConstFact, TensorFact, TupleFact
from gluonize.trace.model.layouts import Layout
from gluonize.triton_api.gluon_language import gl
from gluonize.triton_api.jit_functions import JITCallable
from gluonize.triton_api.language import tensor_descriptor_base, tl
from gluonize.write.accesses import addresses
from gluonize.write.calls import calls
from gluonize.write.calls.kind import Place
from gluonize.write.contracts import contracts
from gluonize.write.descriptors import descriptors
from gluonize.write.layouts.demand_walk import DemandWalk
from gluonize.write.products import dots, invariant, lds_operands
from gluonize.write.state.site import Site
from gluonize.write.state.unit import Record, Unit
from gluonize.write.state.variables import WebState
from gluonize.write.state.writing import Writing

_OPERATORS = {
    ast.Add: "+",
    ast.Sub: "-",
    ast.Mult: "*",
    ast.Div: "/",
    ast.FloorDiv: "//",
    ast.Mod: "%",
    ast.Pow: "**",
    ast.LShift: "<<",
    ast.RShift: ">>",
    ast.BitAnd: "&",
    ast.BitOr: "|",
    ast.BitXor: "^",
}

_LANGUAGE_MODULES = ("triton.language", "triton.language.core", "triton.language.math", "triton.language.standard")


def _is_of_shapes(node: ast.AST, local: Container[str], outer: Container[str]) -> bool:
    """Whether an expression is arithmetic on numbers, local names and shapes, such as `len(x.shape) - 1`: Gluon has the same.

    outer: the names of the function's module.
    """
    if isinstance(node, ast.Name):
        return node.id in local
    parts: list[ast.AST] = []
    if isinstance(node, ast.Call):
        if not (isinstance(node.func, ast.Name) and node.func.id == "len") or node.keywords:
            return False
        if "len" in local or "len" in outer:
            return False
        parts = node.args
    elif isinstance(node, ast.Attribute):
        if node.attr != "shape":
            return False
        parts = [node.value]
    elif isinstance(node, (*ELEMENTWISE_NODES, ast.Subscript)):
        parts = [n for n in ast.iter_child_nodes(node) if isinstance(n, ast.expr)]
    elif not isinstance(node, ast.Constant):
        return False
    return all(_is_of_shapes(part, local, outer) for part in parts)


class Expressions:
    """`emit(node, want)` returns the text for `node` in the layout `want`. layouts: what is found of the function's variables."""

    unit: Unit
    facts: FunctionFacts
    layouts: DemandWalk
    names: LayoutNames
    record: Record
    writing: Writing
    site: Site
    place: Place
    redefined: frozenset[str]

    def emit(self, node: ast.AST, want: Any = None) -> Written:
        """The Gluon text for `node`; a tensor comes in layout `want` (None: in whatever layout is at hand)."""
        fact = self.facts.fact(node)
        if not (isinstance(fact, TensorFact) and fact.shape):
            return self.construct(node, want)
        if isinstance(node, ast.Name):
            return self.use(node, want)
        if want is None:
            want = self.layouts.home(node)
        layout = self.layouts.made_in(node, want)
        text = self.construct(node, layout)
        return text if layout == want else self.convert(text, want)

    def convert(self, text: Written, layout: Layout) -> Written:
        return converted(text, self.names.spell(layout))

    def splice(self, node: ast.AST, children: dict[ast.AST, Written], more: Sequence[Part] = ()) -> Written:
        source, edits = self.facts.source, []
        tight = isinstance(node, (ast.BinOp, ast.Compare, ast.UnaryOp, ast.BoolOp, ast.Attribute))
        for child, text in children.items():
            if text == source.of(child):
                continue
            in_operation = tight or isinstance(node, ast.Subscript) and child is node.value
            edits.append((child, operand(text) if in_operation and not text.is_like(child) else text))
        spans: list[tuple[int, int, Any]] = [(*source.span(child), new) for child, new in edits]
        if more:
            start, end, separator = source.place_behind(node)
            spans.append((start, end, code_of(separator, joined(", ", more), ")")))
        is_open = source.is_open(node, [(child, new.open) for child, new in edits])
        tuple_like = isinstance(node, ast.Tuple) and source.is_grouped(node)
        does = doing([*children.values(), *more])
        return Written(spliced(source.text, *source.span(node), spans), form_of(node), tuple_like, is_open, does)

    def construct(self, node: ast.AST, want: Any) -> Written:
        """Like `emit`, with no conversion around the whole node unless its kind demands one."""
        if isinstance(node, ast.Name):
            return self.use(node, want)
        if isinstance(node, ast.Call):
            if _asks_for_descriptor(self.facts, node):
                return Written(f"not isinstance({self.emit(node.args[0])}, gl.tensor)", ast.Not)
            return calls.emit_call(self.place, node, want)
        if isinstance(node, ast.Attribute):
            return self.attribute(node, want)
        if isinstance(node, ast.Subscript):
            return self.subscript(node, want)
        if isinstance(node, ast.NamedExpr):
            return self.named(node, want)
        if node in self.layouts.of_loops.clips:
            return self.layouts.of_loops.clips[node].text(self.writing, want)
        if isinstance(node, ELEMENTWISE_NODES):
            return self.elementwise(node, want)
        if isinstance(node, (ast.Tuple, ast.List)):
            wants = want if isinstance(want, tuple) else (None,) * len(node.elts)
            return self.splice(node, {e: self.emit(e, w) for e, w in zip(node.elts, wants)})
        children = {c: self.emit(c) for c in ast.iter_child_nodes(node) if isinstance(c, ast.expr) and _spanned(c)}
        if isinstance(node, (ast.JoinedStr, ast.Lambda, ast.Constant)):
            return self.splice(node, {})
        return self.splice(node, children)

    def named(self, node: ast.NamedExpr, want: Layout | None) -> Written:
        """`(x := value)`: the variable has one layout, and what stands around it may want another."""
        own = self.layouts.named_in(node, want)
        text = self.splice(node, {node.value: self.emit(node.value, own)})
        return text if want in (None, own) else self.convert(text, want)

    def elementwise(self, node: ast.AST, want: Layout | None) -> Written:
        fact = self.facts.tensor(node)
        if (fused := dots.fused_dot(self.site, node, want)) is not None:
            return fused
        wants = self.layouts.operands_of(node, want)
        refused = {c: text for c in wants if (text := self.untaken_arm(node, c)) is not None}
        children = self.writing.texts({c: w for c, w in wants.items() if c not in refused}, fact) | refused
        if isinstance(node, Promotion):
            left, right = (operand(children[c]) for c in (node.left, node.right))
            return binary(left, _OPERATORS[type(node.op)], right)
        return self.splice(node, children)

    def untaken_arm(self, node: ast.AST, child: ast.expr) -> Written | None:
        """The refusal that stands for a call in the arm of a conditional expression which this specialization leaves out."""
        if (
            not isinstance(node, ast.IfExp)
            or child is node.test
            or not isinstance(self.facts.fact(node.test), ConstFact)
        ):
            return None
        if self.facts.taken(child):
            return None
        # A pipelined loop fetches the tiles of the other arm.
        fetched = any(n in self.layouts.of_loops.staged or n in self.layouts.of_loops.held for n in ast.walk(node))
        if not fetched and not any(isinstance(n, ast.Call) for n in ast.walk(child)):
            return None
        if not fetched and _is_of_shapes(child, self.layouts.locals, self.facts.frame.fn.__globals__):
            names = [n for n in ast.walk(child) if isinstance(n, ast.Name) and n.id in self.layouts.locals]
            return self.splice(child, {n: self.emit(n) for n in sorted(names, key=self.facts.source.span)})
        test = self.facts.source.of(node.test)
        condition = test if child is node.body else contracts.negated(test)
        return Written(contracts.untranslated(condition), ast.Call)

    def use(self, node: ast.Name, want: Any) -> Written:
        if (literal := getattr(node, "literal", None)) is not None:
            return name(literal)
        web = self.facts.webs.of_use.get(node)
        if web is None:
            if isinstance(node.ctx, ast.Load) and node.id not in self.layouts.locals:
                first, *attributes = self.global_name(node).split(".")
                return functools.reduce(attribute, attributes, name(first))
            return name(node.id)
        fact = self.facts.fact(node)
        if isinstance(fact, TupleFact):
            return self.tuple_in(name(node.id), self.layouts.web_home(web), want)
        if not (isinstance(fact, TensorFact) and fact.shape):
            if (
                isinstance(fact, TensorFact)
                and fact.is_pointer
                and (split := self.layouts.state(web).split) is not None
            ):
                return grouped(binary(name(split.root), "+", name(addresses.scalar_name(self.layouts.fresh, web))))
            return name(node.id)
        state, want = self.layouts.state(web), self.layouts.asked(node, web, want)
        if state.split:
            base, offsets = addresses.names_of(self.layouts.fresh, self.names, state, want)
            return grouped(binary(name(base), "+", name(offsets)))
        if state.cheap:
            return name(self.variant_name(state, want))
        if want == state.home:
            return name(node.id)
        if web.in_expression:
            return self.convert(name(node.id), want)
        if invariant.moved_before(self.facts, self.layouts.loops, web) or invariant.moved_where_loaded(
            self.facts, self.layouts.of_loops.staged, node, web
        ):
            return name(self.names.variant(node.id, want))
        if invariant.is_row_before_loop(self.facts, self.layouts.loops, node, web):
            return invariant.row_before_loop(self.site, node, want)
        return lds_operands.moved_through_lds(self.site, web, want, node) or self.convert(name(node.id), want)

    def tuple_in(self, value: Written, homes: Any, want: Any) -> Written:
        """A variable that is a tuple, with its tensors in the layouts `want`: those that lie elsewhere are moved."""
        if not isinstance(homes, tuple) or not isinstance(want, tuple) or len(homes) != len(want):
            return value
        items = [indexed(value, str(i)) for i in range(len(homes))]
        moves = [isinstance(to, Layout) and to != home for home, to in zip(homes, want)]
        parts = [self.convert(item, to) if moved else item for item, to, moved in zip(items, want, moves)]
        return tuple_of(*parts) if any(moves) else value

    def variant_name(self, state: WebState, layout: Layout) -> Name:
        name = state.web.name
        return name if self.primary(state) == layout else self.names.variant(name, layout)

    def primary(self, state: WebState) -> Layout:
        """The variant that keeps the author's name.

        Where a variable is redefined from itself (`x = f(x)`), all its webs agree on it: the new variants are assigned
        one after the other, and none may overwrite what the next one still reads. A prologue has its own name for them.
        """
        if self.redefined.isdisjoint(d.name for d in state.web.definitions):
            return state.variants[0]
        same = [
            s
            for s in self.layouts.states.values()
            if s.web.name == state.web.name and s.cheap and s.variants and not s.split
        ]
        first = min(same, key=lambda s: s.first_use[s.variants[0]])
        return first.variants[0]

    def global_name(self, node: ast.Name) -> str:
        name = node.id
        env = self.facts.frame.fn.__globals__
        if name in env:
            value = env[name]
        else:
            fact = self.facts.fact(node)
            value = fact.value if isinstance(fact, ConstFact) else None
            if value is None or name in (
                "min",
                "max",
                "range",
                "len",
                "int",
                "float",
                "isinstance",
                "getattr",
                "hasattr",
            ):
                return name
            if name in vars(__builtins__) if isinstance(__builtins__, types.ModuleType) else name in __builtins__:
                return name
        self.refuse_nvidia(node, value)
        if (member := _member_of_language(value)) is not None:
            return self.in_language(*member)
        self.record.globals_needed[name] = (value, self.facts.frame.fn)
        return name

    def refuse_nvidia(self, node: ast.AST, value: Any) -> None:
        """Raises for what is written in PTX: the AMD compiler drops that without a message."""
        module = getattr(value, "__module__", None) or ""
        if module.startswith("triton.language.extra.cuda"):
            what = f"`{getattr(value, '__name__', value)}` exists on NVIDIA GPUs only"
            why = "it is PTX assembly, which the AMD compiler drops without a message"
            help = "for clocks and ids there are tl.program_id and AMDGCN assembly (tl.inline_asm_elementwise)"
            if module.endswith("libdevice"):
                why = "it is a function of NVIDIA's device library, which is not linked for AMD"
                help = "import libdevice from triton.language.extra: it is the target's own, with most of the same functions"
            raise refuse(self.facts.frame, node, "nvidia-only", what, why, help)

    def attribute(self, node: ast.Attribute, want: Any) -> Written:
        if (static := self.static_attribute(node)) is not None:
            return Written(static, ast.Attribute if "." in static else ast.Name)
        base = node.value
        if (spelled := descriptors.attribute(self.facts, self.unit.decided, self.emit, node)) is not None:
            return spelled
        if (typed := callees.element_type_of(self.facts, node)) is not None:
            return self.site.expression(ElementType(typed.id))
        if node.attr in ("dtype", "shape") and isinstance(base, ast.Name) and base in self.facts.webs.of_use:
            if self.facts.tensor(base) is not None and self.layouts.state(self.facts.webs.of_use[base]).split is None:
                # The same in all its layouts: none is asked for.
                return (
                    self.site.expression(ElementType(base.id))
                    if node.attr == "dtype"
                    else attribute(name(base.id), "shape")
                )
        if self.facts.tensor(node) is not None:  # x.T and namedtuple or aggregate fields
            return calls.emit_attribute(self.site, node, want)
        if self.facts.tensor(base) is not None and isinstance(base, ast.Name) and base in self.facts.webs.of_use:
            state = self.layouts.state(self.facts.webs.of_use[base])
            if state.split and not self.layouts.rebound(state.split.root):
                return attribute(name(state.split.root), node.attr)
        return self.splice(node, {base: self.emit(base)})

    def static_value(self, node: ast.AST) -> Any:
        """The object that a dotted global name denotes, or None."""
        if isinstance(node, ast.Name):
            return self.facts.frame.fn.__globals__.get(node.id) if node.id not in self.layouts.locals else None
        if isinstance(node, ast.Attribute):
            base = self.static_value(node.value)
            return getattr(base, node.attr, None) if isinstance(base, (types.ModuleType, type)) else None
        return None

    def static_attribute(self, node: ast.Attribute) -> str | None:
        """`tl.float32` -> `gl.float32`: attributes of Triton's language modules that Gluon has too."""
        base = self.static_value(node.value)
        if not isinstance(base, types.ModuleType):
            return None
        self.refuse_nvidia(node, getattr(base, node.attr, None))
        module = base.__name__
        if (moved := self.moved(node, base)) is not None:
            return moved
        if module in _LANGUAGE_MODULES:
            if isinstance(getattr(base, node.attr, None), types.ModuleType):
                return None
            return self.in_language(module, node.attr)
        top = module.partition(".")[0]
        value = getattr(base, node.attr, None)
        if top != "triton" and top not in sys.stdlib_module_names and isinstance(value, (JITCallable, tl.constexpr)):
            if node.attr not in self.layouts.locals:  # a function or constant of the user's own package comes along
                self.record.globals_needed[node.attr] = (value, self.facts.frame.fn)
                return node.attr
        return None

    def moved(self, node: ast.Attribute, base: types.ModuleType) -> str | None:
        """`tl.libdevice.tanh` -> `libdevice.tanh`: a name that Triton has moved, where it is today; None for one that it has not."""
        dotted = f"{base.__name__}.{node.attr}"
        row = renamed(dotted) if is_tritons(base) else None
        if row is not None and resolved(dotted) is None:
            home, _, last = (row.applied(dotted) or "").rpartition(".")
        elif isinstance(node.value, ast.Attribute) and is_tritons(outer := self.static_value(node.value.value)):
            if base.__name__ == f"{outer.__name__}.{node.value.attr}":
                return None
            home, last = base.__name__, node.attr
        else:
            return None
        if home == LIBDEVICE.meaning.replace(":", "."):
            self.record.imports.add(LIBDEVICE)
            return f"{LIBDEVICE.binds}.{last}"
        if hasattr(gl, last):
            return f"gl.{last}"
        self.record.imports.add(TRITON_LANGUAGE)
        return f"tl.{last}"

    def in_language(self, module: str, attr: str) -> str:
        """A name of one of Triton's language modules, as Gluon's where that has it too."""
        if hasattr(gl, attr):
            return f"gl.{attr}"
        self.record.imports.add(TRITON_LANGUAGE)
        inner = module.removeprefix("triton.language")
        return f"tl.{attr}" if not inner or hasattr(tl, attr) else f"tl{inner}.{attr}"

    def subscript(self, node: ast.Subscript, want: Any) -> Written:
        base = self.facts.tensor(node.value)
        if base is None:
            fact = self.facts.fact(node.value)
            if isinstance(fact, TensorFact):  # scalar[None]: a tensor of one element
                result = self.facts.tensor(node)
                shape = ", ".join("1" for _ in result.shape)
                scalar = self.emit(node.value)
                own = keyword("layout", self.names.spell(want))
                return call("gl.full", f"[{shape}]", scalar, attribute(scalar, "dtype"), own)
            text = self.splice(node, {node.value: self.emit(node.value), node.slice: self.emit(node.slice)})
            if isinstance(fact, TupleFact) and isinstance(want, Layout):
                homes = self.layouts.home(node.value)
                index = self.facts.fact(node.slice)
                home = homes[index.value] if homes and isinstance(index, ConstFact) else None
                if home != want:
                    return self.convert(text, want)
            return text
        return self.splice(node, self.writing.texts(self.layouts.subscript_parts(node, want)))


def _asks_for_descriptor(facts: Any, node: ast.Call) -> bool:
    """Whether a call is `isinstance(x, tl.tensor_descriptor)`: a descriptor is of another type in Gluon, or a tuple, but never a tensor."""
    if facts.source.of(node.func) != "isinstance" or len(node.args) != 2:
        return False
    kinds = facts.fact(node.args[1])
    return isinstance(kinds, ConstFact) and kinds.value in (tl.tensor_descriptor, tensor_descriptor_base)


def _member_of_language(value: Any) -> tuple[str, str] | None:
    """The module of Triton's language that a function comes from and its name there, whatever a file calls it."""
    attr = getattr(value, "__name__", None)
    if not isinstance(attr, str) or not isinstance(value, (types.FunctionType, JITCallable)):
        return None
    modules = (module for module in _LANGUAGE_MODULES if getattr(sys.modules[module], attr, None) is value)
    return next(((module, attr) for module in modules), None)


def _spanned(node: ast.AST) -> bool:
    return hasattr(node, "lineno")
