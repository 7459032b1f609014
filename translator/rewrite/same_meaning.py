"""Whether what two functions use by one name is the same: each launch loads its kernel anew, and gets other objects for the same text."""

from __future__ import annotations

import types
from collections.abc import Iterator
from typing import Any

from translator.triton_api.language import constexpr
from translator.triton_api.jit_functions import ConstexprFunction, JITFunction

_Pairs = frozenset[tuple[int, int]]


def same_meaning(a: Any, b: Any, compared: _Pairs = frozenset()) -> bool:
    """Whether two values have the same text in an output. compared: pairs of functions that are being compared."""
    if a is b or (id(a), id(b)) in compared:
        return True
    if type(a) is not type(b):
        return False
    if isinstance(a, constexpr):
        return same_meaning(a.value, b.value, compared)
    if isinstance(a, JITFunction):
        return a.src == b.src and _same_function(a.fn, b.fn, compared)
    if isinstance(a, ConstexprFunction):
        return same_meaning(a.fn, b.fn, compared)
    if isinstance(a, types.FunctionType):
        return _same_function(a, b, compared)
    return not callable(a) and bool(a == b)


def _same_function(a: types.FunctionType, b: types.FunctionType, compared: _Pairs) -> bool:
    """Whether two functions have one definition, and what they find outside of themselves is the same."""
    if (a.__code__, a.__defaults__, a.__kwdefaults__) != (b.__code__, b.__defaults__, b.__kwdefaults__):
        return False
    names, missing = set(_names(a.__code__)), object()
    return all(
        name in a.__globals__
        and name in b.__globals__
        and same_meaning(a.__globals__[name], b.__globals__[name], compared | {(id(a), id(b))})
        for name in names
        if a.__globals__.get(name, missing) is not b.__globals__.get(name, missing)
    )


def _names(code: types.CodeType) -> Iterator[str]:
    """The names that a function and those inside of it look up outside of themselves, or as attributes."""
    yield from code.co_names
    for constant in code.co_consts:
        if isinstance(constant, types.CodeType):
            yield from _names(constant)


__all__ = ["same_meaning"]
