"""Kernels that are Gluon already: what they are written for, and their launches as those of the Triton kernel that they compute."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from gluonize.diagnostics import Diagnostic, TranslationError
from gluonize.read.spec.descriptors import descriptor_type
from gluonize.read.spec.images import image_tuple, is_of_images
from gluonize.read.spec.launch import LaunchSpec
from gluonize.rules.gluon import newest_namespaces

if TYPE_CHECKING:  # reading it takes Triton's import
    from gluonize.read.kernels.load import LoadedKernel

# Options of a source's own backend that mean nothing to another one.
_OWN_OPTIONS = ("maxnreg", "num_ctas", "ptx_options", "ir_override", "waves_per_eu", "minRegAutoWS", "maxRegAutoWS")
_NAMESPACES = (
    ("nvidia.blackwell", "cuda:100"),
    ("nvidia.hopper", "cuda:90"),
    ("nvidia.ampere", "cuda:80"),
    *((f"amd.{module}", f"hip:{target}") for module, target in newest_namespaces().items()),
)


def refuse_gluon(loaded: LoadedKernel) -> None:
    """Raises: TranslationError `source-gluon` for a kernel under `@gluon.jit`."""
    if loaded.fn.is_gluon():
        raise TranslationError(
            Diagnostic(
                "source-gluon",
                f"{loaded.qualname} is a Gluon kernel already",
                loaded.path,
                loaded.line,
                1,
                "its layouts are part of what it is called with, and these are not guessed",
                "compile it as it is (gluonize compile), or give its launches with -l",
            )
        )


def check_source_target(name: str) -> None:
    """Refuse what is no GPU that a kernel can be written for. Raises: TranslationError `usage`."""
    if not re.fullmatch(r"(?:sm_|cuda:)\d{2,3}|(?:hip:)?gfx\w+", name):
        message = f"--from {name}: no GPU that kernels are written for"
        raise TranslationError(Diagnostic("usage", message, help="sm_90, sm_100, gfx950, gfx1250, ..."))


def is_gluon_launch(spec: LaunchSpec) -> bool:
    """Whether the launch is of a kernel that is Gluon already."""
    return bool(spec.target)


def source_target(
    loaded: LoadedKernel, spec: LaunchSpec, given: str | None = None, otherwise: str | None = None
) -> str:
    """What a Gluon kernel is written for: what is given, what the launch says, or what the file imports; else `otherwise`.

    Raises: TranslationError `source-target` where none of them says.
    """
    if given or spec.target:
        return (spec.target or given or "").replace("sm_", "cuda:")
    if found := target_of_text(loaded.text):
        return found
    if otherwise is not None:
        return otherwise
    raise TranslationError(
        Diagnostic(
            "source-gluon",
            f"{loaded.qualname} is a Gluon kernel already, and nothing says for what GPU",
            loaded.path,
            loaded.line,
            1,
            help='give "target" in its launch ("cuda:90", "hip:gfx950") or --from sm_90, or compile it as it is (gluonize compile)',
        )
    )


def target_of_text(text: str) -> str:
    """What the Gluon kernels of a file are written for, by the newest namespace that it imports; "" where it imports none."""
    for name, target in _NAMESPACES:
        vendor, _, part = name.partition(".")
        if name in text or re.search(rf"{vendor} import [^\n]*\b{part}\b", text):
            return target
    return ""


def plain_launch(spec: LaunchSpec, blocks: dict[str, tuple[int, ...]] | None = None) -> LaunchSpec:
    """The launch of the lifted kernel, and of what it becomes. blocks: of descriptors whose blocks are others than before.

    Layouts and classes are not told to it; options of the source's own machine are left out. A descriptor of images is a tuple.
    """
    signature = {name: _plain_type(kind, (blocks or {}).get(name)) for name, kind in spec.signature.items()}
    constexprs = {name: _plain_value(value) for name, value in spec.constexprs.items()}
    options = {name: value for name, value in spec.options.items() if name not in _OWN_OPTIONS}
    attrs, values = dict(spec.attrs), dict(spec.values)
    for name, kind in spec.signature.items():
        if is_of_images(kind):
            signature[name], constexprs[name], attrs[name], value = image_tuple(kind, spec.values.get(name))
            values.pop(name, None)
            values |= {name: value} if value is not None else {}
    return replace(
        spec, signature=signature, constexprs=constexprs, attrs=attrs, values=values, options=options, target=""
    )


def _plain_type(kind: Any, block: tuple[int, ...] | None) -> Any:
    if isinstance(kind, list):
        return [_plain_type(inner, None) for inner in kind]
    found = descriptor_type(kind)
    if found is None or found.image_rank:
        return kind
    return replace(found, block=tuple(block)).text if block else found.text


def _plain_value(value: Any) -> Any:
    if isinstance(value, list):
        return [_plain_value(item) for item in value]
    if isinstance(value, dict):
        if any(key in value for key in ("$layout", "$class", "$call")):
            return None
        return {key: _plain_value(item) for key, item in value.items()}
    return value
