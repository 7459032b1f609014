"""Kernels that Inductor wrote, as Gluon kernels that Inductor compiles and launches.

    @triton_heuristics.pointwise(size_hints={'x': 1024}, triton_meta={..., 'device': DeviceProperties(type='cuda', ...)}, ...)
 -> @triton_heuristics.user_autotune(configs=[{'num_warps': 4, 'num_stages': 1, 'XBLOCK': 1024}], triton_meta={..., 'device': DeviceProperties(type='hip', ...)}, ...)

The decorator states the launch that the kernel was translated for, and the device that it is for; grids, streams and caches stay Inductor's. It
makes a Triton source of whatever kernel it is given: the file tells it that one of Gluon's is a Gluon source.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import libcst as cst
from gluonize.gluon.imports import Import
from gluonize.gluon.trees.function import Block, definitions, expression
from gluonize.gluon.trees.walk import mapped
from gluonize.output.merging.kernel_family import KernelVersion
from gluonize.read.inductor.stated import Stated, stated
from gluonize.rules.architecture import Target
from gluonize.rules.targets import target as target_row
from gluonize.triton_api import front_end
from gluonize.triton_api.row import place_in
from gluonize.versions import triton_version

_KEPT = ("filename", "triton_meta", "inductor_meta")
SOURCES = """
def _gluon_source(fn, *args, **kwargs):
    \"\"\"What Inductor compiles: of a kernel that is Gluon a Gluon source, of any other what it always makes.\"\"\"
    return (GluonASTSource if isinstance(fn, GluonJITFunction) else ASTSource)(fn, *args, **kwargs)


triton_heuristics.ASTSource = _gluon_source
"""
IMPORTS = (
    Import("torch._inductor.runtime", "triton_heuristics"),
    *(
        Import(*place_in(front_end.ROWS, name, triton_version()), name)
        for name in ("ASTSource", "GluonASTSource", "GluonJITFunction")
    ),
)


def stated_of(version: KernelVersion) -> Stated | None:
    """What Inductor's decorator of a kernel states; None for a kernel that has none."""
    loaded = version.loaded
    if loaded.program is None or loaded.node is None:
        return None
    return stated(loaded.node, loaded.program.import_known(loaded.module))


def sources() -> Block:
    """What tells Inductor which kernels are Gluon."""
    return definitions(SOURCES)


def restated(
    decorators: Sequence[cst.Decorator], versions: Sequence[KernelVersion], target: str
) -> list[cst.Decorator]:
    """The decorators of a kernel with that of Inductor's as the translation has it; versions: of this kernel."""
    found = next((f for f in map(stated_of, versions) if f is not None), None)
    if found is None:
        return [*decorators]
    node = versions[0].loaded.node
    assert node is not None, "what is stated stands above a definition"
    number = next(i for i, decorator in enumerate(node.decorator_list) if decorator is found.call)
    out = [*decorators]
    call = out[number].decorator
    assert isinstance(call, cst.Call)
    out[number] = out[number].with_changes(decorator=_call(call, found, versions, target_row(target)))
    return out


def _call(call: cst.Call, found: Stated, versions: Sequence[KernelVersion], row: Target) -> cst.Call:
    args = [arg.with_changes(value=mapped(arg.value, lambda n: _device(n, found.device, row))) for arg in call.args]
    if found.kind == "template":
        options = versions[0].spec.options
        return call.with_changes(args=[_with_option(arg, options) for arg in args])
    maker = call.func
    name = cst.Name("user_autotune")
    maker = (
        maker.with_changes(attr=name)
        if isinstance(maker, cst.Attribute)
        else expression("triton_heuristics.user_autotune")
    )
    kept = [arg for arg in args if arg.keyword is not None and arg.keyword.value in _KEPT]
    configs = list({repr(c): c for c in (_config(version, found) for version in versions)}.values())
    equal = cst.AssignEqual(cst.SimpleWhitespace(""), cst.SimpleWhitespace(""))
    first = cst.Arg(
        expression(repr(configs)), cst.Name("configs"), equal, kept[0].comma if kept else cst.MaybeSentinel.DEFAULT
    )
    return call.with_changes(func=maker, args=[first, *kept])


def _config(version: KernelVersion, found: Stated) -> dict[str, Any]:
    """A launch as `user_autotune` takes it."""
    options = {"num_warps": 4, "num_stages": 1} | {
        name: value for name, value in version.spec.options.items() if name in ("num_warps", "num_stages")
    }
    own = {n: value for n, value in version.spec.constexprs.items() if n not in found.constants}
    return options | own


def _with_option(arg: cst.Arg, options: Mapping[str, Any]) -> cst.Arg:
    name = arg.keyword.value if arg.keyword is not None else ""
    changed = name in options and isinstance(arg.value, cst.Integer) and arg.value.value != str(options[name])
    return arg.with_changes(value=cst.Integer(str(options[name]))) if changed else arg


def _device(node: cst.CSTNode, device: Mapping[str, Any], row: Target) -> cst.CSTNode | None:
    """`DeviceProperties(...)` of the target, where it is another's."""
    if not (isinstance(node, cst.Call) and isinstance(node.func, cst.Name) and node.func.value == "DeviceProperties"):
        return None
    if device.get("type") == "hip" and str(device.get("cc")).partition(":")[0] == row.name:
        return node
    now: dict[str, Any] = {
        "type": "hip",
        "cc": row.name,
        "major": int(row.name[3:-2]),
        "warp_size": row.warp_size,
        "multi_processor_count": row.compute_units or device.get("multi_processor_count"),
    }
    args = [
        (
            arg.with_changes(value=expression(repr(now[arg.keyword.value])))
            if arg.keyword is not None and arg.keyword.value in now
            else arg
        )
        for arg in node.args
    ]
    return node.with_changes(args=args)


__all__ = ["IMPORTS", "restated", "sources", "stated_of"]
