"""Builds the bundle of one launch on one target; every compile runs in a child process of the pool."""

from __future__ import annotations

import functools
import hashlib
import math
import platform
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from gluonize import __version__
from gluonize.diagnostics import Diagnostic, InternalError, TranslationError
from gluonize.judge.device import code_object
from gluonize.judge.device.bundles.bundle import Code, make_code, write_bundle
from gluonize.judge.device.bundles.jobs import SANITIZER
from gluonize.judge.device.bundles.planted import planted_bugs
from gluonize.judge.device.launch_arguments import launch_arguments
from gluonize.judge.device.refusal import Refused
from gluonize.judge.device.retarget.retarget import SM, retarget
from gluonize.judge.device.tensor_maps import with_maps
from gluonize.judge.inputs.inputs import Inputs
from gluonize.judge.lower.children.worker import WorkerPool
from gluonize.read.kernels.gluon_kernels import plain_launch
from gluonize.read.spec.launch import LaunchSpec
from gluonize.rules.targets import target as target_row

JOBS = "gluonize.judge.device.bundles.jobs:"
DEVICES = ("hip", "cuda", "both")


@dataclass(frozen=True)
class BundleRequest:
    """`source` and `output` are files or modules; `device` is one of DEVICES: which code objects go in.

    `planted` adds copies with synchronisation bugs (CUDA only). `folders` are looked in for imported modules.
    """

    source: str
    output: str
    spec: LaunchSpec
    target: str
    device: str = "both"
    planted: bool = False
    folders: tuple[str, ...] = ()
    import_hosts: bool = False


@dataclass(frozen=True)
class BuiltBundle:
    """`content` of the zip file; `notes` say what could not go in, though something else could."""

    content: bytes
    codes: tuple[str, ...]
    notes: tuple[str, ...]


def build_bundle(pool: WorkerPool, request: BundleRequest) -> BuiltBundle:
    """Compile, run the source on the reference machine, pack.

    Raises: TranslationError when nothing could be bundled, or not what was asked for by name; InternalError for our bugs.
    """
    r, given = request, replace(request.spec, grid=tuple(request.spec.grid) or (1,))
    own_target = given.target.replace("sm_", "cuda:")  # of a source that is Gluon already
    clusters = int(given.options.get("num_ctas", 1)) > 1
    spec = plain_launch(given) if own_target else given
    what = f"{spec.id} on {r.target}"
    native = _native(pool, r, spec, what)
    inputs, tensors, flops = pool.call(
        JOBS + "reference", r.source, given, r.target, r.folders, r.import_hosts, what=f"{what}: reference"
    )
    native["arguments"] = _own_arguments(native, inputs, spec.grid)
    arguments = [argument for argument in native["arguments"] if argument["name"] != native["tiles"]]
    codes: list[Code] = []
    poison: list[Code] = []
    notes: list[str] = []

    @functools.cache
    def source() -> dict:
        """Triton's own compile of the source for the target."""
        if own_target:
            raise Refused("the source", f"it is Gluon for {given.target}", "not-bundled")
        return pool.call(
            JOBS + "compile_native", r.source, spec, r.target, r.folders, r.import_hosts, False, what="the source"
        )

    for device, add in (("hip", functools.partial(_add_hip, source)), ("cuda", _add_cuda)):
        if r.device not in (device, "both"):
            continue
        try:
            add(pool, r, spec, native, arguments, codes, notes)
            kind = {"hip": "hsaco", "cuda": "cubin"}[device]
            poison.append(
                make_code("poison", pool.call(JOBS + "compile_poison", kind, r.target, what=f"{what}: poison"))
            )
        except TranslationError as error:
            if r.device == device:
                raise
            notes.append(f"{device}: {_said(error)}")
    if any(code.kind == "cubin" for code in codes):
        try:
            if own_target:
                codes += _native_source(pool, r, given, own_target, inputs, notes)
            elif clusters:
                codes.append(_cluster_source(pool, r, spec, inputs))
            else:
                codes.append(_source_on_cuda(pool, source(), inputs, arguments))
        except TranslationError as error:
            notes.append(f"cuda: the source's own code object is left out: {_said(error)}")
    if not codes:
        raise TranslationError(Diagnostic("nothing-to-bundle", what, why="; ".join(notes)))
    codes = _as_launched(codes, native, spec.grid, r.target)
    content = write_bundle(
        spec.id, r.target, spec.grid, codes, poison, arguments, tensors, flops, _provenance(r, spec, native), tuple(notes),
        _source_ran_as(given.target, own_target, clusters),
    )  # fmt: skip
    return BuiltBundle(content, tuple(code.name for code in codes), tuple(notes))


def _native(pool: WorkerPool, r: BundleRequest, spec: LaunchSpec, what: str) -> dict:
    """The translation, compiled for its target. Raises: Refused where a code object alone is no launch."""
    native = pool.call(JOBS + "compile_native", r.output, spec, r.target, r.folders, r.import_hosts, False, what=what)
    if native["shares"]:
        why = "what stands around its `run` allocates memory for each launch, which a code object alone is not given"
        raise Refused("programs that share the steps of tiles", why, "not-bundled")
    return native


def _own_arguments(native: dict, inputs: Inputs, grid: tuple[int, ...]) -> list[dict]:
    """The arguments of the translation: where programs go from tile to tile, with how many tiles there are. Raises: Refused."""
    more = {native["tiles"]: np.int32(grid[0])} if native["tiles"] else {}
    given = replace(inputs, arguments=inputs.arguments | more)
    return launch_arguments(native["ttgir"], native["names"], given)


def _as_launched(codes: list[Code], native: dict, grid: tuple[int, ...], target: str) -> list[Code]:
    """The codes, those of programs that go from tile to tile with as many of these as host code launches where the target has its published
    number of compute units."""
    if not native["tiles"]:
        return codes
    tiles, *others = grid
    units = target_row(target).compute_units or tiles
    room = native["per_unit"] * units // max(1, math.prod(others))
    own = {"arguments": tuple(native["arguments"]), "grid": (min(tiles, max(1, room)), *others)}
    return [replace(code, **own) if code.of == "translation" else code for code in codes]


def _source_ran_as(target: str, native: str, clusters: bool) -> str:
    if native:
        return f"the source itself, Gluon for {target}"
    return "Triton's own compile of the source" + (" for the device" if clusters else "")


def _said(error: TranslationError) -> str:
    first = error.diagnostics[0]
    return f"{first.message}: {first.why}" if first.why else first.message


def _add_hip(
    compile_source: Callable[[], dict],
    pool: WorkerPool,
    r: BundleRequest,
    spec: LaunchSpec,
    native: dict,
    arguments: list[dict],
    codes,
    notes,
) -> None:
    """The translation's code object, checked against the launch; Triton's own of the source; the sanitizer where there is one."""
    if int(spec.options.get("num_ctas", 1)) > 1:
        raise Refused(
            "num_ctas", "a launch of clusters takes what the program on the GPU machine does not ask for", "not-bundled"
        )
    if any(argument.get("descriptor") for argument in arguments):
        raise Refused(
            "tensor descriptor argument", "the host part of AMD's TDM descriptors is not in a bundle", "not-bundled"
        )
    code_object.check(
        native["code"], native["symbol"], native["arguments"], native["block"], native["shared"], r.target
    )
    codes.append(make_code("translation", native))
    try:
        source = compile_source()
        code_object.check(source["code"], source["symbol"], arguments, source["block"], source["shared"], r.target)
        codes.append(replace(make_code("source", source), of="source"))
    except TranslationError as error:
        notes.append(f"the source's own code object is left out: {_said(error)}")
    if target_row(r.target).sanitizes:
        try:
            built = pool.call(
                JOBS + "compile_native", r.output, spec, r.target, r.folders, r.import_hosts, True, what="sanitizer"
            )
            codes.append(make_code("translation-consan", built, sanitizer="consan"))
        except TranslationError as error:
            notes.append(f"hip: no sanitizer run: {_said(error)}")


def _add_cuda(
    pool: WorkerPool, r: BundleRequest, spec: LaunchSpec, native: dict, arguments: list[dict], codes, notes
) -> None:
    """The re-targeted translation, plain and under the sanitizer, and its planted bugs."""
    text = retarget(native["ttgir"])
    pending = [("cuda", "", "", pool.submit(JOBS + "compile_cuda", text, False, what="cubin"))]
    pending.append(
        ("cuda-consan", "consan", "", pool.submit(JOBS + "compile_cuda", text, True, what="cubin with sanitizer"))
    )
    bugs = planted_bugs(native["ttgir"]) if r.planted else {}
    for number, (bug, module) in enumerate(bugs.items()):
        broken = retarget(module)
        pending.append((f"bug{number}", "", bug, pool.submit(JOBS + "compile_cuda", broken, False, what=bug)))
        pending.append(
            (f"bug{number}-consan", "consan", bug, pool.submit(JOBS + "compile_cuda", broken, True, what=bug))
        )
    problem = None
    for name, sanitizer, bug, future in pending:
        try:
            codes.append(make_code(name, future.result(), sanitizer, bug))
        except TranslationError as error:
            if bug:
                notes.append(f"planted bug {bug!r} ({sanitizer or 'plain'}): {_said(error)}")
            else:
                problem = problem or error
        except InternalError as error:
            problem = problem or error
    if problem:
        codes[:] = [code for code in codes if code.kind != "cubin"]
        raise problem


def _source_on_cuda(pool: WorkerPool, source: dict, inputs: Inputs, arguments: list[dict]) -> Code:
    """Triton's own compile of the source for the target, re-targeted: what the device's rounding does to the same kernel.

    Raises: TranslationError when that is not possible, or it takes other arguments.
    """
    if launch_arguments(source["ttgir"], source["names"], inputs) != arguments:
        raise Refused("arguments", "the source takes other arguments than the translation", "not-bundled")
    built = pool.call(JOBS + "compile_cuda", retarget(source["ttgir"]), False, what="cubin of the source")
    return replace(make_code("cuda-source", built), of="source")


def _cluster_source(pool: WorkerPool, r: BundleRequest, spec: LaunchSpec, inputs: Inputs) -> Code:
    """Triton's own compile of the source for the CUDA device, in clusters: for AMD targets it compiles few of these. Raises: TranslationError."""
    folders = (r.folders, r.import_hosts, False)
    built = pool.call(JOBS + "compile_native", r.source, spec, f"cuda:{SM}", *folders, what="the source for the device")
    arguments = with_maps(launch_arguments(built["ttgir"], built["names"], inputs), built["maps"])
    return replace(make_code("cuda-source", built), of="source", arguments=tuple(arguments))


def _native_source(
    pool: WorkerPool, r: BundleRequest, spec: LaunchSpec, target: str, inputs: Inputs, notes: list[str]
) -> list[Code]:
    """A source that is Gluon for the CUDA device as it is, plain and under the sanitizer. Raises: TranslationError."""
    if target != f"cuda:{SM}":
        raise Refused("the source", f"it is for {spec.target}, the device is sm_{SM}", "not-bundled")
    if int(spec.options.get("num_ctas", 1)) > 1:
        raise Refused(
            "num_ctas", "a launch of clusters takes what the program on the GPU machine does not ask for", "not-bundled"
        )
    out = []
    for name, sanitizer in (("cuda-native", ""), ("cuda-native-consan", SANITIZER)):
        try:
            built = pool.call(
                JOBS + "compile_native", r.source, spec, target, r.folders, r.import_hosts, bool(sanitizer), what=name
            )
            arguments = with_maps(launch_arguments(built["ttgir"], built["names"], inputs), built["maps"])
        except TranslationError as error:
            if not sanitizer:
                raise
            notes.append(f"cuda: no sanitizer run of the source: {_said(error)}")
            continue
        out.append(replace(make_code(name, built, sanitizer), of="source", arguments=tuple(arguments)))
    return out


def _provenance(r: BundleRequest, spec: LaunchSpec, native: dict) -> dict:
    """Where everything came from: versions, and hashes of the texts that went in."""
    from gluonize.versions import triton_version

    hashes = {name: _hash_file(path) for name, path in (("source", r.source), ("translation", r.output))}
    return {
        "gluonize": __version__,
        "triton": triton_version(),
        "python": platform.python_version(),
        "kernel": spec.kernel,
        "options": spec.options,
        "sha256": hashes | {"ttgir": hashlib.sha256(native["ttgir"].encode()).hexdigest()},
        "expected": "the source's TTIR on the reference machine, whole grid",
    }


def _hash_file(path: str) -> str:
    file = Path(path)
    return hashlib.sha256(file.read_bytes()).hexdigest() if file.is_file() else ""
