"""What launches have in common that device code takes for the same: Triton compiles each anew, a Gluon file has one text for them.

matmul(K=4096), matmul(K=4095)          K is a multiple of 16 in one: the text may not rest on it
matmul(sbn=1), matmul(sbn=256)          1 is compiled as a constant: the text takes any stride
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from gluonize.read.spec.launch import LaunchSpec


def common_launch(spec: LaunchSpec, beside: Sequence[LaunchSpec]) -> LaunchSpec:
    """`spec` with no more than what holds for the launches `beside` it too: alignment, sizes below 2 GiB, numbers that are 1.

    Launches that differ in more, such as the type of a number, are left out of account.
    """
    signature, constexprs, attrs = dict(spec.signature), dict(spec.constexprs), dict(spec.attrs)
    for other in beside:
        for name, kind in other.signature.items():
            if kind != "constexpr" and name in constexprs and _is_one(spec, name):
                signature[name] = kind
                del constexprs[name]
        attrs = {name: kept for name, own in attrs.items() if (kept := _common(own, _flags(other, name)))}
    return replace(spec, signature=signature, constexprs=constexprs, attrs=attrs)


def differing(launches: Sequence[LaunchSpec]) -> list[str]:
    """The arguments of which some of the launches know more than others: alignment, size, that it is 1."""
    known = [{n for n in x.signature if _is_one(x, n)} for x in launches]
    ones = set().union(*known) - set(launches[0].signature).intersection(*known) if launches else set()
    names = dict.fromkeys(name for x in launches for name in x.signature)
    return [n for n in names if n in ones or len({repr(_flags(x, n)) for x in launches}) > 1]


def _is_one(spec: LaunchSpec, name: str) -> bool:
    """Whether an argument is compiled as the constant 1."""
    return spec.signature.get(name) == "constexpr" and spec.constexprs.get(name) == 1


def _flags(spec: LaunchSpec, name: str) -> Any:
    """The attributes of an argument; a number that is 1 has none."""
    return "" if spec.signature.get(name) == "constexpr" else spec.attrs.get(name, "")


def _common(own: Any, other: Any) -> Any:
    """The flags that both have; of what is no text (a tuple's elements), all or none."""
    if isinstance(own, str) and isinstance(other, str):
        return "".join(flag for flag in own if flag in other)
    return own if own == other else None
