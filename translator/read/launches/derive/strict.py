"""Launch specs from the file itself, for when none is given.

What is used, strongest first: `--set NAME=VALUE`, the launch site in host code, the autotune configs, the defaults, type
hints, how the kernel uses an argument, and its name. Whatever was assumed rather than read is listed in words; a constexpr
with no value anywhere is asked for by name. `docs/reference/launch-spec.md` has the rules.
"""

from __future__ import annotations

import ast
import json
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from gluonize.diagnostics import Diagnostic, TranslationError, did_you_mean
from gluonize.read.evaluate.host_values import HostName
from gluonize.read.evaluate.spec_values import encode_value
from gluonize.read.kernels.gluon_kernels import refuse_gluon
from gluonize.read.kernels.listing import list_kernels, nothing_to_launch
from gluonize.read.kernels.load import LoadedKernel, load_kernel
from gluonize.read.launches.derive.host.configs import autotune_configs
from gluonize.read.launches.derive.host.heuristics import NO_VALUE, encoded, heuristic_value
from gluonize.read.launches.sites.pointers import integer_pointers, pointer_arguments
from gluonize.read.launches.sites.site import launch_sites
from gluonize.read.names.scope import Scope
from gluonize.read.spec.launch import AMD_OPTIONS, LaunchSpec, type_problem
from gluonize.read.unresolved import NoValue
from gluonize.triton_api.package import triton

# What Triton's AMD backend takes when a launch says nothing (HIPOptions in triton/backends/amd/compiler.py).
DEFAULT_OPTIONS = {"num_warps": 4, "num_stages": 2}
_FLOAT_NAMES = re.compile(
    r"(^|_)(eps|epsilon|scale|alpha|beta|gamma|lr|momentum|p|prob|dropout|temperature|softcap|slope|decay|rate)($|_)",
    re.I,
)
_MULTIPLE_NAMES = re.compile(
    r"stride|(^|_)(M|N|K|H|D|dim|size|numel|elements|n_cols|n_rows|cols|rows|hidden|seq_?len)($|_)|^(n|num)_", re.I
)
_INDEX_NAMES = re.compile(r"(^|_)(idx|index|indices|ids|id|offsets|cu_seqlens|lens|labels?|targets?)($|_)", re.I)
_POINTER_NAMES = re.compile(r"(_ptrs?$|^ptr_|^p_|_pointer$)", re.I)
_HINTED = re.compile(r"^\*?k?(i|u|fp|bf)\d")


@dataclass(frozen=True)
class DerivedLaunch:
    """A launch spec that was worked out, what was assumed for it, and whether it is the kernel's default configuration
    (the first one of its autotune configs)."""

    spec: LaunchSpec
    assumptions: tuple[str, ...]
    is_default: bool


def derive_launches(
    source: str, kernels: Iterable[str] | None = None, *, settings: Mapping[str, Any] | None = None,
    globals: Mapping[str, Any] | None = None, search_path: Iterable[str] | None = None,
) -> list[DerivedLaunch]:  # fmt: skip
    """Launches for the named kernels of a file, or for all that can be launched; one per distinct autotune config.

    Raises: TranslationError with a `spec-missing` diagnostic per constexpr that has no value, or what loading raises.
    """
    folders = list(search_path or ())
    names = list(kernels or ())
    if not names:
        infos = list_kernels(source, folders)
        names = [k.name for k in infos if k.is_kernel]
        if not names:
            raise nothing_to_launch(infos, source)
    out: list[DerivedLaunch] = []
    problems: list[Diagnostic] = []
    used: set[str] = set()
    seen: dict[str, None] = {}
    for name in names:
        loaded = load_kernel(source, name, globals=dict(globals or {}), search_path=folders)
        refuse_gluon(loaded)
        try:
            derivation = _Derivation(source, name, loaded, dict(settings or {}))
            seen |= dict.fromkeys(derivation.args)
            used |= derivation.args.keys() & (settings or {}).keys()
            out.extend(derivation.launches())
        except TranslationError as error:
            problems.extend(error.diagnostics)
    for name in sorted((settings or {}).keys() - used - set(AMD_OPTIONS)):
        problems.append(
            Diagnostic(
                "spec-unknown-argument",
                f"--set {name}: none of the kernels {', '.join(names)} has this argument",
                source,
                help=did_you_mean(name.rpartition(".")[2], (*seen, *AMD_OPTIONS), f"there are {', '.join(seen)}"),
            )
        )
    if problems:
        raise TranslationError(*problems)
    return out


class _Derivation:
    """The derivation for one kernel; `assumptions` grows as arguments are decided."""

    def __init__(self, source: str, name: str, loaded: LoadedKernel, settings: dict[str, Any]):
        assert loaded.node is not None and loaded.program is not None
        self.source, self.name, self.loaded, self.settings = source, name, loaded, settings
        self.program, self.node = loaded.program, loaded.node
        self.args = {param.name: param for param in loaded.fn.params}
        self.home: Scope = self.program.import_known(loaded.module)
        sites = launch_sites(self.program, self.home, self.node)
        self.site = sites[0] if sites else None
        self.assumptions: list[str] = []
        if len(sites) > 1:
            lines = ", ".join(str(site.line) for site in sites[1:])
            self.assume(f"the launch at line {sites[0].line} was taken, not those at lines {lines}")
        helpers = {r.name: r.value for r in loaded.reached if r.kind == "jit"}
        self.pointers = pointer_arguments(self.node, helper := lambda called: _definition(helpers.get(called)))
        self.integer_pointers = integer_pointers(self.node, self.pointers, helper)
        self.problems: list[Diagnostic] = []

    def assume(self, text: str) -> None:
        if text not in self.assumptions:
            self.assumptions.append(text)

    def launches(self) -> list[DerivedLaunch]:
        configs = self._configs()
        out = []
        for number, config in enumerate(configs):
            mark = len(self.assumptions)
            spec = self._spec(config, "" if len(configs) == 1 else f"#{number + 1}")
            out.append(DerivedLaunch(spec, tuple(self.assumptions), number == 0))
            del self.assumptions[mark:]
            if self.problems:
                raise TranslationError(*self.problems)
        return out

    def _configs(self) -> list[triton.Config | None]:
        """The distinct autotune configs, in their order; [None] without autotune."""
        configs, unread = autotune_configs(self.loaded, self.program, self.home)
        for why in unread:
            self.assume(why)
        return configs or [None]

    # --- one launch

    def _spec(self, config: triton.Config | None, suffix: str) -> LaunchSpec:
        spec = LaunchSpec(id=f"{_stem(self.source)}/{self.name}{suffix}", kernel=self.name, source=self.source)
        for name, param in self.args.items():
            if param.is_constexpr:
                self._constexpr(name, param, config, spec)
            else:
                self._runtime(name, param, config, spec)
        spec.options.update(self._options(config))
        return replace(spec, grid=self._grid())

    def _constexpr(self, name: str, param: Any, config: triton.Config | None, spec: LaunchSpec) -> None:
        value = self._constant(name, param, config)
        spec.signature[name] = "constexpr"
        if value is not NO_VALUE:
            spec.constexprs[name] = value
            return
        why = "it has no default, no autotune config gives it, and no launch in the file shows its value"
        if self.site is not None and name in self.site.arguments:
            why = f"`{ast.unparse(self.site.arguments[name])}` at line {self.site.line} is known only when the host program runs"
        place = self.loaded.path, self.node.lineno, self.node.col_offset + 1
        help = f"give it with --set {name}=VALUE, or in a launch spec with -l LAUNCHES.json"
        self.problems.append(
            Diagnostic("spec-missing", f"{self.name}: the value of {name} is not known", *place, why, help)
        )

    def _constant(self, name: str, param: Any, config: triton.Config | None) -> Any:
        """The encoded value of a constexpr, or NO_VALUE."""
        if name in self.settings:
            return self.settings[name]
        if config is not None and name in config.kwargs:
            return encode_value(config.kwargs[name])
        if self.site is not None and name in self.site.arguments:
            expression = self.site.arguments[name]
            try:
                value = encoded(self.site.value(expression))
            except NoValue:
                value = NO_VALUE
            if value is not NO_VALUE:
                self.assume(f"{name} = {json.dumps(value)}, as in the launch at line {self.site.line}")
                return value
        decorators = self.loaded.decorators
        found = heuristic_value(name, decorators, lambda: self._known(config), self.program, self.home)
        if found is not None:
            self.assume(f"{name} = {json.dumps(found.value)}, {found.why}")
            return found.value
        if param.has_default and (value := encoded(param.default)) is not NO_VALUE:
            self.assume(f"{name} = {json.dumps(value)}, its default")
            return value
        return NO_VALUE

    def _known(self, config: triton.Config | None) -> dict[str, Any]:
        """The arguments as a heuristic's function sees them."""
        known: dict[str, Any] = {}
        for name in self.args:
            if name in self.settings:
                known[name] = self.settings[name]
            elif config is not None and name in config.kwargs:
                known[name] = config.kwargs[name]
            elif self.site is not None and name in self.site.arguments:
                try:
                    known[name] = self.site.value(self.site.arguments[name])
                except NoValue:
                    pass
            if name in self.pointers and not (name in known and known[name] is None):
                known[name] = HostName(f"the tensor {name}", is_module=True)
        return known

    def _runtime(self, name: str, param: Any, config: triton.Config | None, spec: LaunchSpec) -> None:
        given = self.settings.get(name, NO_VALUE)
        if isinstance(given, str) and given != "constexpr" and type_problem(given) is None:
            self._typed(name, given, spec, "as set")
            return
        if given is not NO_VALUE:
            spec.signature[name], spec.constexprs[name] = "constexpr", given
            return
        expression = self.site.arguments.get(name) if self.site is not None else None
        if isinstance(expression, ast.Constant) and expression.value is None:
            spec.signature[name], spec.constexprs[name] = "constexpr", None
            self.assume(f"{name} is None, as in the launch at line {self.site.line}")  # type: ignore[union-attr]
            return
        if expression is None and param.has_default and param.default is None:
            spec.signature[name], spec.constexprs[name] = "constexpr", None
            self.assume(f"{name} is None, its default")
            return
        if _HINTED.match(param.annotation_type or ""):
            self._typed(name, param.annotation_type, spec, "its type hint")
        elif name in self.pointers or _POINTER_NAMES.search(name):
            self._pointer(name, expression, spec)
        else:
            self._scalar(name, param, expression, spec)

    def _typed(self, name: str, kind: str, spec: LaunchSpec, why: str) -> None:
        spec.signature[name] = kind
        if kind.startswith("*"):
            spec.attrs[name] = "DS"
            self.assume(f"{name} is {kind} ({why}), 16-byte aligned and within 2 GiB")

    def _pointer(self, name: str, expression: ast.expr | None, spec: LaunchSpec) -> None:
        element = self.site.tensor_type(expression) if self.site is not None and expression is not None else ""
        if element:
            self._typed(name, "*" + element, spec, f"the tensor at line {self.site.line}")  # type: ignore[union-attr]
        elif name in self.integer_pointers or _INDEX_NAMES.search(name):
            why = "its values are used as indices" if name in self.integer_pointers else "its name"
            self._typed(name, "*i64", spec, f"{why}; torch indices are int64")
        elif shown := self._shown_float():
            self._typed(name, "*" + shown, spec, "no dtype is shown; as the other tensors of the launch")
        else:
            self._typed(name, "*fp32", spec, "no dtype is shown; fp32 is assumed")

    def _shown_float(self) -> str:
        """The floating-point element type that most pointers of the launch show (the first of them if several do)."""
        if self.site is None:
            return ""
        arguments = [
            self.site.arguments[name] for name in self.args if name in self.pointers and name in self.site.arguments
        ]
        found = [kind for kind in map(self.site.tensor_type, arguments) if kind in ("fp16", "bf16", "fp32")]
        return max(found, key=found.count, default="")

    def _scalar(self, name: str, param: Any, expression: ast.expr | None, spec: LaunchSpec) -> None:
        site = self.site
        if site is not None and expression is not None and site.stride_is_one(expression):
            spec.signature[name], spec.constexprs[name] = "constexpr", 1
            self.assume(f"{name} = 1: the launch at line {site.line} passes the last stride of a contiguous tensor")
            return
        value = self._shown(expression, param)
        if isinstance(value, bool):
            spec.signature[name] = "u1"
        elif isinstance(value, int) and value == 1:
            spec.signature[name], spec.constexprs[name] = "constexpr", 1
            self.assume(f"{name} = 1, which Triton specializes on")
        elif isinstance(value, int):
            spec.signature[name] = "i32" if -(2**31) <= value < 2**31 else "i64"
            if value % 16 == 0:
                spec.attrs[name] = "D"
            self.assume(
                f"{name} is {spec.signature[name]}{', divisible by 16' if value % 16 == 0 else ''} (like {value})"
            )
        elif isinstance(value, float) or self._is_float(name, expression):
            spec.signature[name] = "fp32"
            self.assume(f"{name} is fp32 ({'its value' if isinstance(value, float) else 'its name or annotation'})")
        else:
            spec.signature[name] = "i32"
            divisible = bool(_MULTIPLE_NAMES.search(name))
            if divisible:
                spec.attrs[name] = "D"
            self.assume(f"{name} is i32{', divisible by 16' if divisible else ''} (its name)")

    def _shown(self, expression: ast.expr | None, param: Any) -> Any:
        if expression is not None and self.site is not None:
            try:
                return self.site.value(expression)
            except NoValue:
                return None
        return param.default if param.has_default else None

    def _is_float(self, name: str, expression: ast.expr | None) -> bool:
        annotation = self.site.annotation(expression) if self.site is not None and expression is not None else ""
        return annotation == "float" if annotation in ("float", "int", "bool") else bool(_FLOAT_NAMES.search(name))

    def _options(self, config: triton.Config | None) -> dict[str, Any]:
        options: dict[str, Any] = dict(DEFAULT_OPTIONS)
        if self.site is not None:
            for name in AMD_OPTIONS:
                if name in self.site.keywords:
                    try:
                        options[name] = encode_value(self.site.value(self.site.keywords[name]))
                    except (*NoValue, TranslationError):
                        known = options.get(name, "left out")
                        self.assume(
                            f"{name} = {known}: `{ast.unparse(self.site.keywords[name])}` is known only when the host program runs"
                        )
        if config is not None:
            options |= {"num_warps": config.num_warps, "num_stages": config.num_stages}
            if config.num_ctas != 1:
                options["num_ctas"] = config.num_ctas
            options |= {k: encode_value(v) for k, v in config.kwargs.items() if k in AMD_OPTIONS and k not in self.args}
        options |= {
            name: self.settings[name] for name in AMD_OPTIONS if name in self.settings and name not in self.args
        }
        return options

    def _grid(self) -> tuple[int, ...]:
        if self.site is None:
            return ()
        try:
            grid = self.site.value(self.site.grid)
        except NoValue:
            return ()
        sizes = grid if isinstance(grid, tuple) else (grid,)
        return sizes if len(sizes) <= 3 and all(type(n) is int and n >= 0 for n in sizes) else ()


def _definition(fn: Any) -> ast.FunctionDef | None:
    return fn.parse().body[0] if fn is not None else None


def _stem(source: str) -> str:
    return Path(source).stem if source.endswith(".py") else source
