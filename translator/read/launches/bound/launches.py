"""The launches of a kernel that stand in host code, each with what is known of its arguments: nothing is guessed, nothing is executed.

Host code is run on a model of its inputs from the callers that can be seen (`if __name__ == "__main__"`, tests, the package) down to
the launch, several times with other suppositions: what comes out the same each time is known.
"""

from __future__ import annotations

import ast
import functools
import itertools
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from gluonize.diagnostics import TranslationError
from gluonize.read.evaluate.host_objects import UserFunction
from gluonize.read.evaluate.spec_values import encode_value
from gluonize.read.kernels.load import load_kernel
from gluonize.read.launches.bound.binding import BoundConfig, BoundValue, LaunchBinding
from gluonize.read.launches.derive.evidence import Evidence, gather_evidence
from gluonize.read.launches.derive.host.callers import calls_of, history_of, objects_of
from gluonize.read.launches.derive.host.launch_forms import LaunchForms, stripped
from gluonize.read.launches.derive.host.model import Descriptor, Dtype, Model, as_number, has_model
from gluonize.read.launches.derive.host.parametrized import ROWS, parametrized
from gluonize.read.launches.derive.host.run import History, HostRun, HostState
from gluonize.read.launches.derive.host.sites import Site, find_every_site
from gluonize.read.launches.derive.proposal.guess import Guess, has_form
from gluonize.read.launches.derive.proposal.known_values import known_values
from gluonize.read.launches.derive.proposal.propose import DEFAULT_OPTIONS
from gluonize.read.launches.derive.supposed import SUPPOSITIONS, Supposition, supposed_now, supposing
from gluonize.read.spec.descriptors import DescriptorType
from gluonize.read.spec.launch import AMD_OPTIONS, OPTIONS_OF_LAUNCHES, type_problem
from gluonize.triton_api.jit_functions import JITCallable
from gluonize.triton_api.language import tl
from gluonize.triton_api.package import triton

# Launch sites of one kernel that are looked at, ways in which one is reached, items of a loop on them, and callers of callers.
_SITES, _WAYS, _ITEMS, _LEVELS = 16, ROWS, 8, 3
# Ways with the items of loops on them: as many as a loop over a few sizes has for each of a few types.
_TURNS = ROWS
# Functions of which callers are looked for, in all files of a package, for one kernel; and callers of each.
_SEARCHED, _CALLERS = 6, 4


def launch_bindings(source: str, kernels: Sequence[str], search_path: Sequence[str] = ()) -> tuple[LaunchBinding, ...]:
    """The launches of some kernels of a file: in it, and in its package. Of one that cannot be loaded there are none."""
    out: list[LaunchBinding] = []
    for kernel in kernels:
        try:
            out += _of_kernel(source, kernel, search_path)
        except TranslationError:
            continue  # the translation says why
    return tuple(out)


def _of_kernel(source: str, kernel: str, search_path: Sequence[str]) -> Iterator[LaunchBinding]:
    loaded = load_kernel(source, kernel, globals={}, search_path=list(search_path))
    if loaded.node is not None and loaded.program is not None and not loaded.fn.is_gluon():
        yield from bindings_of(gather_evidence(source, kernel, loaded, {}))


def bindings_of(evidence: Evidence) -> Iterator[LaunchBinding]:
    """The launches of one kernel."""
    kernel, home, node = evidence.name, evidence.home, evidence.node
    sites = list(itertools.islice(find_every_site(evidence.program, home, node), _SITES))
    for call in _unread_launches(home.body, node, {id(site.call) for site in sites}):
        problem = f"`{_short(ast.unparse(call.func.value))}` is a kernel in a way that is not read"
        yield LaunchBinding(kernel, home.path, call.lineno, problem=problem, problem_line=call.lineno)
    callers = _Callers(evidence)
    for site in sites:
        yield from _Reader(evidence, site, callers).bindings()


@dataclass(frozen=True)
class _Way:
    """How a launch is reached: the launch, the call of the function around it, and so on outwards; parameters: those that a test gives
    the outermost function, left: how many other ways there are to give it some; picked: of each loop around, the item by its number; shown: these items.
    """

    calls: tuple[Site, ...]
    parameters: tuple[tuple[str, Any], ...] = ()
    left: int = 0
    picked: Mapping[ast.For, int] = field(default_factory=dict)
    shown: tuple[tuple[str, Any], ...] = ()


@dataclass
class _CalledRun(HostRun):
    """A model run of a function that is called with known arguments."""

    passed: dict[str, Any] = field(default_factory=dict)

    def parameters(self, function: ast.FunctionDef, scope: Any) -> dict[str, Any]:
        found = super().parameters(function, scope)
        own = self.site is not None and self.site.functions and function is self.site.functions[0]
        return found | {n: v for n, v in self.passed.items() if n in found} if own else found


class _Reader:
    """Reads one launch site."""

    def __init__(self, evidence: Evidence, site: Site, callers: _Callers):
        self.evidence, self.site, self.callers = evidence, site, callers
        self.histories: dict[tuple[int, Supposition], History] = {}

    def bindings(self) -> Iterator[LaunchBinding]:
        if problem := self.unread():
            yield problem
            return
        ways, left = self.ways()
        reached = [(way, states) for way in ways if (states := self.states(way)) and not states[0].contradicts]
        if not reached:
            way = _Way((self.site,))
            reached = [(way, states)] if (states := self.states(way)) else []
        for number, (way, states) in enumerate(reached):
            yield replace(self.binding(way, states), left=0 if number else left)
        if not reached:
            yield self.blank(problem="what host code does before it cannot be followed", problem_line=self.site.line)

    def blank(self, **fields: Any) -> LaunchBinding:
        return LaunchBinding(self.evidence.name, self.site.path, self.site.line, **fields)

    def states(self, way: _Way) -> list[HostState]:
        """The state at the launch for each supposition under which it is reached; none where it is not under the usual one."""
        out = []
        for supposition in SUPPOSITIONS:
            with supposing(supposition):
                state = self.state(way)
            if state is not None:
                out.append(state)
            elif not out:
                return []
        return out

    def ways(self) -> tuple[list[_Way], int]:
        """The ways to the launch, each with the first items of the loops on it before any with other items; and how many more there are
        than are looked at."""
        every = list(_ways(self.callers, (self.site,)))
        turns = [list(self.turns(way)) for way in every[:_WAYS]]
        in_turn = [way for row in itertools.zip_longest(*turns) for way in row if way is not None]
        left = sum(way.left for way in every) + len(every[_WAYS:]) + len(in_turn[_TURNS:])
        return in_turn[:_TURNS], left

    def turns(self, way: _Way) -> Iterator[_Way]:
        """A way with the first item of each loop on it, and then with each other item of one of them, of all loops in turn."""
        loops: dict[ast.For, list] = {}
        self.state(way, loops)
        first = dict.fromkeys(loops, 0)
        numbers = range(1, min(max(map(len, loops.values()), default=0), _ITEMS))
        others = (first | {loop: n} for n in numbers for loop, items in loops.items() if n < len(items))
        for picked in (first, *others):
            shown = tuple((ast.unparse(loop.target), loops[loop][number]) for loop, number in picked.items())
            yield replace(way, picked=picked, shown=shown)

    def state(self, way: _Way, loops: dict[ast.For, list] | None = None) -> HostState | None:
        """The state at the launch; None where it is not reached. loops: takes the loops on the way."""
        passed = dict(way.parameters)
        state: HostState | None = None
        for call in reversed(way.calls):
            run = _CalledRun(
                self.evidence.program, call, self.evidence.uses.pointers, history=self.history(call), passed=passed,
                picked=way.picked, loops={} if loops is None else loops,
                **(self.of_launch if call is self.site else {}),
            )  # fmt: skip
            if (state := run.run()) is None:
                return None
            passed = state.arguments
        return state

    @functools.cached_property
    def of_launch(self) -> dict[str, Any]:
        """What the kernel tells of the arguments of a launch: the terms of its addresses, and which of them are left out."""
        tiles = self.is_autotuned and bool(self.evidence.unread) and not self.every_config  # given by what is not read
        by_default = {n for n, p in self.evidence.parameters.items() if p.has_default or tiles and p.is_constexpr}
        return {"terms": self.evidence.terms, "left_out": frozenset(self.told() | by_default)}

    def history(self, call: Site) -> History:
        """What autograd keeps for a function, and hands it, and its objects; what callers pass to others is known better here."""
        if not call.functions:
            return History()
        # The tensors in it take the sizes that are supposed, so that each supposition has its own.
        key = id(call), supposed_now()
        if key not in self.histories:
            asked = (self.evidence.program, call, self.evidence.uses.pointers)
            backward = call.functions[0].name == "backward"
            self.histories[key] = history_of(*asked) if backward else History(objects_of(*asked))
        return self.histories[key]

    def unread(self) -> LaunchBinding | None:
        """A launch of which it cannot be told which arguments it passes."""
        call = self.site.call
        assert isinstance(call, ast.Call)
        state = self.state(_Way((self.site,)))
        given = set(state.arguments) if state is not None else set(self.site.arguments)
        missing = [n for n, p in self.evidence.parameters.items() if n not in given | self.told() and not p.has_default]
        if (wrong := self.unknown_option(state)) and not missing:
            problem = f"{wrong} is no argument of the kernel, and no option of Triton's"
            return self.blank(problem=problem, problem_line=self.site.line)
        if not missing or state is None:
            return None
        if self.evidence.unread and self.is_autotuned and not self.every_config:
            return self.blank(problem=self.evidence.unread[0], problem_line=self.site.line)
        what = "value" if len(missing) == 1 else "values"
        lacks = f"it has no {what} for {', '.join(missing)}"
        spreads = (*(a for a in call.args if isinstance(a, ast.Starred)), *(k for k in call.keywords if not k.arg))
        if spreads:
            texts = [f"`{'*' * (2 - isinstance(x, ast.Starred))}{ast.unparse(x.value)}`" for x in spreads]
            unknown = (
                f"what {texts[0]} passes is not known" if not texts[1:] else f"of {', '.join(texts)} not all is known"
            )
            return self.blank(problem=f"{unknown}, and {lacks}", problem_line=spreads[0].value.lineno)
        return self.blank(problem=lacks, problem_line=self.site.line)

    def unknown_option(self, state: HostState | None) -> str:
        """What a launch gives by a name that neither the kernel has nor a backend of Triton; "" for nothing, and where something else than
        Triton's decorators may take it."""
        if state is None or any(
            d.kind not in ("jit", "autotune", "heuristics") for d in self.evidence.loaded.decorators
        ):
            return ""
        known = {*self.evidence.parameters, *OPTIONS_OF_LAUNCHES}
        return next((name for name in state.options if isinstance(name, str) and name not in known), "")

    @property
    def is_autotuned(self) -> bool:
        """Whether the launch goes through `triton.autotune`, where the kernel has that."""
        above = [d.kind for d in self.evidence.loaded.decorators if d.kind in ("autotune", "heuristics")]
        around = stripped(self.site.call)
        return not around or "autotune" in above[around:]

    @functools.cached_property
    def every_config(self) -> tuple[triton.Config, ...]:
        """The configurations that the launch goes through: those of the decorators, else of the names that it may launch."""
        evidence, call = self.evidence, self.site.call
        if not evidence.tuned:
            return evidence.every_config if self.is_autotuned else ()
        launched = call.func.value if isinstance(call, ast.Call) and isinstance(call.func, ast.Subscript) else call
        assert isinstance(launched, ast.expr)
        return tuple(
            config
            for name, configs in evidence.tuned.items()
            if LaunchForms((name,), evidence.home.body).is_kernel(launched, self.site.functions)
            for config in configs
        )

    def told(self) -> set[str]:
        """The arguments that decorators give."""
        configs = self.every_config
        return {*self.evidence.heuristics, *(n for config in configs for n in config.kwargs)}

    def binding(self, way: _Way, states: list[HostState]) -> LaunchBinding:
        arguments: dict[str, BoundValue] = {}
        for name, param in self.evidence.parameters.items():
            seen = [self.bound(name, param, state) for state in states]
            found = seen[0]
            for other in seen[1:]:
                found = found.agreed(other)
            arguments[name] = found
        autotuned = bool(self.every_config or self.evidence.unread and self.is_autotuned)
        options = {} if autotuned or self.site.spread else dict(DEFAULT_OPTIONS)
        open_options: list[str] = []
        for name, value in states[0].options.items():
            options.pop(name, None)
            same = all(state.options.get(name) == value for state in states[1:])
            if name in AMD_OPTIONS and name not in arguments:
                if same and isinstance(value, (int, float, str)):
                    options[name] = value
                elif has_model(value):
                    open_options.append(name)
        caller = ""
        if len(way.calls) > 1:
            caller = f"called from {way.calls[-1].place(self.evidence.loaded.path)}"
        if told := (*way.parameters, *way.shown):
            shown = ", ".join(f"{n} = {getattr(v, 'dotted', repr(v))}" for n, v in told if not has_model(v))
            caller = f"{caller} with {shown}".strip()
        every: list[triton.Config | None] = [*self.every_config] or [None]
        configs = tuple(self.config(config, states) for config in every)
        values, grid = _held(arguments, states)
        return self.blank(
            caller=caller, arguments=arguments, options=options, configs=configs, values=values, grid=grid,
            open_options=tuple(open_options),
        )  # fmt: skip

    def config(self, config: triton.Config | None, states: list[HostState]) -> BoundConfig:
        """What a configuration of `triton.autotune` adds, and then the heuristics, whose answers are the same whatever is supposed."""
        parameters = self.evidence.parameters
        own = {n: encode_value(v) for n, v in config.kwargs.items() if has_form(v)} if config is not None else {}
        options: dict[str, Any] = {}
        if config is not None:
            options = {"num_warps": config.num_warps, "num_stages": config.num_stages}
            options |= {"num_ctas": config.num_ctas} if config.num_ctas != 1 else {}
            options |= {n: v for n, v in own.items() if n not in parameters and n in AMD_OPTIONS}
        constexprs = {n: v for n, v in own.items() if n in parameters}
        arguments = [state.arguments | (config.kwargs if config is not None else {}) for state in states]
        for name, function in self.evidence.heuristics.items():
            answers = [self.answer(function, given) for given in arguments]
            if not any(map(has_model, answers)) and has_form(answers[0]) and all(a == answers[0] for a in answers):
                is_option = name in AMD_OPTIONS and name not in parameters
                (options if is_option else constexprs)[name] = encode_value(answers[0])
            for given, answer in zip(arguments, answers):
                given[name] = answer
        return BoundConfig(constexprs, options)

    def answer(self, function: Any, arguments: dict[str, Any]) -> Any:
        """What a heuristic gives; a model of something where it is not known."""
        if not isinstance(function, UserFunction):
            return Model("?")
        evidence = self.evidence
        run = HostRun(evidence.program, self.site, evidence.uses.pointers)
        return run.user_call(function, [dict(arguments)], {}, evidence.node, evidence.home, "?")

    def bound(self, name: str, param: Any, state: HostState) -> BoundValue:
        """What is known of one argument; of what a configuration or a heuristic gives, nothing here."""
        expression = self.site.arguments.get(name)
        text = ast.unparse(expression) if expression is not None else ""
        found = BoundValue()
        if name in state.arguments:
            found = self.value(name, param, state.arguments[name])
        elif name not in self.told() and param.has_default and not isinstance(param.default, JITCallable):
            default = param.default.value if isinstance(param.default, tl.constexpr) else param.default
            found = self.value(name, param, default)
        hint = param.annotation_type or ""
        if hint and not param.is_constexpr and not hint.startswith("*") and type_problem(hint) is None:
            # An annotation is the type, whatever the number; then 1 is no constant.
            number = found.value if found.kind == "constexpr" and type(found.value) is int else found.number
            divisible = number % 16 == 0 if isinstance(number, int) else None
            found = BoundValue(hint, divisible=divisible, number=number)
        return replace(found, text=_short(text), is_constexpr=param.is_constexpr)

    def value(self, name: str, param: Any, value: Any) -> BoundValue:
        if value is None:
            # A default that nobody is seen to replace; what the kernel accesses under no condition is a tensor all the same.
            needed = not param.is_constexpr and () in self.evidence.uses.guards.get(name, ())
            return BoundValue("*") if needed else BoundValue("constexpr", None)
        if param.is_constexpr:
            if isinstance(value, Model):
                value = value.number if not value.is_tensor else value
            elif isinstance(value, Dtype):
                value = value.known or value
            known = value is not None and not has_model(value) and has_form(value)
            return BoundValue("constexpr", encode_value(value)) if known else BoundValue()
        if isinstance(value, Descriptor):
            return self.descriptor(value)
        if isinstance(value, Model) and (value.is_tensor or name in self.evidence.uses.pointers):
            described = False if value.is_tensor else None
            return BoundValue(f"*{value.told}", divisible=True if value.told else None, described=described)
        if isinstance(value, Model):
            if value.number is None:
                return BoundValue("fp32") if value.scalar == "float" else BoundValue()
            value = value.number
        if isinstance(value, bool):
            return BoundValue("u1")
        if isinstance(value, int):
            if value == 1:
                return BoundValue("constexpr", 1, number=1)
            return BoundValue("i32" if -(2**31) <= value < 2**31 else "i64", None, value % 16 == 0, value)
        return BoundValue("fp32", number=value) if isinstance(value, float) else BoundValue()

    def descriptor(self, made: Descriptor) -> BoundValue:
        """The type of a descriptor; that of its elements alone where its tile is not known, or a configuration sets it."""
        sizes = [as_number(size) for size in made.tile] if isinstance(made.tile, (list, tuple)) else []
        is_set = any(config.pre_hook is not None for config in self.evidence.every_config)
        if made.owner.told and sizes and all(type(size) is int for size in sizes) and not is_set:
            return BoundValue(DescriptorType(made.owner.told, tuple(sizes)).text)
        return BoundValue(f"*{made.owner.told}", described=True)


def _held(arguments: dict[str, BoundValue], states: list[HostState]) -> tuple[dict[str, Any], tuple[int, ...]]:
    """The numbers and sizes of a launch, and its grid, which are the same whatever is supposed."""
    guesses = {n: Guess(v.kind, number=v.number) for n, v in arguments.items() if v.kind}
    (values, grid), *others = [known_values(states[0], state, guesses) for state in states[1:]] or [({}, ())]
    values = {n: v for n, v in values.items() if all(other.get(n) == v for other, _ in others)}
    return values, grid if all(found == grid for _, found in others) else ()


def _unread_launches(body: Sequence[ast.stmt], kernel: ast.FunctionDef, known: set[int]) -> Iterator[ast.Call]:
    """Calls in the form of a launch of what is made of a kernel: `wrap(k)[grid](...)`, `f = KERNELS["k"]; f[grid](...)`."""
    nodes = [node for statement in body for node in ast.walk(statement)]
    names = {kernel.name}
    for node in nodes:
        if isinstance(node, ast.Assign) and not isinstance(node.value, ast.Lambda) and _mentions(node.value, names):
            names |= {target.id for target in node.targets if isinstance(target, ast.Name)}
    for node in nodes:
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Subscript) and id(node) not in known:
            if _mentions(node.func.value, names):
                yield node


def _mentions(node: ast.AST, names: set[str]) -> bool:
    """Whether an expression is made of one of the names; what a launch returns is none of it."""
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Subscript):
        return False
    if isinstance(node, ast.Name):
        return node.id in names
    return any(_mentions(inner, names) for inner in ast.iter_child_nodes(node))


def _short(text: str) -> str:
    return text if len(text) <= 48 else text[:45] + "..."


class _Callers:
    """Who calls the functions around the launches of a kernel: each is looked for once, and not many are."""

    def __init__(self, evidence: Evidence):
        self.evidence = evidence
        self.known: dict[ast.FunctionDef, list[Site]] = {}

    def of(self, site: Site) -> list[Site]:
        """The calls of the outermost function around a launch, or call."""
        function = site.functions[0]
        if function not in self.known:
            out_of_budget = len(self.known) >= _SEARCHED
            self.known[function] = (
                [] if out_of_budget else list(itertools.islice(calls_of(self.evidence.program, site), _CALLERS))
            )
        return self.known[function]


def _ways(callers: _Callers, calls: tuple[Site, ...]) -> Iterator[_Way]:
    """The ways to a launch from outside, those of callers before none."""
    site = calls[-1]
    found = False
    for caller in callers.of(site) if site.functions and len(calls) <= _LEVELS else ():
        if not any(caller.call is call.call for call in calls) and site.functions[0] not in caller.functions:
            found = True
            yield from _ways(callers, (*calls, caller))
    if not found:
        function = site.functions[0] if site.functions else None
        program = callers.evidence.program
        rows, left = parametrized(program, function, site.scopes[0]) if function is not None else ([], 0)
        for number, row in enumerate(rows or [{}]):
            yield _Way(calls, tuple(row.items()), 0 if number else left)
