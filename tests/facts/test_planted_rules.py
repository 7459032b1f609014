"""Rules that are wrong, one at a time: a kernel of the table is found to be what is not said of it."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from test_narrow_kernels import CASES, GIVEN, made
from test_narrow_rounds import LOOPS
from test_narrow_rounds import made as made_of_loops

from gluonize.facts.function import FunctionFacts
from gluonize.facts.integers import host_bounds, known
from gluonize.facts.integers.host_bounds import less, quotient
from gluonize.facts.integers.operations import operation_of
from gluonize.facts.integers.ranges import Range
from gluonize.facts.kernel import KernelFacts
from gluonize.facts.loops import span
from gluonize.facts.numbers import guards, launch_values, overflow, signs, values
from gluonize.facts.webs import Webs

# What is wrong: where it stands, what stands there instead, and the kernel that shows it.
PLANTED: dict[str, tuple[Any, str, Callable[[Any], Any], str]] = {
    "nothing is checked": (signs, "conditions_for", lambda old: lambda *a: frozenset(), "sums"),
    "unsigned numbers do not wrap around": (known, "is_linear", lambda old: lambda type: type.bits >= 5, "signs"),
    "a grid is small": (values, "_most_programs", lambda old: lambda function, operation: 3, "programs"),
    "any constant is not negative": (
        guards,
        "_not_negative",
        lambda old: lambda f, test: [x for _, x in guards._inequalities(test) if hasattr(x, "id")],
        "guards of others",
    ),
    "a comparison holds both ways": (
        guards,
        "_inequalities",
        lambda old: lambda test: [p for a, b in old(test) for p in ((a, b), (b, a))],
        "guards that move",
    ),
    "what is raised is above 0": (guards, "_raised", lambda old: lambda a: Range(max(a.lo, 1), max(a.hi, 1)), "guards"),
    "cdiv rounds down": (overflow, "ceiling", lambda old: quotient, "divisors"),
    "a product of negative numbers has their bound": (
        overflow,
        "operated_bound",
        lambda old: lambda name, a, b, least: old(name, a, b, (0, 0)),
        "quotients",
    ),
    "the last index is one less": (overflow, "less", lambda old: lambda a, by: less(a, by + 1), "loops"),
    "launches have what unrolled loops begin with": (
        FunctionFacts,
        "settled",
        lambda old: FunctionFacts.fact,
        "unrolled up",
    ),
    "all parameters stay": (launch_values, "_is_parameter", lambda old: lambda function, node: True, "constants"),
    "quotients of launches are exact": (launch_values, "quotient", lambda old: lambda a, by: a, "divisors"),
    "a helper is known by its name": (
        values,
        "operation_of",
        lambda old: lambda call, callee: operation_of(call, callee) or _named(call),
        "names of builtins",
    ),
    "the last value of a variable is its only one": (
        values,
        "joined",
        lambda old: lambda parts: next((x for x in reversed(parts) if x is not None), None),
        "branches",
    ),
    "sums are as large as what is added": (values, "summed", lambda old: lambda type, a, count: a, "reductions"),
    "a condition is off by one": (
        host_bounds.Condition,
        "holds",
        lambda old: lambda c, arguments, grid=(): c.bound.value(arguments, grid) <= c.most + 1,
        "sums",
    ),
}
OF_LOOPS: dict[str, tuple[Any, str, Callable[[Any], Any], str]] = {
    "the last round is left out": (
        span,
        "trips_of",
        lambda old: lambda *a: (n := old(*a)) and n - 1,
        "constants",
    ),
    "all definitions are alike": (
        Webs,
        "definition_of",
        lambda old: lambda webs, use: next(iter(webs.reaching.get(use, [])), None),
        "indices again",
    ),
    "what unrolled loops begin with": (FunctionFacts, "settled", lambda old: FunctionFacts.fact, "unrolled branches"),
}


def _named(call):
    from gluonize.facts.integers.operations import ARGUMENTS, Operation

    name = getattr(call.func, "id", "")
    return Operation(name, dict(zip(ARGUMENTS[name], call.args))) if name in ARGUMENTS else None


@pytest.mark.one_of(3)
@pytest.mark.parametrize("planted", PLANTED)
def test_a_rule_that_is_wrong_is_found(planted: str, monkeypatch, tmp_path: Path):
    owner, name, change, case = PLANTED[planted]
    with monkeypatch.context() as patch:
        patch.setattr(owner, name, change(getattr(owner, name)))
        try:
            found = made(tmp_path, CASES[case])
        except KeyError as error:
            found = f"no launch has {error}"
    assert found, f"{planted} is not found in `{case}`"


@pytest.mark.parametrize("planted", OF_LOOPS)
def test_a_rule_of_loops_that_is_wrong_is_found(planted: str, monkeypatch, tmp_path: Path):
    owner, name, change, case = OF_LOOPS[planted]
    monkeypatch.setattr(owner, name, change(getattr(owner, name)))
    assert made_of_loops(tmp_path, LOOPS[case]), f"{planted} is not found in `{case}`"


@pytest.mark.parametrize("attribute", ["given_negative", "refuses"])
def test_launches_that_are_forgotten_are_found(attribute: str, monkeypatch, tmp_path: Path):
    """Rules are asked as if no launch were given; what they rest on is compared with the launches that are."""
    old = signs._Arguments.get if attribute == "given_negative" else overflow._Walk.at_most
    if attribute == "given_negative":

        def get(self, name, default=None):
            return default if name in self.without or default is None else Range(0, default.hi)

        monkeypatch.setattr(signs._Arguments, "get", get)
        assert made(tmp_path, CASES["products"], given=GIVEN["negative"], every=False)
    else:

        def at_most(self, bound, type):
            kernel = self.function.kernel
            found = KernelFacts.refuses
            try:
                KernelFacts.refuses = lambda *a: False
                return old(self, bound, type)
            finally:
                KernelFacts.refuses = found
                assert kernel is self.function.kernel

        monkeypatch.setattr(overflow._Walk, "at_most", at_most)
        assert made(tmp_path, CASES["products"], given=GIVEN["large"], every=False)
