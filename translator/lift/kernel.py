"""A kernel that is Gluon already, as the Triton kernel that it computes, ready to be read like any other source."""

from __future__ import annotations

import hashlib
import os
import tempfile
from dataclasses import dataclass, replace
from typing import Any

from gluonize.diagnostics import Diagnostic, TranslationError
from gluonize.lift.loops.rolled import rolled
from gluonize.lift.loops.sizes import runs_of
from gluonize.lift.loops.unify import Unifier
from gluonize.lift.machine.machine import NotLifted
from gluonize.lift.text.scaled import check_scales
from gluonize.lift.text.source import Emitter
from gluonize.lift.values.parts import merged
from gluonize.lift.values.scalars import NAMES
from gluonize.read.kernels.gluon_kernels import plain_launch, source_target
from gluonize.read.kernels.load import LoadedKernel, explain_trace_error, load_kernel
from gluonize.read.spec.launch import LaunchSpec
from gluonize.rules.architecture import Target
from gluonize.trace.front.gluon_source import gluon_module
from gluonize.trace.model.module import Module
from gluonize.triton_api.front_end import CompilationError

HEAD = '''"""What {kernel} of {file} computes, in Triton: without layouts, buffers, barriers and partitions."""

import triton
import triton.language as tl


'''


@dataclass(frozen=True)
class LiftedKernel:
    """text: of a module with the kernel. spec: its launch. loaded: the kernel, read from `text`."""

    text: str
    spec: LaunchSpec
    loaded: LoadedKernel


def lift_kernel(
    loaded: LoadedKernel, spec: LaunchSpec, given_target: str | None = None, wanted: Target | None = None
) -> LiftedKernel:
    """Lift the kernel for one launch. given_target: what it is written for, else the launch's target or what it imports.

    wanted: what it will be translated for, where that is known: what that has no way to compute is refused.

    Runs Gluon's front end: call it in a child. Raises: TranslationError `not-lifted` at the operation that cannot be lifted.
    """
    target = source_target(loaded, spec, given_target)
    module = read_module(loaded, spec, target)
    try:
        if wanted is not None:
            check_scales(module, wanted)
        body = lifted_body(module, spec, loaded.fn.__name__, wanted)
    except NotLifted as error:
        raise _refusal(loaded, error) from None
    text = HEAD.format(kernel=loaded.fn.__name__, file=os.path.basename(loaded.path)) + "\n\n".join(
        [*body.helpers, _function(loaded, spec, body.lines)]
    )
    lifted = plain_launch(spec, body.blocks)
    path = _written(text, loaded.fn.__name__)
    own = load_kernel(path, loaded.fn.__name__)
    return LiftedKernel(text, replace(lifted, kernel=loaded.fn.__name__, source=path), own)


def read_module(loaded: LoadedKernel, spec: LaunchSpec, target: str) -> Module:
    """The kernel's module for its own target. Raises: TranslationError for what Gluon does not accept."""
    try:
        return gluon_module(loaded.fn, spec, target, loaded.load_jit)
    except (CompilationError, RuntimeError) as error:
        if not isinstance(error, CompilationError) and "error encountered during parsing" not in str(error):
            raise  # not the verifier's
        why = str(error).strip().splitlines()[-1]
        explained = explain_trace_error(loaded, error) if isinstance(error, CompilationError) else None
        raise explained or TranslationError(
            Diagnostic(
                "triton-refuses", f"Gluon does not accept this kernel for {target}", loaded.path, loaded.line, 1, why
            )
        ) from error


@dataclass(frozen=True)
class Body:
    """lines: of the lifted kernel. blocks: of descriptors that have others than before. helpers: texts of functions that it calls."""

    lines: list[str]
    blocks: dict[str, tuple[int, ...]]
    helpers: list[str]


def lifted_body(module: Module, spec: LaunchSpec, name: str, wanted: Target | None = None) -> Body:
    """The body of the lifted kernel `name`. Raises: NotLifted."""
    NAMES.clear()  # of another kernel
    unifier = Unifier(runs_of(module, spec))
    tree, blocks = merged(unifier.graph, unifier.tree())
    tree = rolled(unifier.graph, tree)
    if not tree:
        raise NotLifted("it stores nothing")
    emitter = Emitter(list(spec.signature) + _parameters(module), name, wanted)
    lines = emitter.body(tree)
    return Body(lines, blocks, [helper.text for helper in emitter.helpers.values()])


def _parameters(module: Module) -> list[str]:
    return [name.partition(".")[0] for name in module.entry.argument_names]


def _function(loaded: LoadedKernel, spec: LaunchSpec, lines: list[str]) -> str:
    """`def` with the author's parameters; compile-time ones are what the launch says, and asserted."""
    parameters, asserts = [], []
    for param in loaded.fn.params:
        fixed = spec.signature.get(param.name, "constexpr") == "constexpr"
        parameters.append(f"{param.name}: tl.constexpr" if fixed and param.is_constexpr else param.name)
        if fixed and param.is_constexpr and param.has_default and isinstance(param.default, (int, str, float)):
            parameters[-1] += f" = {param.default!r}"
        value = spec.constexprs.get(param.name, param.default if param.has_default else None)
        if fixed and isinstance(value, (int, str)) and param.is_constexpr:
            asserts.append(f"tl.static_assert({param.name} == {value!r})")
    body = "\n".join("    " + line for line in [*asserts, *lines])
    return f"@triton.jit\ndef {loaded.fn.__name__}({', '.join(parameters)}):\n{body}\n"


def together(texts: list[str]) -> str:
    """Lifted modules as one file."""
    first, *others = texts
    return first + "".join("\n\n" + text[text.index("@triton.jit") :] for text in others)


def _written(text: str, name: str) -> str:
    """The module in a file named after its contents, which stays: Triton reads the text of a kernel from its file."""
    folder = os.path.join(
        tempfile.gettempdir(), f"gluonize-lifted-{os.getuid()}", hashlib.sha256(text.encode()).hexdigest()[:16]
    )
    os.makedirs(folder, mode=0o700, exist_ok=True)
    path = os.path.join(folder, f"{name}.py")
    if not os.path.exists(path):
        with open(f"{path}.{os.getpid()}", "w", encoding="utf-8") as file:
            file.write(text)
        os.replace(f"{path}.{os.getpid()}", path)
    return path


def _refusal(loaded: LoadedKernel, error: NotLifted) -> TranslationError:
    place: Any = getattr(error, "place", None) or (error.op.place if error.op is not None else None)
    at = (place.file, place.line, place.column) if place is not None and place.line else (loaded.path, loaded.line, 1)
    name = f" ({error.op.name.partition('.')[2].replace('_', ' ')})" if error.op is not None else ""
    message = f"{loaded.fn.__name__} cannot be lifted from its machine{name}"
    help = "write this kernel in Triton, or port it by hand: docs/reference/nvidia.md says what each operation becomes"
    return TranslationError(Diagnostic("not-lifted", message, *at, error.why, help))
