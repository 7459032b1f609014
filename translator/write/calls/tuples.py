"""Tuples of tensors in other layouts than they come in."""

from __future__ import annotations

import ast
from typing import Any


from gluonize.gluon.written import Written, call
from gluonize.trace.model.layouts import Layout
from gluonize.write.state.unit import Synthesized
from gluonize.write.state.writing import Writing


def in_layouts(writing: Writing, text: Written, own: Layout | None, wants: object) -> Written:
    """The tuple `text`, whose tensors are all in layout `own`, with each in the one of `wants`; None takes any.

    `f(x)` becomes `convert_2(f(x), layout_a, layout_b)`, a function of the output, because the tuple has no name.
    """
    if own is None or not isinstance(wants, tuple) or all(want is None or want == own for want in wants):
        return text
    return call(writing.added(_function(len(wants))), text, *(writing.names.spell(want or own) for want in wants))


def _function(n: int) -> Synthesized:
    name = f"convert_{n}"
    parameters = ", ".join(f"layout{i}: gl.constexpr" for i in range(n))
    results = ", ".join(f"gl.convert_layout(values[{i}], layout{i})" for i in range(n))
    lines = (
        f"def {name}(values, {parameters}):",
        f'    """The {n} tensors, each in its layout."""',
        f"    return {results}",
    )
    return Synthesized(name, "@gluon.jit\n" + "\n".join(lines) + "\n")


def flat_targets(target: ast.AST) -> list[ast.AST]:
    if isinstance(target, (ast.Tuple, ast.List)):
        return [t for e in target.elts for t in flat_targets(e)]
    return [target]


def flatten(value: Any) -> list:
    if isinstance(value, tuple):
        return [v for item in value for v in flatten(item)]
    return [value]


def flatten_like(value: Any, n: int) -> tuple:
    return value if isinstance(value, tuple) and len(value) == n else (None,) * n
