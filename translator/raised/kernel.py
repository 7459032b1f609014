"""A module of Triton's compiler as a file of Gluon."""

from __future__ import annotations

import re
import textwrap
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import libcst as cst
from gluonize.decide.layouts.constructors import constructor
from gluonize.diagnostics import Diagnostic, TranslationError
from gluonize.gluon.imports import TRITON_LANGUAGE, Import
from gluonize.gluon.trees.walk import mapped
from gluonize.gluon.version_words import VersionWords
from gluonize.raised.blocks import Structure
from gluonize.raised.function_text import text_of
from gluonize.raised.naming.unique import with_unique_values
from gluonize.raised.operations import HANDLERS
from gluonize.raised.text import Written
from gluonize.raised.writer import Shared, Writer
from gluonize.read.spec.launch import LaunchSpec
from gluonize.rules.gluon import GLUON
from gluonize.trace.model.language import SIGNATURE
from gluonize.trace.model.module import Function, Module
from gluonize.trace.model.parse import ParseError, parse_module
from gluonize.trace.model.shared_layouts import Partitioned
from gluonize.trace.model.types import Type
from gluonize.versions import triton_version

# Options of a launch that act on machine code behind the module, with what they are where a launch gives none (`HIPOptions` of Triton 3.9.0).
OPTIONS: dict[str, Any] = {
    "waves_per_eu": 0,
    "enable_fp_fusion": None,  # always said: what it is by default depends on the Triton
    "allow_flush_denorm": False,
    "llvm_fn_attrs": [],
    "wgp_cu_mode": "wgp",
}


# What a descriptor that host code made is passed with, and what Gluon calls that.
_OF_DESCRIPTOR = re.compile(r"(?P<name>.+)\.(?P<field>shape|stride)\.(?P<number>\d+)")
_FIELDS = {"shape": "shape", "stride": "strides"}


@dataclass(frozen=True)
class Raised:
    """text: the file. spec: its launch. target: `gfx950`."""

    kernel: str
    target: str
    text: str
    spec: LaunchSpec


def raise_module(text: str, *, name: str = "", options: dict | None = None, numbers: bool = False) -> Raised:
    """The Gluon of a printed module of TTGIR.

    name: of the file, for the header. options: of the launch, as Triton's cache has them. numbers: whether what is constexpr in the source
    stays a number, though the source is there.
    Raises: TranslationError `raise-module` for text that is no module of TTGIR for an AMD GPU, `raise-unsupported` for what Gluon cannot say.
    """
    if len(re.findall(r"^module\b", text, re.MULTILINE)) > 1:
        raise TranslationError(Diagnostic("raise-module", "these are several modules in one text", name))
    try:
        module = parse_module(text)
    except ParseError as error:
        help = f"for a Python source: gluonize translate {name} -t TARGET" if name.endswith(".py") else ""
        raise TranslationError(
            Diagnostic("raise-module", "this is no module of Triton's", name, why=str(error), help=help)
        ) from None
    if not module.target or module.is_nvidia:
        target = module.attributes.get("ttg.target", "none")
        message = f"the module's target is {target}: only TTGIR for AMD GPUs can be raised"
        raise TranslationError(Diagnostic("raise-module", message, name))
    shared = Shared(module, target=module.target, numbers=numbers)
    for called in module.functions:
        if called != module.entry.name:
            shared.functions[called] = Writer(shared, None, HANDLERS).fresh(called.rpartition(".")[2])
            shared.taken.add(shared.functions[called])
    functions = [
        _function(shared, function, f"@gluon.jit{'(noinline=True)' * function.stays}", shared.functions[called])
        for called, function in module.functions.items()
        if called != module.entry.name and function.region.blocks
    ]
    kernel = _function(shared, module.entry, "@gluon.jit", module.entry.name)
    helpers = [lines for _, lines in shared.helpers.values()]
    spec = _spec(module, kernel, options or {})
    blocks = ["\n".join(lines) for lines in (*helpers, *(each.lines for each in functions), kernel.lines)]
    text = "\n\n\n".join([_header(module, kernel, spec, name, shared.imports), *blocks]) + "\n"
    return Raised(module.entry.name, module.target, _in_words(text, triton_version()), spec)


def _in_words(text: str, version: str) -> str:
    """The text with what a Triton calls otherwise. Raises: TranslationError `triton-version` for what it has not."""
    words = VersionWords(version)

    def change(node: cst.CSTNode) -> cst.CSTNode | None:
        return words.said(node, change)

    if not words.differs:
        return text
    code = mapped(cst.parse_module(text), change).code
    first = "from triton.experimental import gluon\n"
    return code.replace(first, f"{TRITON_LANGUAGE.text}\n{first}", 1) if re.search(r"\btl\.", code) else code


@dataclass(frozen=True)
class _Written:
    """parameters: the number of an argument of the module -> what the text calls it; what comes with a descriptor has no name.
    constexprs: those of the source that it has too."""

    parameters: dict[int, str]
    lines: list[str]
    constexprs: dict[str, int]


def _function(shared: Shared, original: Function, decorator: str, name: str) -> _Written:
    """A function of the module."""
    function = with_unique_values(original)
    writer = Writer(shared, function, HANDLERS)
    parameters: dict[int, str] = {}
    made = {name for (_, kind), name in zip(function.arguments, function.argument_names) if kind.kind == "desc"}
    for number, ((value, kind), argument) in enumerate(zip(function.arguments, function.argument_names)):
        described = _OF_DESCRIPTOR.fullmatch(argument)
        if described and described["name"] in made:
            of = parameters[function.argument_names.index(described["name"])]
            text = f"{of}.{_FIELDS[described['field']]}[{described['number']}]"
        else:
            text = parameters[number] = writer.fresh(argument)
        writer.values[value] = Written(text, kind)
    writer.first |= dict.fromkeys(parameters.values())
    for block in function.region.blocks:
        writer.count_uses(block)
    Structure(writer, function).function()
    lines = text_of(writer, decorator, name, (*parameters.values(),), function.place.file)
    return _Written(parameters, lines, writer.parameters())


def _header(module: Module, kernel: _Written, spec: LaunchSpec, name: str, imports: Iterable[Import]) -> str:
    said = f" in {name}" if name else ""
    options = "".join(f", {key}={value!r}" for key, value in (spec.constexprs | spec.options).items())
    launch = f"{module.entry.name}[grid]({', '.join(kernel.parameters.values())}{options})"
    return "\n".join(
        [
            f'"""`{module.entry.name}` for {module.target}, raised from what Triton compiled{said}.',
            "",
            *textwrap.wrap(f"It holds for launches as the module's: {launch}", 116, break_on_hyphens=False),
            *(line for one in _described(module, kernel) for line in textwrap.wrap(one, 116, break_on_hyphens=False)),
            '"""',
            "",
            "from triton.experimental import gluon",
            "from triton.experimental.gluon import language as gl",
            *sorted(each.text for each in imports),
        ]
    )


def _described(module: Module, kernel: _Written) -> list[str]:
    """What host code makes descriptors of, for those that the kernel takes."""
    of_host = f"{GLUON}.amd.cdna5.TensorDescriptor"
    return [
        f"{name}: a {of_host} of blocks {list(kind.shape or ())} in {_layout_of(module, kind)}."
        for number, name in kernel.parameters.items()
        if (kind := module.entry.arguments[number][1]).kind == "desc"
    ]


def _spec(module: Module, written: _Written, options: dict) -> LaunchSpec:
    """The launch that the module was compiled for."""
    signature, attrs = {}, {}
    kernel = module.entry
    for number, name in written.parameters.items():
        (_, kind), told = kernel.arguments[number], kernel.argument_attributes[number]
        signature[name] = _spec_type(module, kind)
        flags = "D" if told.get("tt.divisibility") == 16 else ""
        flags += "S" if told.get("tt.pointer_range") == 32 else ""
        if flags:
            attrs[name] = flags
    more = {name: options[name] for name, usual in OPTIONS.items() if options.get(name, usual) != usual}
    chosen = {"num_warps": module.warps} | more
    if module.clusters > 1:
        chosen["num_ctas"] = module.clusters
    signature |= dict.fromkeys(written.constexprs, "constexpr")
    return LaunchSpec(f"{kernel.name}/raised", kernel.name, "", signature, dict(written.constexprs), attrs, chosen)


def _spec_type(module: Module, kind: Type) -> str:
    element = SIGNATURE.get(kind.element, kind.element)
    if kind.kind == "ptr":
        return f"*{element}"
    if kind.kind == "desc":
        return f"tensordesc<{element}{list(kind.shape or ())},{_layout_of(module, kind).replace('gl.', '')}>"
    return element


def _layout_of(module: Module, kind: Type) -> str:
    """The layout of a descriptor's tiles in LDS, as Gluon has it."""
    shared = module.shared(kind, kind.shape or ())
    if shared is None or isinstance(shared, Partitioned):  # which its front end does not read in a type
        message = f"Gluon takes no descriptor of the layout {kind.layout} from host code"
        raise TranslationError(Diagnostic("raise-unsupported", message))
    return constructor(shared, {}, top=True)
