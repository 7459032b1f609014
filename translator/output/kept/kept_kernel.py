"""A kernel for NVIDIA GPUs, op by op for a target with the same machine: its own text, with the counterpart of each operation."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from typing import Any

import libcst as cst
from gluonize.diagnostics import Diagnostic, TranslationError
from gluonize.gluon.trees.function import GluonFunction, statements
from gluonize.gluon.trees.walk import dotted, walk
from gluonize.lift.kernel import read_module
from gluonize.lift.machine.arguments import rounding
from gluonize.lift.machine.machine import NotLifted
from gluonize.numbered import numbered
from gluonize.output.kept.arrivals import Site, arrivals_of
from gluonize.output.kept.kept_functions import Surroundings, kept_function
from gluonize.output.kept.layout_counterparts import (
    Named,
    NoCounterpart,
    given_name,
    is_layout,
    is_products,
    is_shared,
    layout_text,
    products_layout,
)
from gluonize.output.kept.name_places import FunctionText
from gluonize.read.kernels.gluon_kernels import plain_launch, source_target
from gluonize.read.kernels.load import LoadedKernel
from gluonize.read.spec.descriptors import descriptor_type
from gluonize.read.spec.launch import LaunchSpec
from gluonize.read.text.moved_lines import file_line
from gluonize.rules.architecture import Target
from gluonize.rules.nvidia import why_not_kept
from gluonize.trace.front.gluon_source import gluon_trace
from gluonize.trace.front.trace import Frame, Trace
from gluonize.trace.model.elements import bits_of
from gluonize.trace.model.module import Module
from gluonize.triton_api.jit_functions import JITFunction
from gluonize.write.state.emitted import EmittedFunction, EmittedKernel
from gluonize.write.state.reserved_names import free_module_names
from gluonize.write.state.unit import Record, Synthesized

_MODULES = ("tdm", "mbarrier", "async_copy")
_BITS = {"fp64": 64, "fp32": 32, "fp16": 16, "bf16": 16}
_MULTIPLY = '''@gluon.jit
def multiply(a, b, acc, K_WIDTH: gl.constexpr, use_acc=True):
    """acc + a @ b, or a @ b alone; operands in LDS are read into registers."""
    a_operand: gl.constexpr = gl.DotOperandLayout(0, acc.type.layout, K_WIDTH)
    b_operand: gl.constexpr = gl.DotOperandLayout(1, acc.type.layout, K_WIDTH)
    if isinstance(a, gl.tensor):
        left = gl.convert_layout(a, a_operand)
    else:
        left = a.load(a_operand)
    if not use_acc:
        acc = gl.zeros_like(acc)
    return {function}(left, b.load(b_operand), acc)
'''


def keep_structure(
    loaded: LoadedKernel, spec: LaunchSpec, given_target: str | None, wanted: Target
) -> tuple[LaunchSpec, EmittedKernel]:
    """The kernel for one launch with its structure kept, and the launch of that.

    Runs Gluon's front end: call it in a child. Raises: TranslationError `not-kept` at what has no counterpart.
    """
    source = source_target(loaded, spec, given_target)
    _check(loaded, spec, source, wanted)
    free_module_names(loaded)
    module = read_module(loaded, spec, source)
    _check_operations(module, loaded, wanted)
    try:
        arrivals = arrivals_of(module, spec)
    except NotLifted as error:
        place = error.op.place if error.op is not None else None
        at = (place.file, place.line) if place is not None and place.line else (loaded.path, loaded.line)
        raise _refused(at, loaded.fn.__name__, NoCounterpart(error.why), wanted) from None
    trace = gluon_trace(loaded.fn, spec, source, loaded.load_jit)
    return plain_launch(spec), _Keeping(loaded, spec, wanted, arrivals).kernel(trace)


def _check(loaded: LoadedKernel, spec: LaunchSpec, source: str, wanted: Target) -> None:
    """Raises: TranslationError for a target, a source or a launch of which no structure can be kept."""
    at = loaded.path, loaded.line
    if not (wanted.supports_tdm and wanted.supports_warp_specialization):
        why = NoCounterpart("it has no tensor data mover, no barriers in LDS and no partitions of warps")
        raise _refused(at, loaded.fn.__name__, why, wanted)
    if not source.startswith("cuda:"):
        raise _refused(at, loaded.fn.__name__, NoCounterpart(f"it is written for {source}, an AMD GPU"), wanted)
    if spec.options.get("num_ctas", 1) != 1:
        by_hand = (
            "`cluster.arrive` and `cluster.wait`, and a copy that several workgroups get: `cga_layout` of its buffer"
        )
        why = NoCounterpart("programs of several workgroups share copies and barriers in other ways", by_hand)
        raise _refused(at, loaded.fn.__name__, why, wanted)
    for name, value in spec.constexprs.items():
        if any(f"'{marker}'" in repr(value) for marker in ("$class", "$call", "$jit")):
            why = NoCounterpart(
                "what is given to a kernel as a function or a class is not written anew", "the one that it is"
            )
            raise _refused(at, f"the argument {name}", why, wanted)
    for name in rounding(spec):
        raise _refused(at, f"the descriptor {name}", NoCounterpart("its mover does not round what it loads"), wanted)
    for name, kind in spec.signature.items():
        if "tensordesc" in str(kind) and ((found := descriptor_type(kind)) is None or found.image_rank):
            why = NoCounterpart("its mover knows no images, and descriptors in tuples are not taken apart")
            raise _refused(at, f"the descriptor {name}", why, wanted)


def _check_operations(module: Module, loaded: LoadedKernel, wanted: Target) -> None:
    """Raises: TranslationError for the first operation without a counterpart."""
    for op in module.walk():
        found = why_not_kept(op.name) if op.name.startswith("ttng.") else None
        if found is not None:
            at = (op.place.file, op.place.line) if op.place.line else (loaded.path, loaded.line)
            raise _refused(at, op.name.removeprefix("ttng.").replace("_", " "), NoCounterpart(*found), wanted)


class _Keeping:
    """What the functions of one kernel have in common."""

    def __init__(self, loaded: LoadedKernel, spec: LaunchSpec, target: Target, arrivals: Mapping[Site, int]):
        self.loaded, self.spec, self.target, self.arrivals = loaded, spec, target, arrivals
        self.record = Record(target.gluon_module)
        self.names: dict[int, str] = {id(loaded.fn): loaded.fn.__name__}
        self.calls: dict[int, list[int]] = {}

    def kernel(self, trace: Trace) -> EmittedKernel:
        frames: dict[int, list[Frame]] = {}
        for frame in trace.frames:
            if not frame.fn.__module__.startswith("triton."):
                frames.setdefault(id(frame.fn), []).append(frame)
        by_id = {key: own[0].fn for key, own in frames.items()}
        # One text for all the ways in which a function is used.
        functions = {key: self._function(trace.joined(own)) for key, own in frames.items()}
        main = functions.pop(id(self.loaded.fn))
        order = self._callees_first(id(self.loaded.fn))[:-1]
        helpers = [
            EmittedFunction(functions[key].called(self.names[key]), by_id[key]) for key in order if key in functions
        ]
        self._imports([main, *(helper.function for helper in helpers)])
        self.record.reads = {name for name, kind in self.spec.signature.items() if kind == "constexpr"}
        self.record.choose("the structure of the source is kept: copies by the tensor data mover, barriers in LDS")
        return EmittedKernel(EmittedFunction(main, self.loaded.fn), helpers, self.record)

    def _function(self, frame: Frame) -> GluonFunction:
        text = FunctionText.of(frame)
        fn, is_kernel = frame.fn, frame.fn is self.loaded.fn
        lines = range(1, fn.src.count("\n") + 2)
        here = os.path.realpath(fn.file_name or "")
        arrivals = {
            line: count
            for (file, at), count in self.arrivals.items()
            for line in lines
            if os.path.realpath(file) == here and file_line(fn, line) == at
        }
        layouts = self._layout_parameters(frame) if is_kernel else {}
        around = Surroundings(
            self.target,
            arrivals,
            lambda called: self._called(fn, called),
            lambda name, value: self.record.globals_needed.update({name: (value, fn)}),
            lambda line, what, why: self._refusal(fn, line, what, why),
            layouts,
        )
        made = with_barrier(kept_function(text, around))
        return self._with_descriptors(made, around.layouts) if is_kernel else made

    def _layout_parameters(self, frame: Frame) -> dict[str, Any]:
        """Parameters that are layouts: the output is not given them."""
        found = {name: getattr(fact, "value", None) for name, fact in frame.args.items()}
        return {name: value for name, value in found.items() if is_layout(value)}

    def _called(self, caller: JITFunction, fn: JITFunction) -> str:
        taken = {*self.names.values(), "multiply"}
        name = self.names.setdefault(id(fn), numbered(fn.__name__, taken.__contains__))
        self.calls.setdefault(id(caller), []).append(id(fn))
        return name

    def _callees_first(self, key: int) -> list[int]:
        out: list[int] = []

        def reach(function: int) -> None:
            for inner in self.calls.get(function, ()):
                if inner not in out:
                    reach(inner)
            out.append(function)

        reach(key)
        return list(dict.fromkeys(out))

    def _with_descriptors(self, function: GluonFunction, layouts: Mapping[str, Any]) -> GluonFunction:
        """The kernel that makes its descriptors, of which it takes the parts, and its layouts."""
        lines, made = [], []
        for name, layout in layouts.items():
            if not is_shared(layout):  # such a one is written where it is used, for the blocks there
                text = products_layout(layout, self.target) if is_products(layout) else layout_text(layout)
                lines.append(f"{given_name(name)}: gl.constexpr = {text}")
        every = {name: found for name, kind in self.spec.signature.items() if (found := descriptor_type(kind))}
        blocks = {name: ([*found.block], _BITS.get(found.dtype) or _bits(found.dtype)) for name, found in every.items()}
        named = Named({*function.bound, *self.names.values()}, blocks)
        for name, (block, _) in blocks.items():
            parts = f"{name}[0], {name}[1], {name}[2], block_shape={block}, layout={named.of(name)}"
            made.append(f"{name} = tdm.make_tensor_descriptor({parts})")
            self.record.descriptor_tuples.add(name)
        lines += [*named.lines, *made]
        added = [*statements("\n".join(lines))] if lines else []
        return function.with_statements(added, function.statements[len(function.docstring) :])

    def _imports(self, functions: Sequence[GluonFunction]) -> None:
        used = {name for function in functions for name in _roots(function.node)}
        for module in _MODULES:
            if module in used:
                self.record.of_target(module)
        if "multiply" in used:
            product = f"{self.record.amd(self.target.gluon_module)}.{self.target.matrix_kind}"
            self.record.need(Synthesized("multiply", _MULTIPLY.format(function=product)), self.loaded.fn)

    def _refusal(self, fn: Any, line: int, what: str, why: NoCounterpart) -> TranslationError:
        return _refused((fn.file_name or self.loaded.path, file_line(fn, line)), what, why, self.target)


def with_barrier(function: GluonFunction) -> GluonFunction:
    """A function behind whose last initialisation of barriers all warps wait, before any of them arrives at one."""
    made = [i for i, s in enumerate(function.statements) if any(_is_init(n) for n in walk(s))]
    if not made:
        return function
    after = made[-1] + 1
    every = [*function.statements[:after], *statements("gl.barrier()"), *function.statements[after:]]
    return function.with_node(function.node.with_changes(body=function.block.with_changes(body=every)))


def _is_init(node: cst.CSTNode) -> bool:
    return isinstance(node, cst.Call) and dotted(node.func) == "mbarrier.init"


def _roots(node: cst.CSTNode) -> set[str]:
    return {n.value for n in walk(node) if isinstance(n, cst.Name)}


def _bits(element: str) -> int:
    return 8 if element.startswith("fp8") else bits_of(element.replace("u", "i", 1) if element[0] == "u" else element)


def _refused(at: tuple[str, int], what: str, why: NoCounterpart, target: Target) -> TranslationError:
    help = f"by hand: {why.by_hand}; or leave" if why.by_hand else "leave"
    help += " --keep-structure out: the kernel is then lifted"
    message = f"{what} has no counterpart on {target.name} that keeps the structure"
    return TranslationError(Diagnostic("not-kept", message, *at, 1, why.why, help))
