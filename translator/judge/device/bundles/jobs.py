"""What child processes run to build a bundle: every compile of generated code, because some IR aborts the process."""

from __future__ import annotations

import os
import tempfile
from dataclasses import replace

from gluonize.diagnostics import TranslationError
from gluonize.judge.device.refusal import Refused
from gluonize.judge.device.retarget.retarget import SM
from gluonize.read.spec.launch import LaunchSpec
from gluonize.trace.model.parse import parse_module

CUDA_SHARED_BYTES = 227 << 10  # per block on sm_90; CUDA C++ Programming Guide, technical specifications
SANITIZER = "consan"


def compile_native(
    output: str, spec: LaunchSpec, target: str, folders: tuple[str, ...], import_hosts: bool, sanitize: bool
) -> dict:
    """The translation (or the source) for the target itself: `code`, `ttgir`, `names` and launch metadata.

    target: also `cuda:90`, of a source that is Gluon for it; `maps` is then what its host descriptors are made of. `tiles`: the parameter
    with the number of tiles, of programs that go from one to another, "" of others; `per_unit`: as many are launched for a compute unit;
    `shares`: whether they share the steps of tiles.
    """
    from gluonize.judge.lower.cache_folder import use_cache_folder
    from gluonize.judge.lower.compiler_errors import compiler_diagnostic
    from gluonize.judge.lower.stderr_log import captured_stderr
    from gluonize.read.launches.sites.persistent import persistent_launch, with_tiles
    from gluonize.read.launches.sites.pinned import as_pinned
    from gluonize.read.spec.compile_arguments import compile_arguments
    from gluonize.trace.front.offline import offline_target
    from gluonize.triton_api.differences import with_numerics
    from gluonize.triton_api.front_end import ASTSource, GluonASTSource
    from gluonize.triton_api.package import triton

    loaded = _load(output, spec, folders, import_hosts)
    staying = persistent_launch(loaded)
    launched = spec if staying is None else with_tiles(spec, staying)
    arguments = compile_arguments(launched, loaded.fn, loaded.load_jit)
    source = (GluonASTSource if loaded.fn.is_gluon() else ASTSource)(
        fn=loaded.fn, signature=arguments.signature, constexprs=arguments.constexprs, attrs=arguments.attrs
    )
    use_cache_folder()
    options = with_numerics(as_pinned(loaded, spec).options) | ({"instrumentation_mode": SANITIZER} if sanitize else {})
    with captured_stderr() as printed, offline_target(target) as gpu:
        try:
            compiled = triton.compile(source, target=gpu, options=options)
        except Exception as error:  # whatever the compiler raises is its verdict on the code, reported as such
            raise TranslationError(
                compiler_diagnostic(error, loaded.fn, printed(), f"{spec.kernel} ({target})", spec.signature)
            ) from error
    found = _described(compiled, "cubin" if gpu.backend == "cuda" else "hsaco", gpu.warp_size)
    maps = list(getattr(compiled.metadata, "tensordesc_meta", None) or ())
    tiles, per_unit = (staying.count, staying.per_unit) if staying is not None else ("", 0)
    own = {"ttgir": compiled.asm["ttgir"], "names": list(loaded.fn.arg_names), "maps": maps}
    shares = staying is not None and staying.shared is not None
    return found | own | {"tiles": tiles, "per_unit": per_unit, "shares": shares}


def _load(output: str, spec: LaunchSpec, folders: tuple[str, ...], import_hosts: bool):
    from gluonize.read.kernels.load import load_kernel

    plain = spec.kernel.rpartition(".")[2]
    for name in dict.fromkeys((spec.kernel, plain)):
        try:
            return load_kernel(output, name, globals=spec.globals, search_path=folders, import_hosts=import_hosts)
        except TranslationError as error:
            if name == plain or error.diagnostics[0].code != "kernel-missing":
                raise
    raise AssertionError("one of the names was tried")


def _described(compiled, kind: str, lanes: int) -> dict:
    """Code object and launch metadata of a compiled kernel."""
    metadata = compiled.metadata
    return {
        "code": compiled.asm[kind],
        "kind": kind,
        "symbol": metadata.name,
        "block": int(metadata.num_warps) * lanes,
        "ctas": int(metadata.num_ctas),
        "shared": int(metadata.shared),
        "global_scratch": int(getattr(metadata, "global_scratch_size", 0) or 0),
        "profile_scratch": int(getattr(metadata, "profile_scratch_size", 0) or 0),
    }


def compile_cuda(ttgir: str, sanitize: bool) -> dict:
    """Re-targeted TTGIR as a cubin. Raises: Refused where the compiler takes it not, or it cannot be launched."""
    from gluonize.judge.lower.cache_folder import use_cache_folder
    from gluonize.judge.lower.stderr_log import captured_stderr, error_lines
    from gluonize.triton_api.backend import GPUTarget
    from gluonize.triton_api.differences import with_numerics
    from gluonize.triton_api.package import triton

    use_cache_folder()
    ctas = parse_module(ttgir).clusters
    with tempfile.TemporaryDirectory(prefix="gluonize-cuda-") as folder:
        path = os.path.join(folder, "kernel.ttgir")
        with open(path, "w", encoding="utf-8") as file:
            file.write(ttgir)
        options: dict[str, object] = {"num_ctas": ctas} if ctas > 1 else {}
        options |= {"instrumentation_mode": SANITIZER} if sanitize else {}
        with captured_stderr() as printed:
            try:
                compiled = triton.compile(path, target=GPUTarget("cuda", SM, 32), options=with_numerics(options))
            except Exception as error:  # whatever the compiler raises is its verdict on the code, reported as such
                said = "; ".join(error_lines(printed())[:2]) or f"{type(error).__name__}: {error}"
                raise Refused("re-targeted TTGIR", said) from None
            if trouble := [line for line in error_lines(printed()) if "error" in line.lower()]:
                raise Refused("re-targeted TTGIR", "; ".join(trouble[:2]))
    found = _described(compiled, "cubin", 32)
    if found["shared"] > CUDA_SHARED_BYTES:
        raise Refused("shared memory", f"{found['shared']} bytes; a CUDA block has at most {CUDA_SHARED_BYTES}")
    if not sanitize and compiled.asm["ptx"].count(".visible .entry") != 1:
        raise Refused("re-targeted TTGIR", "not exactly one kernel came out")
    return found


def compile_poison(kind: str, target: str) -> dict:
    """The kernel that fills LDS with NaN, for the CUDA device or for the AMD target."""
    from gluonize.judge.device.bundles.poison_kernel import CHUNK_BYTES, WARPS, poison_lds
    from gluonize.judge.lower.cache_folder import use_cache_folder
    from gluonize.rules.targets import target as target_row
    from gluonize.trace.front.offline import offline_target
    from gluonize.triton_api.backend import GPUTarget
    from gluonize.triton_api.differences import with_numerics
    from gluonize.triton_api.front_end import GluonASTSource
    from gluonize.triton_api.package import triton

    row = target_row(target)
    size, lanes = (CUDA_SHARED_BYTES, 32) if kind == "cubin" else (row.lds_bytes, row.warp_size)
    source = GluonASTSource(
        fn=poison_lds,
        signature={"out_ptr": "*i32", "limit": "i32", "CHUNKS": "constexpr", "LANES": "constexpr"},
        constexprs={(2,): size // CHUNK_BYTES, (3,): lanes},
        attrs={},
    )
    use_cache_folder()
    with offline_target(target) as gpu:
        device = GPUTarget("cuda", SM, 32) if kind == "cubin" else gpu
        return _described(
            triton.compile(source, target=device, options=with_numerics({"num_warps": WARPS})), kind, lanes
        )


def reference(source: str, spec: LaunchSpec, target: str, folders: tuple[str, ...], import_hosts: bool):
    """The inputs of the launch and what the source makes of them."""
    from gluonize.judge.device.bundles.expected import expected_tensors
    from gluonize.judge.machine.stages import source_stage
    from gluonize.read.kernels.gluon_kernels import plain_launch

    spec = replace(spec, grid=tuple(spec.grid) or (1,))
    stage = source_stage(source, spec, target, folders, import_hosts)
    return expected_tensors(stage.text, plain_launch(spec) if stage.is_gluon and spec.target else spec, stage.names)
