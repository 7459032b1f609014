"""Launch specs: what a kernel is called with, in Triton's own vocabulary, as JSON.

The schema is `launches.schema.json` beside this file; `docs/reference/launch-spec.md` explains every field. Parsing
imports no Triton, so a bad file is refused at once. `compile_arguments.py` turns a spec into what Triton compiles.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from gluonize.diagnostics import Diagnostic, TranslationError, did_you_mean, nearest
from gluonize.read.evaluate.spec_values import decode_value, encode_value, value_problem
from gluonize.read.files.near import near_file
from gluonize.read.spec.descriptors import descriptor_type
from gluonize.read.spec.given_values import completed
from gluonize.read.spec.torch_types import CASTS, TRITON_TYPE

__all__ = ["VERSION", "LaunchSpec", "decode_value", "encode_value", "parse_launches", "read_launches"]

VERSION = 1

# What `triton.language.str_to_ty` accepts for a scalar or the element of a pointer.
SCALAR_TYPES = (
    *("i1", "i8", "i16", "i32", "i64", "u1", "u8", "u16", "u32", "u64", "B"),
    *("fp8e4nv", "fp8e4b8", "fp8e5", "fp8e5b16", "fp8e4b15", "fp16", "bf16", "fp32", "fp64"),
)
_NAME = re.compile(r"[^\W\d]\w*(?:\.(?:<locals>|[^\W\d]\w*))*")
# Fields that the corpus and other tools write beside ours; they are allowed and not read.
_IGNORED = ("package", "kind", "triton_compiles", "note", "$comment", "plain", "reference", "uses", "descriptors")
_IGNORED += ("shared", "tmem_columns")
# Options of launches that Triton's AMD backend takes; others are for other backends.
AMD_OPTIONS = (
    "num_warps", "num_stages", "num_ctas", "waves_per_eu", "matrix_instr_nonkdim", "kpack", "enable_fp_fusion",
)  # fmt: skip
# Options that launches give most; a name that is nearly one of them is a misspelling, any other is Triton's to judge.
_OPTIONS = (
    *AMD_OPTIONS,
    "maxnreg",
    "launch_cooperative_grid",
    "schedule_hint",
    "llvm_fn_attrs",
    "allow_flush_denorm",
    "max_num_imprecise_acc_default",
)
# All that launches are given by name beside the arguments of kernels: the options of Triton's backends (`HIPOptions` and `CUDAOptions` of
# Triton 3.9.0), those that earlier releases and forks had, and what `run` takes.
OPTIONS_OF_LAUNCHES = (
    *_OPTIONS,
    *(
        "allowed_dot_input_precisions",
        "arch",
        "backend_name",
        "clc",
        "cluster_dims",
        "debug",
        "default_dot_input_precision",
    ),
    *("deprecated_fp8_dot_operand_dtypes", "device", "device_type", "enable_reflect_ftz", "enable_warp_specialization"),
    *(
        "extern_libs",
        "fpsan_homomorphic_casts",
        "grid",
        "instrumentation_mode",
        "ir_override",
        "launch_pdl",
        "min_shared_mem",
    ),
    *("noinline", "num_buffers_warp_spec", "num_consumer_groups", "optimize_epilogue", "ptx_options", "ptx_version"),
    *(
        "reg_dec_producer",
        "reg_inc_consumer",
        "sanitize_overflow",
        "sched4reg",
        "stream",
        "supported_fp8_dtypes",
        "warmup",
    ),
    *(
        "warp_size",
        "wgp_cu_mode",
        "bind",
        "launch_metadata",
        "ctas_per_cga",
        "preferred_ctas_per_cga",
        "minRegAutoWS",
        "maxRegAutoWS",
    ),
)
_WRITTEN_BY = "gluonize capture writes one, and so does gluonize translate --write-launches FILE"
_OWN_ID = "give each an id of its own, or none"
# What the tables of a launch look like.
_SUCH = {
    "signature": '{"x_ptr": "*fp32", "n": "i32", "BLOCK": "constexpr"}',
    "constexprs": '{"BLOCK": 128}',
    "attrs": '{"x_ptr": "D"}',
    "options": '{"num_warps": 4}',
    "values": '{"n": 4096}',
}


@dataclass(frozen=True)
class LaunchSpec:
    """One launch of one kernel.

    `constexprs` and `globals` hold values as JSON wrote them (see `spec_values.py`); `attrs` flags are `D` (divisible
    by 16: bytes of an address, or the value of an integer) and `S` (storage within 2 GiB). A tuple argument has lists in
    `signature`, `constexprs` and `attrs`. `grid` is empty when the spec gave none. `source` is empty when the command line
    names the file. `target` is what a kernel that is Gluon already is written for, as `cuda:90` or `hip:gfx1250`.
    """

    id: str
    kernel: str
    source: str = ""
    signature: dict[str, Any] = field(default_factory=dict)
    constexprs: dict[str, Any] = field(default_factory=dict)
    attrs: dict[str, Any] = field(default_factory=dict)
    options: dict[str, Any] = field(default_factory=dict)
    grid: tuple[int, ...] = ()
    globals: dict[str, Any] = field(default_factory=dict)
    values: dict[str, Any] = field(default_factory=dict)
    target: str = ""

    def as_json(self) -> dict:
        """The JSON object that parses back into this spec."""
        out: dict[str, Any] = {"id": self.id, "kernel": self.kernel}
        if self.source:
            out["source"] = self.source
        if self.target:
            out["target"] = self.target
        out |= {
            "signature": self.signature,
            "constexprs": self.constexprs,
            "attrs": self.attrs,
            "options": self.options,
        }
        if self.grid:
            out["grid"] = list(self.grid)
        out |= {name: getattr(self, name) for name in ("globals", "values") if getattr(self, name)}
        return out


def compiled_as(data: Mapping[str, Any]) -> str:
    """What a launch, as JSON, is compiled as: of two that agree in it one is enough. Of values, only what descriptors say beside sizes."""
    told = ("padding", "round_f32_to_tf32", "element_strides", "pixel_box_lower_corner", "pixel_box_upper_corner")
    values = data.get("values", {})
    held = {name: v["descriptor"] for name, v in values.items() if isinstance(v, Mapping) and "descriptor" in v}
    more = {name: {key: inside[key] for key in told if key in inside} for name, inside in held.items()}
    own = {key: value for key, value in data.items() if key not in ("id", "grid", "values")}
    return json.dumps([own, more], sort_keys=True)


@dataclass(frozen=True)
class RefusedLaunch(LaunchSpec):
    """A launch with something wrong in it, which others of its file need not wait for; problems: what is wrong.

    kernel, source: "" where it does not say them.
    """

    problems: tuple[Diagnostic, ...] = ()


def read_launches(path: str, each: bool = False) -> list[LaunchSpec]:
    """The launches in a JSON file. each: see `parse_launches`. Raises: TranslationError `spec-unreadable`, or what `parse_launches` raises."""
    try:
        text = Path(path).read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        why = error.strerror if isinstance(error, OSError) else "it is not UTF-8 text"
        help = (near_file(path) or _WRITTEN_BY) if isinstance(error, FileNotFoundError) else ""
        help = "save it as UTF-8" if isinstance(error, UnicodeDecodeError) else help
        raise TranslationError(
            Diagnostic("spec-unreadable", "cannot read the launch specs", path, why=why or "", help=help)
        ) from None
    return parse_launches(text, path, each)


def parse_launches(data: str | Mapping | list, file: str = "", each: bool = False) -> list[LaunchSpec]:
    """Launches from JSON text, or from what it decodes to: `{"version": 1, "launches": [...]}`, a list, or one launch.

    Ids that are not given are made from the source and kernel names and are unique. each: a launch with problems of its
    own is a `RefusedLaunch`, and only what is wrong with the whole is raised.
    Raises: TranslationError with one diagnostic per problem: `spec-json` (with line and column), `spec-version`,
    `spec-missing`, `spec-field`, `spec-type`, `spec-value`, `spec-duplicate`.
    """
    if isinstance(data, str):
        text = data
        try:
            data = json.loads(data, object_pairs_hook=_no_duplicates)
        except json.JSONDecodeError as error:
            raise TranslationError(_not_json(text, file, error)) from None
        except _DuplicateKey as error:
            raise TranslationError(
                Diagnostic("spec-json", f"the key {error} occurs twice in one object", file)
            ) from None
        except RecursionError:
            raise TranslationError(Diagnostic("spec-json", "not a launch spec: nested too deeply", file)) from None
    items = _launch_list(data, file)
    problems: list[Diagnostic] = []
    specs: list[LaunchSpec] = []
    for index, item in enumerate(items):
        where = f"launches[{index}]" if len(items) > 1 else "launch"
        own: list[Diagnostic] = []
        spec = _Checker(where, file, own).launch(item)
        if spec is None and each:
            spec = _refused(item, own, where)
        if spec is None:
            problems += own
        else:
            specs.append(spec)
    if not items:
        problems.append(Diagnostic("spec-missing", "no launches in it", file, help="give at least one launch"))
    specs = _with_ids(specs, file, problems, each)
    if problems:
        raise TranslationError(*problems)
    return specs


def _refused(item: Any, problems: list[Diagnostic], where: str) -> RefusedLaunch:
    """A launch with problems, with what it says of its kernel and source."""
    given = [item.get(key, "") for key in ("id", "kernel", "source")] if isinstance(item, Mapping) else [""] * 3
    id, kernel, source = (value if isinstance(value, str) else "" for value in given)
    names = id or (where if not kernel else ""), kernel, source
    # What it holds stays with it: of two that are wrong in different ways neither stands for the other.
    return RefusedLaunch(*names, values={"refused": json.dumps(item, sort_keys=True)}, problems=tuple(problems))


def _not_json(text: str, file: str, error: json.JSONDecodeError) -> Diagnostic:
    """What is said of a text that is no JSON: where, and what of JSON it lacks that Python, or people, would allow."""
    what, line, column = error.msg, error.lineno, error.colno
    before, rest = text[: error.pos].rstrip(), text[error.pos :]
    help = ""
    if file.endswith(".py"):
        help = "launches come from a JSON file; the source stands before -l"
    elif not text.strip():
        what, help = "it is empty", "gluonize capture writes one, and docs/reference/launch-spec.md says what is in it"
    elif before.endswith(",") and (rest[:1] in ("}", "]") or "railing comma" in what):
        what, help = f"a comma in front of {rest[:1] or 'the end'}", "remove the comma"
        line, column = before.count("\n") + 1, len(before) - (before.rfind("\n") + 1)
    elif rest.startswith(","):
        what, help = "a comma with nothing in front of it", "remove the comma"
    elif rest.startswith(("//", "#", "/*")):
        help = 'JSON has no comments: remove it, or make it a field, "$comment": "..."'
    elif rest.startswith("'"):
        help = "names and strings have double quotes in JSON"
    elif rest.startswith(("True", "False", "None")):
        help = "JSON has true, false and null"
    return Diagnostic("spec-json", f"not JSON: {what}", file, line, column, help=help)


class _DuplicateKey(Exception):
    """A key that occurs twice in one JSON object."""


def _no_duplicates(pairs: list[tuple[str, Any]]) -> dict:
    out = {}
    for key, value in pairs:
        if key in out:
            raise _DuplicateKey(repr(key))
        out[key] = value
    return out


def _launch_list(data: Any, file: str) -> list:
    if isinstance(data, Mapping) and ("launches" in data or "kernel" not in data):
        version = data.get("version", VERSION)
        if version != VERSION or isinstance(version, bool):
            message = f"launch specs of version {version!r}; this is gluonize for version {VERSION}"
            help = f'write "version": {VERSION}, or install the gluonize that it was written for'
            raise TranslationError(Diagnostic("spec-version", message, file, help=help))
        if "launches" not in data:
            message = 'neither "launches" nor "kernel" is in it'
            why = f"its keys are {', '.join(sorted(map(str, data)))}"
            near = next((key for key in map(str, data) if nearest(key, ("launches", "kernel"))), "")
            help = did_you_mean(near, ("launches", "kernel"), 'expected {"version": 1, "launches": [...]}')
            raise TranslationError(Diagnostic("spec-missing", message, file, why=why, help=help))
        data = data["launches"]
    elif isinstance(data, Mapping):
        return [data]
    if not isinstance(data, list):
        message = f"expected a launch, a list of launches or {{version, launches}}, not {_kind(data)}"
        raise TranslationError(Diagnostic("spec-field", message, file))
    return data


def _kind(value: Any) -> str:
    names = {dict: "an object", list: "a list", str: "a string", bool: "a boolean", type(None): "null"}
    return names.get(type(value), f"the number {value!r}" if isinstance(value, (int, float)) else repr(value))


def type_problem(text: Any) -> str | None:
    """What is wrong with a signature entry (a type, `constexpr`, or a list for a tuple), or None."""
    if isinstance(text, list):
        return next((problem for item in text if (problem := type_problem(item))), None)
    if not isinstance(text, str):
        return f"a type is a string or a list of types, not {_kind(text)}"
    if text == "constexpr":
        return None
    if found := descriptor_type(text):
        element = found.dtype
    else:
        element = text.removeprefix("*").removeprefix("k") if text.startswith("*") else text
    if element in SCALAR_TYPES:
        return None
    near = type_meant(text)
    return f"unknown type {text!r}" + (f"; did you mean {near}?" if near else f"; known are {', '.join(SCALAR_TYPES)}")


def type_meant(text: str) -> str:
    """The type, as signatures spell it, that a text was probably meant to be: `*fp16` for `*float16x` and for `torch.float16*`.

    Empty where none is near.
    """
    longer = CASTS | TRITON_TYPE
    element = text.strip("*& ").rpartition(".")[2]
    begun = [name for name in longer if len(element) > 3 and name.startswith(element)]
    near = (begun or [longer.get(element) or nearest(element, (*SCALAR_TYPES, *longer), 0.75)])[0]
    return f"{'*' * ('*' in text)}{longer.get(near, near)}" if near else ""


class _Checker:
    """Checks one launch and collects every problem it has."""

    def __init__(self, where: str, file: str, problems: list[Diagnostic]):
        self.where, self.file, self.problems = where, file, problems

    def report(self, code: str, place: str, message: str, help: str = "") -> None:
        path = f"{self.where}.{place}" if place else self.where
        self.problems.append(Diagnostic(code, f"{path}: {message}", self.file, help=help))

    def launch(self, item: Any) -> LaunchSpec | None:
        before = len(self.problems)
        if not isinstance(item, Mapping):
            self.report("spec-field", "", f"a launch is an object, not {_kind(item)}")
            return None
        if isinstance(item.get("kernel"), str):
            self.where += f" ({item.get('id') or item['kernel']})"
        known = list(LaunchSpec.__dataclass_fields__)
        for key in tuple(item):
            if key not in known and key not in _IGNORED and (near := nearest(key, known, 0.75)):
                self.report("spec-field", key, f"no such field; did you mean {near}?")
                item = {near: item[key], **item}  # what follows from it is no further mistake
        kernel = self.text(item, "kernel", required=True)
        if kernel and not _NAME.fullmatch(kernel):
            self.report("spec-field", "kernel", f"{kernel!r} is not the name of a function")
        spec = LaunchSpec(
            id=self.text(item, "id"),
            kernel=kernel,
            source=self.text(item, "source"),
            signature=self.table(item, "signature", required=True),
            constexprs=self.table(item, "constexprs"),
            attrs=self.table(item, "attrs"),
            options=self.table(item, "options"),
            grid=self.grid(item.get("grid", [])),
            globals=self.table(item, "globals"),
            values=_described(self.values(item), self.table(item, "descriptors")),
            target=self.text(item, "target"),
        )
        self.signature(spec)
        self.options(spec.options)
        arguments = {**spec.signature, **spec.constexprs}
        for name in spec.values.keys() - arguments.keys():
            if near := nearest(name, arguments.keys() - spec.values.keys(), 0.75):
                self.report("spec-field", f"values.{name}", f"the signature has no {name}", f"did you mean {near}?")
        for name, value in spec.constexprs.items():
            if problem := value_problem(value):
                self.report("spec-value", f"constexprs.{name}", problem)
        for name, value in spec.globals.items():
            if name.count(":") != 1 or not all(name.split(":")):
                self.report("spec-field", f"globals.{name}", 'a global is named "pkg.module:NAME"')
            if problem := value_problem(value):
                self.report("spec-value", f"globals.{name}", problem)
        return spec if len(self.problems) == before else None

    def text(self, item: Mapping, name: str, required: bool = False) -> str:
        value = item.get(name, "")
        if not isinstance(value, str):
            self.report("spec-field", name, f"expected a string, not {_kind(value)}")
            return ""
        if required and not value:
            self.report("spec-missing", name, "is missing")
        return value

    def table(self, item: Mapping, name: str, required: bool = False) -> dict[str, Any]:
        if required and name not in item:
            self.report("spec-missing", name, "is missing")
        value = item.get(name, {})
        if not isinstance(value, Mapping):
            such = _SUCH.get(name, '{"NAME": ...}')
            self.report("spec-field", name, f"expected an object, not {_kind(value)}", f'such as "{name}": {such}')
            return {}
        return dict(value)

    def values(self, item: Mapping) -> dict[str, Any]:
        kinds = item.get("signature")
        kinds = kinds if isinstance(kinds, Mapping) else {}
        out = {}
        for name, value in self.table(item, "values").items():
            out[name], problem = completed(_with_base(value, kinds.get(name)))
            if problem:
                self.report("spec-value", f"values.{name}", problem)
        return out

    def grid(self, value: Any) -> tuple[int, ...]:
        sizes = value if isinstance(value, (list, tuple)) else None
        if sizes is None or len(sizes) > 3 or any(type(n) is not int or n < 0 for n in sizes):
            help = f"write [{value}]" if type(value) is int and value >= 0 else "such as [128, 1, 1]"
            message = f"expected at most three non-negative integers, not {json.dumps(value)}"
            self.report("spec-field", "grid", message, help)
            return ()
        return tuple(sizes)

    def signature(self, spec: LaunchSpec) -> None:
        for name, kind in spec.signature.items():
            if problem := type_problem(kind):
                self.report("spec-type", f"signature.{name}", problem)
            elif name in spec.constexprs and "constexpr" not in _leaves(kind):
                message = f"the signature says {kind}, but constexprs give it a value"
                self.report(
                    "spec-type", f"signature.{name}", message, 'write "constexpr" in the signature, or drop the value'
                )
        for name, flags in spec.attrs.items():
            for flag in _leaves(flags):
                if not isinstance(flag, str) or set(flag) - {"D", "S"}:
                    message = f"attributes are the letters D and S, not {flag!r}"
                    help = "D: divisible by 16; S: storage within 2 GiB; DS: both; left out: neither"
                    self.report("spec-field", f"attrs.{name}", message, help)
            kind = spec.signature.get(name)
            if kind is None and spec.signature and any(_leaves(flags)):
                help = did_you_mean(
                    name,
                    spec.signature.keys() - spec.attrs.keys(),
                    f'give its type: "signature": {{"{name}": "i32", ...}}',
                )
                self.report("spec-field", f"attrs.{name}", f"the signature has no {name}", help)
            elif kind == "constexpr" and any(_leaves(flags)):
                self.report("spec-field", f"attrs.{name}", "a constexpr argument has no attributes", "leave it out")

    def options(self, options: dict[str, Any]) -> None:
        for name in options:
            if name not in _OPTIONS and (near := nearest(name, _OPTIONS, 0.8)):
                self.report("spec-field", f"options.{name}", f"no such option; did you mean {near}?")
        for name in ("num_warps", "num_stages", "num_ctas", "waves_per_eu", "matrix_instr_nonkdim"):
            value = options.get(name, 1)
            if type(value) is not int or value < 0:
                self.report("spec-field", f"options.{name}", f"expected a non-negative integer, not {value!r}")
            elif name in ("num_warps", "num_ctas") and (value < 1 or value & (value - 1)):
                self.report("spec-field", f"options.{name}", f"expected a power of two, not {value}")


def _with_base(value: Any, kind: Any) -> Any:
    """A descriptor's value with its base as `{"tensor": ...}`, which may be written without that word, and with the block of its type."""
    held = value.get("descriptor") if isinstance(value, Mapping) else None
    if not isinstance(held, Mapping) or not isinstance(held.get("base"), Mapping) or not isinstance(kind, str):
        return value
    base = held["base"] if "tensor" in held["base"] else {"tensor": held["base"]}
    block = re.search(r"\[([\d, ]+)\]", kind)
    own = {"block_shape": [int(n) for n in block.group(1).split(",")]} if block else {}
    return {**value, "descriptor": {**own, **held, "base": base}}


def _described(values: dict[str, Any], descriptors: dict[str, Any]) -> dict[str, Any]:
    """The values of a launch, descriptors among them with all that `descriptors` says of them by name: padding, boxes of pixels, ..."""
    out = dict(values)
    for name, more in descriptors.items():
        value = values.get(name)
        if isinstance(more, Mapping) and isinstance(value, Mapping) and isinstance(value.get("descriptor"), Mapping):
            out[name] = {**value, "descriptor": {**more, **value["descriptor"]}}
    return out


def _leaves(value: Any) -> list:
    return [leaf for item in value for leaf in _leaves(item)] if isinstance(value, list) else [value]


def _with_ids(specs: list[LaunchSpec], file: str, problems: list[Diagnostic], each: bool) -> list[LaunchSpec]:
    """The launches with ids that are unique. each: one with an id that an earlier one has is refused by itself."""
    given = [spec.id for spec in specs if spec.id]
    again = {
        name: Diagnostic("spec-duplicate", f"the id {name!r} is used by several launches", file, help=_OWN_ID)
        for name in sorted({name for name in given if given.count(name) > 1})
    }
    if not each:
        problems += again.values()
    taken, out, seen = set(given), [], set()
    for spec in specs:
        name = spec.id
        if name in seen:
            found = (*(spec.problems if isinstance(spec, RefusedLaunch) else ()), again[name])
            spec = RefusedLaunch("", spec.kernel, spec.source, values=spec.values, problems=found)
        if not spec.id:
            stem = Path(spec.source).stem if spec.source.endswith(".py") else spec.source
            base = name or (f"{stem}/{spec.kernel}" if stem else spec.kernel)
            name, count = base, 2
            while name in taken:
                name, count = f"{base}#{count}", count + 1
            taken.add(name)
        seen.add(name)
        out.append(replace(spec, id=name))
    return out
