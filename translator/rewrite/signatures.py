"""Signatures of translated functions: their arguments, and what a call hands on."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable


def without_parameters(head: str, names: Iterable[str]) -> tuple[str, dict[str, str]]:
    """A signature without some constexpr parameters, and their defaults."""
    defaults = {}
    for name in sorted(names):
        pattern = rf"\n?[ ]*\b{name}: gl\.constexpr = ([^,)\n]+),?"
        if (found := re.search(pattern, head)) is not None:
            defaults[name] = found.group(1).strip()
            head = head[: found.start()] + head[found.end() :]
    return re.sub(r",[ ]*\)", ")", head) if defaults else head, defaults


def argument_names(text: str) -> list[str]:
    """The names of all arguments."""
    spec = ast.parse(text).body[0].args  # type: ignore[attr-defined]
    return [a.arg for a in [*spec.posonlyargs, *spec.args, *spec.kwonlyargs]]


def passed_on(text: str, own: set[str]) -> list[str]:
    """The arguments that hand everything on but for the private kernel's own."""
    spec = ast.parse(text).body[0].args  # type: ignore[attr-defined]
    given = [a.arg for a in [*spec.posonlyargs, *spec.args]] + [f"{a.arg}={a.arg}" for a in spec.kwonlyargs]
    return [text for text in given if text.partition("=")[0] not in own]
