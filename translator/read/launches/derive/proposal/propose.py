"""Proposing a launch: every argument from the best evidence there is."""

from __future__ import annotations

import ast
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from gluonize.read.evaluate.host_objects import UserFunction
from gluonize.read.evaluate.host_values import HostName
from gluonize.read.evaluate.spec_values import decode_value, value_problem
from gluonize.read.launches.derive.evidence import Evidence
from gluonize.read.launches.derive.host.model import (
    TRITON_TYPE,
    Descriptor,
    Dtype,
    Model,
    has_model,
    rests_on_made_up_sizes,
)
from gluonize.read.launches.derive.host.parameters import none_by_default
from gluonize.read.launches.derive.host.run import HostRun, HostState
from gluonize.read.launches.derive.host.sites import Site
from gluonize.read.launches.derive.kernel.element_types import copied_from
from gluonize.read.launches.derive.kernel.roles import is_pointer, size_role
from gluonize.read.launches.derive.proposal.described_tensors import described, with_sizes
from gluonize.read.launches.derive.proposal.guess import Guess, Proposal, has_form
from gluonize.read.launches.derive.proposal.known_values import known_values
from gluonize.read.launches.derive.proposal.parameter_hints import annotated, type_hint, unspecialized
from gluonize.read.launches.derive.proposal.tensor_types import is_weak, own_element, roots, shared_element, state_at
from gluonize.read.launches.derive.proposal.values import constant_by_comparison, constant_by_use, number_by_use
from gluonize.read.launches.derive.supposed import other_sizes
from gluonize.read.spec.launch import AMD_OPTIONS, type_problem
from gluonize.read.unresolved import NoValue
from gluonize.triton_api.jit_functions import JITCallable
from gluonize.triton_api.language import tl
from gluonize.triton_api.package import triton

# What Triton's AMD backend takes when a launch says nothing (HIPOptions in triton/backends/amd/compiler.py).
DEFAULT_OPTIONS = {"num_warps": 4, "num_stages": 2}

WHOLE_TYPES = ("i32", "i64")  # of items of a tuple of run-time integers


class Proposer:
    """Proposes launches of one kernel at one launch site (or none). given: values for parameters of the host function."""

    def __init__(self, evidence: Evidence, site: Site | None, given: Mapping[str, Any] | None = None):
        self.evidence, self.site = evidence, site
        self.state: HostState | None = None
        self.names = dict(given or {})
        self.larger: dict[str, Guess] = {}  # sizes in the place of made-up ones
        self.other: HostState | None = None  # with other sizes in the place of those that are made up
        if site is not None:
            names = {**_set_in_host(evidence, site), **dict(given or {})}
            self.state = self.run(site, names)
            with other_sizes():
                self.other = self.run(site, names)
        self.where = f"the launch at {site.place(evidence.loaded.path)}" if site is not None else ""

    def run(self, site: Site, names: dict[str, Any]) -> HostState | None:
        return state_at(self.evidence, site, names)

    def is_made_up(self, name: str) -> bool:
        """Whether the number that the launch passes rests on a size that nothing says."""
        assert self.state is not None
        other = self.other.arguments if self.other is not None else {}
        return name not in other or rests_on_made_up_sizes(self.state.arguments[name], other[name])

    def changed(self, given: Mapping[str, Any]) -> Proposer:
        """The same with other values for some names of the host function."""
        out = Proposer(self.evidence, self.site, {**self.names, **given})
        out.larger = self.larger
        return out

    @property
    def reaches(self) -> bool:
        """Whether the host function gets to the launch with these values."""
        return self.state is not None and not self.state.contradicts

    @property
    def defaulted(self) -> list[str]:
        """The parameters of the host functions that are None where nobody passes them."""
        functions = self.site.functions if self.site is not None else ()
        return [name for function in functions for name in none_by_default(function)]

    def proposal(self, config: triton.Config | None, forced: Mapping[str, Guess] | None = None) -> Proposal:
        """A guess for every argument. forced: guesses to start with."""
        found: dict[str, Guess] = {}
        later = []
        for name, param in self.evidence.parameters.items():
            guess = self.first(name, param, config, forced or {})
            if guess is not None:
                found[name] = guess
            elif name in self.evidence.heuristics:
                later.append(name)
            else:
                found[name] = self.by_use(name, param)
        found |= {n: annotated(g, self.evidence.parameters[n]) for n, g in found.items()}
        self.elements(found, forced or {})
        if types := self.asked_types(found):
            return self.changed(types).proposal(config, forced)
        self.torch_types(found)
        self.unit_strides(found)
        for name in later:
            found[name] = self.heuristic(name, found, config)
        given = self.state.arguments if self.state is not None else {}
        made = {n: with_sizes(v, given, found) for n, v in given.items() if isinstance(v, Descriptor) and n in found}
        found |= described(self.evidence, made, found, config)
        found |= {n: unspecialized(g, self.evidence.parameters[n]) for n, g in found.items()}
        ordered = {name: found[name] for name in self.evidence.parameters}
        known = known_values(self.state, self.other, ordered)
        options = self.options(config)
        for name in self.evidence.heuristics.keys() & {*AMD_OPTIONS} - self.evidence.parameters.keys():
            if isinstance(value := self.heuristic(name, found, config).value, int):
                options[name] = value
        alike = {name: root for name, root in roots(self.state).items() if name in ordered}
        return Proposal(self.evidence.name, ordered, options, made, *known, alike)

    # --- one argument

    def first(self, name: str, param: Any, config: triton.Config | None, forced: Mapping[str, Guess]) -> Guess | None:
        """The guess from what is given or read; None where only use and name are left, or a heuristic says it."""
        if name in self.evidence.settings:
            return self.given(name, self.evidence.settings[name], param)
        if name in forced or name in self.larger:
            return forced.get(name) or self.larger[name]
        if config is not None and name in config.kwargs:
            return Guess.constant(config.kwargs[name], "the autotune config", "read")
        if (found := self.at_site(name, param)) is not None:
            return found
        if name in self.evidence.heuristics:
            return None
        if param.has_default and has_form(param.default) and not isinstance(param.default, JITCallable):
            value = param.default.value if isinstance(param.default, tl.constexpr) else param.default
            if param.is_constexpr or value is None:
                return Guess.constant(value, "its default", "read")
            return _scalar(value, "its default", "read")
        hint = type_hint(param)
        return Guess(hint, why="its type hint", confidence="read", divisible=hint.startswith("*")) if hint else None

    def given(self, name: str, value: Any, param: Any) -> Guess:
        """What `--set` says: a type, a dtype, or a value."""
        is_type = isinstance(value, str) and type_problem(value) is None and value != "constexpr"
        if param.is_constexpr:
            if isinstance(value, str) and self.evidence.uses.arguments[name].any("called"):
                return Guess.constant(self.evidence.function(value), "--set", "given")
            if is_type and not self.evidence.uses.arguments[name].texts:
                return Guess.constant(decode_value({"$dtype": value}), "--set", "given")
            decoded = decode_value(value, self.evidence.loaded.load_jit) if value_problem(value) is None else value
            return Guess.constant(decoded, "--set", "given")
        if isinstance(value, list) and all(type(item) is int or item in WHOLE_TYPES for item in value):
            items = tuple(_item(item) for item in value)
            return Guess("tuple", why="--set", confidence="given", items=items)
        if is_type:
            pointer = name in self.evidence.uses.pointers and not value.startswith(("*", "tensordesc"))
            return Guess(
                "*" + value if pointer else value, why="--set", confidence="given", divisible="*" in value or pointer
            )
        return Guess.constant(value, "--set", "given")

    def at_site(self, name: str, param: Any) -> Guess | None:
        """What the launch passes, as far as the model run of the host code tells."""
        if self.state is None or self.site is None or name not in self.state.arguments:
            return None
        value = self.state.arguments[name]
        why, confidence = self.shown(name)
        if confidence != "read" and isinstance(value, (Model, int)) and self.is_made_up(name):
            if param.is_constexpr and (compared := constant_by_comparison(name, self.evidence)) is not None:
                return compared
            if param.is_constexpr and self.is_open(name, value):
                return constant_by_use(name, self.evidence)
            if param.is_constexpr:
                why, confidence = f"made-up size: {why}", "name"
                if value == 0 and type(value) is int:
                    value = 1  # a quotient of sizes that were made up each for itself
            elif value == 1 or isinstance(value, Model) and value.number == 1:
                return Guess("i32", why=why, confidence=confidence, number=1)
        if isinstance(value, HostName) and value.torch_dtype and param.is_constexpr and not self.is_cast_to(name):
            return Guess.constant(value, why, confidence)
        if isinstance(value, (Dtype, HostName)):
            return None
        if isinstance(value, Descriptor):
            return self.modelled(name, param, value.owner, why, confidence)
        if isinstance(value, Model):
            return self.modelled(name, param, value, why, confidence)
        if isinstance(value, tuple) and value and not param.is_constexpr:
            numbers = [item.number if isinstance(item, Model) else item for item in value]
            whole = all(type(number) is int for number in numbers)
            return Guess.several(numbers, why, "computed" if has_model(value) else confidence) if whole else None
        if has_model(value) or not has_form(value):
            return None
        if param.is_constexpr or value is None:
            return Guess.constant(value, why, confidence)
        return _scalar(value, why, confidence) if isinstance(value, (bool, int, float)) else None

    def is_open(self, name: str, value: Any) -> bool:
        """Whether a number that host code is given, and of which nothing is known, not by its name either, is the size of a tile, or how often
        a loop is unrolled: tiles as large as a tensor do not fit into LDS, and as many turns would take minutes, in Triton too.
        """
        open_number = isinstance(value, Model) and size_role(value.name) is None and size_role(name) is None
        return open_number and self.evidence.uses.arguments[name].any("static", "tile")

    def modelled(self, name: str, param: Any, value: Model, why: str, confidence: str) -> Guess | None:
        if param.is_constexpr:
            number = value.number
            return Guess.constant(number, why, confidence) if number is not None and not value.is_tensor else None
        if name in self.evidence.uses.pointers or value.is_tensor:
            element, shown = value.shown()
            if element:
                return Guess.pointer(element, f"{self.where}: {shown}", value.root().confidence)
            return Guess("*", why=value.root().name)  # its type is found with those of the same tensor
        if value.scalar == "float":
            said = value.why or "the host's annotation"
            return Guess("fp32", why=f"{self.where}: {said}", confidence="read", number=1.0)
        if value.scalar == "int" and number_by_use(name, self.evidence).kind == "fp32":
            return Guess.integer(value.size(), f"{self.where}: {value.why}", "computed")
        if value.number is None or number_by_use(name, self.evidence).kind == "fp32":
            return None
        return Guess.integer(value.number, why, "computed")

    def shown(self, name: str) -> tuple[str, str]:
        """How the launch gives an argument: read, or computed from sizes that were made up."""
        assert self.site is not None
        expression = self.site.arguments.get(name)
        text = _short(ast.unparse(expression)) if expression is not None else ""
        if expression is not None:
            try:
                self.evidence.program.evaluate(expression, self.site.inner)
                return f"{self.where}", "read"
            except NoValue:
                pass
        return f"`{text}` at {self.where.removeprefix('the launch at ')}" if text else self.where, "computed"

    def by_use(self, name: str, param: Any) -> Guess:
        """What is left: what the argument is used as, and its name."""
        if param.is_constexpr:
            return constant_by_use(name, self.evidence)
        if (count := self.evidence.items_of(name)) and name not in self.evidence.uses.pointers:
            row = [64] * (count - 1)  # strides, of which the last one is that of neighbours
            return Guess.several([*row, 1], f"its items are used, up to [{count - 1}]", "use")
        if name in self.evidence.uses.pointers or (is_pointer(name) and not self.evidence.uses.arguments[name].kinds):
            return Guess("*", why=name)
        return number_by_use(name, self.evidence)

    # --- all together

    def elements(self, found: dict[str, Guess], forced: Mapping[str, Guess]) -> None:
        """Element types: the pointers to one tensor, or to tensors made like it, have the same."""
        groups: dict[str, list[str]] = {}
        for name, guess in found.items():
            if guess.kind == "*":
                groups.setdefault(guess.why, []).append(name)
        given = {root: found[name].kind[1:] for name, root in roots(self.state).items() if self.is_given(name, found)}
        sources = {root: self.copied_from(names) for root, names in groups.items()}
        for root, names in sorted(groups.items(), key=lambda item: bool(sources[item[0]])):
            if root in given:
                found |= {n: Guess.pointer(given[root], "the same tensor's type is set", "computed") for n in names}
                continue
            element, source = own_element(self.evidence, names, self.state), sources[root]
            if self.site is not None and (source or is_weak(element)):
                if (shared := shared_element(self.evidence, self.site, root)) is not None:
                    found |= {n: Guess.pointer(shared.kind, shared.why, shared.confidence) for n in names}
                    continue
            if source and len(kind := found[source].kind) > 1 and kind.startswith("*"):
                why = f"what is stored is made of {source} without a conversion"
                found |= {n: replace(Guess.pointer(kind[1:], why, "use"), stored=True) for n in names}
                continue
            for name in names:
                guess = Guess.pointer(element.kind, element.why, element.confidence)
                found[name] = replace(guess, stored=element.stored)

    def asked_types(self, found: dict[str, Guess]) -> dict[str, Model]:
        """The tensors that host code asks for a type which nothing shows, with the one that is guessed: what it makes of the answer follows,
        such as the flag `q.dtype == torch.bfloat16`."""
        asked = self.state.open_types.keys() - self.names.keys() if self.state is not None else ()
        types = {root: found[n] for n, root in roots(self.state).items() if root in asked and len(found[n].kind) > 1}
        return {
            root: Model(root, guess.kind[1:], is_tensor=True, why=guess.why, confidence=guess.confidence)
            for root, guess in types.items()
            if guess.kind.startswith("*")
        }

    def copied_from(self, names: list[str]) -> str:
        """The pointer whose type `names` have because values are copied, unless the source names one."""
        return "" if any(n in self.evidence.documented for n in names) else copied_from(names, self.evidence.uses)

    def torch_types(self, found: dict[str, Guess]) -> None:
        """`OUT=y.dtype` at the launch: the type that the tensor has among the arguments."""
        given = self.state.arguments if self.state is not None else {}
        tensors = {n: v.root().name for n, v in given.items() if isinstance(v, Model) and found[n].kind.startswith("*")}
        for name, value in given.items():
            free = isinstance(value, Dtype) and found[name].is_constant and found[name].confidence in ("use", "name")
            if not free or self.is_cast_to(name):
                continue
            same = [found[n].kind[1:] for n, root in tensors.items() if root == value.owner.root().name]
            torch = next((t for t, kind in TRITON_TYPE.items() if [kind] == same[:1]), "")
            if torch:
                found[name] = Guess.constant(HostName.of_dtype(torch), self.shown(name)[0], "computed")

    def is_cast_to(self, name: str) -> bool:
        """Whether the kernel uses an argument as a type, which torch's are not to Triton."""
        return self.evidence.uses.arguments[name].any("dtype")

    def is_given(self, name: str, found: dict[str, Guess]) -> bool:
        return found[name].confidence == "given" and found[name].kind.startswith("*")

    def unit_strides(self, found: dict[str, Guess]) -> None:
        """The innermost stride of a tensor is 1 where nothing says otherwise: the last one among the arguments, unless an index without
        any stride is added too."""
        for base, strides in self.evidence.strides.items():
            if base in self.evidence.terms and self.evidence.terms[base].unit:
                continue
            free = [name for name in strides if found[name].confidence in ("use", "name")]
            if len(strides) > 1 and free and free[-1] == strides[-1]:
                name = strides[-1]
                why = f"the innermost stride of {base}, which is taken to be contiguous"
                found[name] = Guess.constant(1, why, "name")

    def heuristic(self, name: str, found: dict[str, Guess], config: triton.Config | None) -> Guess:
        """What the heuristic gives for the very arguments that the launch has."""
        arguments = {n: _host_value(n, guess) for n, guess in found.items()}
        if config is not None:
            arguments |= config.kwargs
        function, home = self.evidence.heuristics[name], self.evidence.home
        if isinstance(function, UserFunction):
            run = HostRun(self.evidence.program, self.site, self.evidence.uses.pointers)
            value = run.user_call(function, [arguments], {}, self.evidence.node, home, "?")
            value = value.number if isinstance(value, Model) and value.number is not None else value
            if not has_model(value) and has_form(value):
                return Guess.constant(value, "what its heuristic gives for these arguments", "computed")
        guess = constant_by_use(name, self.evidence)
        return Guess.constant(guess.value, f"{guess.why}; its heuristic cannot be read", "name")

    def options(self, config: triton.Config | None) -> dict[str, Any]:
        options: dict[str, Any] = dict(DEFAULT_OPTIONS)
        parameters = self.evidence.parameters
        for name, value in (self.state.options if self.state is not None else {}).items():
            value = value.number if isinstance(value, Model) else value
            if name in AMD_OPTIONS and name not in parameters and isinstance(value, (int, float, str)):
                if name not in ("num_warps", "num_stages") or type(value) is int and value > 0:
                    options[name] = value
        if config is not None:
            options |= {"num_warps": config.num_warps, "num_stages": config.num_stages}
            options |= {"num_ctas": config.num_ctas} if config.num_ctas != 1 else {}
            options |= {k: v for k, v in config.kwargs.items() if k in AMD_OPTIONS and k not in parameters}
        settings = self.evidence.settings
        options |= {name: settings[name] for name in AMD_OPTIONS if name in settings and name not in parameters}
        if options["num_warps"] & (options["num_warps"] - 1):
            options["num_warps"] = DEFAULT_OPTIONS["num_warps"]
        return options


def _set_in_host(evidence: Evidence, site: Site) -> dict[str, Any]:
    """Values that are set for arguments, by the names that the host function has for them: what it computes from them follows."""
    out = {}
    for name, value in evidence.settings.items():
        passed = site.arguments.get(name)
        is_type = isinstance(value, str) and type_problem(value) is None
        if isinstance(passed, ast.Name) and not is_type and isinstance(value, (bool, int, float, str, type(None))):
            out[passed.id] = value
    return out


def _item(value: int | str) -> Guess:
    """An item of a tuple that is set: a type, or a value that is known while compiling."""
    if isinstance(value, str):
        return Guess(value, why="--set", confidence="given")
    return Guess.constant(value, "--set", "given")


def _scalar(value: Any, why: str, confidence: str) -> Guess:
    if isinstance(value, bool):
        return Guess("u1", why=why, confidence=confidence, number=value)
    if isinstance(value, int):
        return Guess.integer(value, why, confidence)
    return Guess("fp32", why=why, confidence=confidence, number=value)


def _host_value(name: str, guess: Guess) -> Any:
    """An argument as the function of a heuristic sees it."""
    if guess.is_constant:
        return guess.value
    if guess.kind.startswith("*"):
        return Model(name, element=guess.kind[1:], is_tensor=True)
    return guess.number if guess.number is not None else Model(name)


def _short(text: str) -> str:
    return text if len(text) <= 48 else text[:45] + "..."
