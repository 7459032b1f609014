"""The module of a kernel that is Gluon already, as Gluon's own front end makes it for the kernel's own target."""

from __future__ import annotations

from typing import Any

from gluonize.read.spec.compile_arguments import compile_arguments
from gluonize.read.spec.launch import LaunchSpec
from gluonize.trace.front.offline import FrontEnd, offline_target
from gluonize.trace.front.trace import Trace, trace_source
from gluonize.trace.model.module import Module
from gluonize.trace.model.parse import parse_module
from gluonize.triton_api.front_end import GluonASTSource
from gluonize.triton_api.libtriton import ir, passes


def gluon_module(fn: Any, spec: LaunchSpec, target: str, load_jit=None) -> Module:
    """The kernel's module with its calls inlined and constants folded; buffers, barriers and loops are as written.

    target: `cuda:90`, `hip:gfx950`. Raises what the front end raises.
    """
    arguments = compile_arguments(spec, fn, load_jit)
    source = GluonASTSource(fn, arguments.signature, arguments.constexprs, arguments.attrs)
    with offline_target(target) as gpu:
        front_end = FrontEnd.of(gpu, spec.options)
        module = front_end.module(source)
        manager = ir.pass_manager(front_end.context)
        passes.common.add_inliner(manager)
        passes.common.add_sccp(manager)
        passes.common.add_cse(manager)
        passes.common.add_canonicalizer(manager)
        passes.common.add_symbol_dce(manager)
        manager.run(module, "lift")
        return parse_module(module.str())


def gluon_trace(fn: Any, spec: LaunchSpec, target: str, load_jit=None) -> Trace:
    """What the expressions of the kernel, and of the functions that it calls, are. Raises what the front end raises."""
    arguments = compile_arguments(spec, fn, load_jit)
    source = GluonASTSource(fn, arguments.signature, arguments.constexprs, arguments.attrs)
    with offline_target(target) as gpu:
        return trace_source(source, gpu, dict(spec.options))
