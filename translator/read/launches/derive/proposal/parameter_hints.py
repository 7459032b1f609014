"""What the head of a kernel says of an argument: its annotation, and what Triton is told not to specialize on."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from gluonize.read.launches.derive.proposal.guess import Guess
from gluonize.read.spec.launch import type_problem


def type_hint(param: Any) -> str:
    """The type that a parameter of a kernel is annotated with, as signatures have it; "" where that is none."""
    hint = param.annotation_type or ""
    return hint if not param.is_constexpr and hint and type_problem(hint) is None else ""


def annotated(guess: Guess, param: Any) -> Guess:
    """A guess with the type that the parameter's annotation says, whatever is passed for it, as Triton takes it."""
    hint = type_hint(param)
    if not hint or guess.kind == hint or guess.confidence == "given" or guess.value is None and guess.is_constant:
        return guess
    number = guess.number if isinstance(guess.number, (int, float)) else None
    by_16 = hint.startswith("*") or hint[0] in "iu" and hint != "u1" and type(number) is int and number % 16 == 0
    why = f"its type hint; {guess.why}" if guess.number is not None else "its type hint"
    return Guess(hint, why=why, confidence="read", divisible=by_16, number=guess.number)


def unspecialized(guess: Guess, param: Any) -> Guess:
    """A guess for a parameter of which Triton is told not to look at the value, or not at its alignment."""
    if (
        param.is_constexpr
        or guess.confidence == "given"
        or guess.items
        or guess.is_constant
        and type(guess.value) is not int
    ):
        return guess
    if param.do_not_specialize:
        kind = guess.kind if not guess.is_constant else Guess.integer(guess.value + 1, "", "").kind
        return replace(guess, kind=kind, value=None, divisible=False, specialized=False)
    return replace(guess, divisible=False) if param.do_not_specialize_on_alignment else guess
