"""A module of Triton's compiler as a file of Gluon."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from gluonize.raised.layouts import filled
from gluonize.raised.operations import HANDLERS
from gluonize.raised.text import SPEC_TYPES, Written
from gluonize.raised.unique import with_unique_values
from gluonize.raised.writer import Shared, Writer
from gluonize.diagnostics import Diagnostic, TranslationError
from gluonize.read.spec.launch import LaunchSpec
from gluonize.trace.model.module import Function, Module
from gluonize.trace.model.parse import ParseError, parse_module
from gluonize.trace.model.types import Type

# Options of a launch that act on machine code behind the module.
OPTIONS = ("waves_per_eu", "enable_fp_fusion", "allow_flush_denorm", "llvm_fn_attrs", "wgp_cu_mode")


@dataclass(frozen=True)
class Raised:
    """text: the file. spec: its launch. target: `gfx950`."""

    kernel: str
    target: str
    text: str
    spec: LaunchSpec


def raise_module(text: str, *, name: str = "", options: dict | None = None) -> Raised:
    """The Gluon of a printed module of TTGIR.

    name: of the file, for the header. options: of the launch, as Triton's cache has them.
    Raises: TranslationError `raise-module` for text that is no module of TTGIR for an AMD GPU, `raise-unsupported` for what Gluon cannot say.
    """
    try:
        module = parse_module(text)
    except ParseError as error:
        raise TranslationError(Diagnostic("raise-module", "this is no module of Triton's", name, why=str(error))) from None
    if not module.target or module.is_nvidia:
        target = module.attributes.get("ttg.target", "none")
        message = f"the module's target is {target}: only TTGIR for AMD GPUs can be raised"
        raise TranslationError(Diagnostic("raise-module", message, name))
    shared = Shared(module, target=module.target)
    kernel = with_unique_values(module.entry)
    writer = Writer(shared, kernel, HANDLERS)
    for (value, kind), argument in zip(kernel.arguments, kernel.argument_names):
        writer.values[value] = Written(writer.fresh(argument), kind)
    for block in kernel.region.blocks:
        writer.count_uses(block)
    if len(kernel.region.blocks) > 1:
        raise writer.refuse(kernel.region.blocks[0].ops[-1], "it branches to blocks, which Gluon has none of")
    writer.block(kernel.region.blocks[0].ops)
    shared.taken |= writer.names
    names, layouts = writer.layouts.definitions()
    parameters = ", ".join(writer.values[value].text for value, _ in kernel.arguments)
    lines = [f"@gluon.jit", f"def {kernel.name}({parameters}):", *(f"    {line}" for line in layouts), ""]
    lines += _body(writer, module.entry)
    helpers = [line for _, body in shared.helpers.values() for line in (*body, "", "")]
    header = _header(module, name)
    imports = ["from triton.experimental import gluon", "from triton.experimental.gluon import language as gl"]
    made = "\n".join([*header, *imports, "", "", *helpers, *lines]) + "\n"
    return Raised(kernel.name, module.target, filled(made, names), _spec(module, writer, options or {}))


def _header(module: Module, name: str) -> list[str]:
    said = f" in {name}" if name else ""
    return [f'"""`{module.entry.name}` for {module.target}, raised from what Triton compiled{said}."""', ""]


def _body(writer: Writer, function: Function) -> list[str]:
    """The statements, with the lines of the source in comments."""
    source = _source(function.place.file)
    out: list[str] = []
    last = 0
    for line in writer.lines:
        if line.number and line.number != last and not line.text.startswith(("else", "pass")):
            last = line.number
            words = source[last - 1].strip() if last <= len(source) else ""
            out.append(f"{'    ' * line.depth}# {last}: {words}".rstrip(": "))
        out.append("    " * line.depth + line.text)
    return out


def _source(file: str) -> list[str]:
    try:
        return Path(file).read_text(encoding="utf-8").splitlines() if file else []
    except (OSError, UnicodeDecodeError):
        return []


def _spec(module: Module, writer: Writer, options: dict) -> LaunchSpec:
    """The launch that the module was compiled for."""
    signature, attrs = {}, {}
    kernel = writer.function
    assert kernel is not None
    for (value, kind), told in zip(kernel.arguments, kernel.argument_attributes):
        name = writer.values[value].text
        signature[name] = _spec_type(kind)
        flags = "D" if told.get("tt.divisibility") == 16 else ""
        flags += "S" if told.get("tt.pointer_range") == 32 else ""
        if flags:
            attrs[name] = flags
    more = {name: options[name] for name in OPTIONS if name in options}
    chosen = {"num_warps": module.warps} | more
    if module.clusters > 1:
        chosen["num_ctas"] = module.clusters
    return LaunchSpec(f"{kernel.name}/raised", kernel.name, "", signature, {}, attrs, chosen)


def _spec_type(kind: Type) -> str:
    if kind.kind == "ptr":
        return f"*{SPEC_TYPES.get(kind.element, kind.element)}"
    return SPEC_TYPES.get(kind.element, kind.element)
