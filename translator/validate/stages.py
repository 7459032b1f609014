"""The IR that the reference machine runs: TTIR of a Triton kernel, TTGIR of a Gluon kernel; nothing behind it is compiled."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from translator.diagnostics import TranslationError
from translator.source.launch_spec import LaunchSpec


@dataclass(frozen=True)
class Stage:
    """`text` of the module, `names` of the kernel's parameters in order, `file` that has the kernel, integer `defaults` by name."""

    text: str
    names: list[str]
    file: str
    defaults: dict[str, int] = field(default_factory=dict)


def source_stage(
    source: str, spec: LaunchSpec, target: str, folders: tuple[str, ...] = (), hosts: bool = False
) -> Stage:
    """TTIR of a Triton kernel. Raises: TranslationError."""
    return _stage(source, spec, target, folders, hosts, "ttir")


def translated_stage(
    output: str, spec: LaunchSpec, target: str, folders: tuple[str, ...] = (), hosts: bool = False
) -> Stage:
    """TTGIR of a Gluon (or Triton) kernel. Raises: TranslationError."""
    return _stage(output, spec, target, folders, hosts, "ttgir")


def _stage(path: str, spec: LaunchSpec, target: str, folders, hosts: bool, until: str) -> Stage:
    from translator.source.load import load_side

    loaded = load_side(path, spec, folders, hosts)
    text = lower_until(loaded.fn, spec, target, until, loaded.load_jit, placed=until == "ttgir")
    defaults = {p.name: p.default for p in loaded.fn.params if p.has_default and type(p.default) is int}
    return Stage(text, list(loaded.fn.arg_names), loaded.path, defaults)


def lower_until(fn: Any, spec: LaunchSpec, target: str, until: str, load_jit=None, placed: bool = False) -> str:
    """The printed module after stage `until` (`ttir`, `ttgir`), with locations. Raises: TranslationError.

    `placed`: with the place of each piece of shared memory, `allocation.offset`, as the compiler's next passes choose it.
    """
    from triton._C.libtriton import ir
    from triton.compiler import ASTSource
    from triton.compiler.compiler import make_backend
    from triton.experimental.gluon._runtime import GluonASTSource

    from translator.frontend.offline import offline_target
    from translator.lowering.compiler_errors import compiler_diagnostic
    from translator.lowering.stderr_log import captured_stderr
    from translator.source.compile_arguments import compile_arguments

    arguments = compile_arguments(spec, fn, load_jit)
    source = (GluonASTSource if fn.is_gluon() else ASTSource)(
        fn=fn, signature=arguments.signature, constexprs=arguments.constexprs, attrs=arguments.attrs
    )
    with captured_stderr() as printed, offline_target(target) as gpu:
        try:
            backend = make_backend(gpu)
            options = backend.parse_options(dict(spec.options))
            context = ir.context()
            ir.load_dialects(context)
            backend.load_dialects(context)
            module = source.make_ir(
                gpu, options, backend.get_codegen_implementation(options), backend.get_module_map(), context
            )
            module.context = context
            stages: dict = {}
            backend.add_stages(stages, options, source.language)
            metadata: dict = {}
            for name, stage in stages.items():
                module = stage(module, metadata)
                if name == until:
                    break
            if placed:
                _place_shared_memory(module, gpu.arch)
            return module.str()
        except Exception as error:  # whatever the compiler raises is its verdict on the code, reported as such
            diagnostic = compiler_diagnostic(error, fn, printed(), f"{spec.kernel} ({target}, {until})")
            raise TranslationError(diagnostic) from error


def _place_shared_memory(module: Any, arch: str) -> None:
    from triton._C.libtriton import amd, ir

    manager = ir.pass_manager(module.context)
    amd.passes.ttgpuir.add_allocate_shared_memory(manager, arch)
    manager.run(module, "allocate_shared_memory")
