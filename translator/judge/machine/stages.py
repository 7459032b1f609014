"""The IR that the reference machine runs: TTIR of a Triton kernel, TTGIR of a Gluon kernel; nothing behind it is compiled.

A source that is Gluon already is run as what it is written for, which need not be the target of its translation.
"""

from __future__ import annotations

import os
from dataclasses import dataclass, field, replace
from typing import Any

from gluonize.diagnostics import TranslationError
from gluonize.read.kernels.gluon_kernels import source_target
from gluonize.read.launches.sites.persistent import Shared, persistent_launch, with_tiles
from gluonize.read.spec.launch import LaunchSpec

_KEPT = 16  # modules: both sides of a few launches
_ADDRESS = " at 0x"  # what has no other text than where it lies is not known again
_lowered: dict[str, str] = {}


@dataclass(frozen=True)
class Stage:
    """`text` of the module, `names` of the kernel's parameters in order, `file` that has the kernel, integer `defaults` by name. tiles: the
    parameter with the number of tiles, where programs go from one to another; shared: what else they take, where they share their steps.
    """

    text: str
    names: list[str]
    file: str
    defaults: dict[str, int] = field(default_factory=dict)
    is_gluon: bool = False
    tiles: str = ""
    shared: Shared | None = None


def source_stage(
    source: str, spec: LaunchSpec, target: str, folders: tuple[str, ...] = (), hosts: bool = False
) -> Stage:
    """TTIR of a Triton kernel; TTGIR of a Gluon kernel, for what its launch says that it is written for, else for `target`.

    Raises: TranslationError.
    """
    from gluonize.read.kernels.load import load_side

    loaded = load_side(source, spec, folders, hosts)
    if loaded.fn.is_gluon():
        return _stage(loaded, spec, source_target(loaded, spec, otherwise=target), "ttgir")
    return _stage(loaded, spec, target, "ttir")


def translated_stage(
    output: str, spec: LaunchSpec, target: str, folders: tuple[str, ...] = (), hosts: bool = False
) -> Stage:
    """TTGIR of a Gluon (or Triton) kernel. Raises: TranslationError.

    A descriptor of a launch for another GPU has a layout of that GPU; a translation takes what it describes (`descriptor_tuple`).
    """
    from gluonize.read.kernels.load import load_side
    from gluonize.trace.front.offline import gpu_target

    if spec.target and gpu_target(spec.target) != gpu_target(target):
        spec = replace(spec, signature={name: without_layout(kind) for name, kind in spec.signature.items()})
    loaded = load_side(output, spec, folders, hosts)
    if (found := persistent_launch(loaded)) is None:
        return _stage(loaded, spec, target, "ttgir")
    stage = _stage(loaded, with_tiles(spec, found), target, "ttgir")
    return replace(stage, tiles=found.count, shared=found.shared)


def without_layout(kind: Any) -> Any:
    """The type of a tiled host descriptor without its layout: `tensordesc<fp16[64, 64],NVMMASharedLayout(...)>` -> `tensordesc<fp16[64, 64]>`."""
    if not isinstance(kind, str) or not kind.startswith("tensordesc<"):
        return kind
    return kind[: kind.index("]") + 1] + ">"


def _stage(loaded: Any, spec: LaunchSpec, target: str, until: str) -> Stage:
    text = lower_until(loaded.fn, spec, target, until, loaded.load_jit, placed=until == "ttgir")
    defaults = {p.name: p.default for p in loaded.fn.params if p.has_default and type(p.default) is int}
    return Stage(text, list(loaded.fn.arg_names), loaded.path, defaults, loaded.fn.is_gluon())


def lower_until(fn: Any, spec: LaunchSpec, target: str, until: str, load_jit=None, placed: bool = False) -> str:
    """The printed module after stage `until` (`ttir`, `ttgir`), with locations. Raises: TranslationError.

    `placed`: for an AMD GPU, with the place of each piece of shared memory, `allocation.offset`, as the compiler's next passes choose it.
    """
    from gluonize.judge.lower.compiler_errors import compiler_diagnostic
    from gluonize.judge.lower.stderr_log import captured_stderr
    from gluonize.read.spec.compile_arguments import compile_arguments
    from gluonize.trace.front.offline import FrontEnd, offline_target
    from gluonize.triton_api.front_end import ASTSource, GluonASTSource

    arguments = compile_arguments(spec, fn, load_jit)
    source = (GluonASTSource if fn.is_gluon() else ASTSource)(
        fn=fn, signature=arguments.signature, constexprs=arguments.constexprs, attrs=arguments.attrs
    )
    key = _key(source, spec, target, until, placed)
    if key in _lowered:
        return _lowered[key]
    with captured_stderr() as printed, offline_target(target) as gpu:
        try:
            front_end = FrontEnd.of(gpu, spec.options)
            module = front_end.module(source)
            module.context = front_end.context
            stages: dict = {}
            front_end.backend.add_stages(stages, front_end.options, source.language)
            metadata: dict = {}
            for name, stage in stages.items():
                module = stage(module, metadata)
                if name == until:
                    break
            if placed and gpu.backend == "hip":
                _place_shared_memory(module, gpu.arch)
            return _kept(key, module.str())
        except Exception as error:  # whatever the compiler raises is its verdict on the code, reported as such
            what = f"{spec.kernel} ({target}, {until})"
            diagnostic = compiler_diagnostic(error, fn, printed(), what, spec.signature)
            raise TranslationError(diagnostic) from error


def _key(source: Any, spec: LaunchSpec, target: str, *how: Any) -> str:
    """Everything that a module depends on: launches that differ in sizes and values alone have the same. "" where something has no text.

    Triton's own hash leaves out globals that are no `constexpr`, and the name of the file, which stands in locations.
    """
    made_of, fn = source.hash(), source.fn
    functions = [fn, *(value for value in source.constants.values() if hasattr(value, "used_global_vals"))]
    read = [sorted((name, repr(value)) for (name, _), (value, _) in f.used_global_vals.items()) for f in functions]
    asked = (made_of, fn.file_name, read, source.constants, sorted(spec.options.items()), target, *how)
    key = repr((asked, sorted(os.environ.items())))
    return "" if _ADDRESS in key else key


def _kept(key: str, text: str) -> str:
    """The text, of which the last few are kept."""
    if key:
        while len(_lowered) >= _KEPT:
            del _lowered[next(iter(_lowered))]
        _lowered[key] = text
    return text


def _place_shared_memory(module: Any, arch: str) -> None:
    from gluonize.triton_api.libtriton import amd, ir

    manager = ir.pass_manager(module.context)
    amd.passes.ttgpuir.add_allocate_shared_memory(manager, arch)
    manager.run(module, "allocate_shared_memory")
