"""What one argument of a launch is taken to be, and why."""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from typing import Any

from gluonize.diagnostics import TranslationError
from gluonize.read.evaluate.host_values import HostName
from gluonize.read.evaluate.spec_values import encode_value
from gluonize.read.launches.derive.host.model import Descriptor
from gluonize.read.spec.launch import LaunchSpec

# How much a guess is worth, best first: given by the user, read in the source, computed from what the source says, concluded from
# use, from the name alone or from sizes that were made up.
CONFIDENCE = ("given", "read", "computed", "use", "name")


@dataclass(frozen=True)
class Guess:
    """One argument. `kind`: a type as signatures have it, or `constexpr` with `value` in Python's form. `number`: what a run-time
    integer holds, for what is computed from it. `divisible`: it is a multiple of 16 (bytes of an address, or the value).
    `items`: of a tuple of run-time numbers. `specialized`: whether Triton looks at the value, which `do_not_specialize` forbids.
    `stored`: the type of a pointer is nothing but that of what is stored there.
    """

    kind: str
    value: Any = None
    why: str = ""
    confidence: str = "use"
    divisible: bool = False
    number: Any = None
    items: tuple[Guess, ...] = ()
    specialized: bool = True
    stored: bool = False

    @staticmethod
    def constant(value: Any, why: str, confidence: str) -> Guess:
        return Guess("constexpr", value, why, confidence, number=value)

    @staticmethod
    def pointer(element: str, why: str, confidence: str) -> Guess:
        return Guess(f"*{element}", why=why, confidence=confidence, divisible=True)

    @staticmethod
    def integer(number: int, why: str, confidence: str) -> Guess:
        """A run-time integer as Triton specializes it: 1 is a constant."""
        if number == 1:
            return Guess("constexpr", 1, why, confidence, number=1)
        kind = "i32" if -(2**31) <= number < 2**31 else "i64"
        return Guess(kind, why=why, confidence=confidence, divisible=number % 16 == 0, number=number)

    @staticmethod
    def several(numbers: Iterable[int], why: str, confidence: str) -> Guess:
        """A tuple of run-time integers, such as the strides of a tensor."""
        given = tuple(numbers)
        items = tuple(Guess.integer(number, why, confidence) for number in given)
        return Guess("tuple", why=why, confidence=confidence, number=given, items=items)

    @property
    def is_constant(self) -> bool:
        return self.kind == "constexpr"

    def shown(self) -> str:
        """The value or type, as `--set` takes it."""
        if self.items:
            return json.dumps([item.value if item.is_constant else item.kind for item in self.items])
        if not self.is_constant:
            return self.kind
        if callable(self.value) and hasattr(self.value, "__name__"):
            return self.value.__name__
        if isinstance(self.value, HostName):
            return json.dumps(encode_value(self.value))
        return str(getattr(self.value, "name", self.value))


@dataclass(frozen=True)
class Proposal:
    """A launch that is proposed: a guess for every argument, and the options. described: tensor descriptors that the host makes. values:
    what arguments hold, as far as the source says it, as launch specs have it; grid: () where it is not known. alike: of arguments that
    are tensors of a type that host code does not show, the tensor of its that they have it from."""

    kernel: str
    arguments: dict[str, Guess]
    options: dict[str, Any] = field(default_factory=dict)
    described: dict[str, Descriptor] = field(default_factory=dict)
    values: dict[str, Any] = field(default_factory=dict)
    grid: tuple[int, ...] = ()
    alike: dict[str, str] = field(default_factory=dict)

    def with_guesses(self, changed: dict[str, Guess]) -> Proposal:
        """Other guesses for some arguments; a type of one is that of all that are the same tensor, or made like it."""
        types = {
            self.alike[n]: g for n, g in changed.items() if n in self.alike and len(g.kind) > 1 and g.kind[0] == "*"
        }
        same = {n: types[root] for n, root in self.alike.items() if root in types and self.arguments[n].kind[:1] == "*"}
        same = {n: g for n, g in same.items() if self.arguments[n].confidence not in ("given", "read")}
        return replace(self, arguments={**self.arguments, **same, **changed})

    def spec(self, id: str, source: str) -> LaunchSpec:
        """The launch in spec form. Raises: TranslationError for a value that has none."""
        signature, constexprs, attrs = {}, {}, {}
        for name, guess in self.arguments.items():
            signature[name] = [item.kind for item in guess.items] or guess.kind
            if guess.items:
                constexprs[name] = [item.value for item in guess.items]
                attrs[name] = ["D" if item.divisible and not item.is_constant else "" for item in guess.items]
            elif guess.is_constant:
                constexprs[name] = encode_value(guess.value)
            elif not guess.specialized:
                continue
            elif guess.kind.startswith("*"):
                attrs[name] = "DS" if guess.divisible else "S"
            elif guess.divisible:
                attrs[name] = "D"
        values = {n: v for n, v in self.values.items() if signature.get(n, "constexpr") != "constexpr"}
        return LaunchSpec(
            id, self.kernel, source, signature, constexprs, attrs, dict(self.options), self.grid, values=values
        )


def has_form(value: Any) -> bool:
    """Whether a launch spec can say this value."""
    try:
        encode_value(value)
    except TranslationError:
        return False
    return True
