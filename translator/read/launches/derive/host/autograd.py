"""The two forms of an autograd function: `forward(ctx, x)`, and `forward(x)` with `setup_context(ctx, inputs, output)` beside it."""

from __future__ import annotations

import ast
import copy

from gluonize.read.launches.derive.host.sites import Site, method_beside


def is_forward(site: Site) -> bool:
    """Whether the outermost function around a launch is called by `C.apply(...)`."""
    function = site.functions[0]
    first = next((arg.arg for arg in function.args.args), "")
    return function.name == "forward" and (first == "ctx" or method_beside(site, "setup_context") is not None)


def whole_forward(forward: ast.FunctionDef, setup: ast.FunctionDef | None) -> ast.FunctionDef:
    """`forward` as one function that does what `setup_context` does behind it, where there is one: that is handed the arguments and the
    results of `forward`."""
    last = forward.body[-1]
    parameters = [arg.arg for arg in setup.args.args] if setup is not None else []
    if setup is None or len(parameters) != 3 or not isinstance(last, ast.Return) or last.value is None:
        return forward
    _, inputs, output = parameters
    given = ast.Tuple([ast.Name(arg.arg, ast.Load()) for arg in forward.args.args], ast.Load())
    body: list[ast.stmt] = [
        *forward.body[:-1],
        ast.Assign([ast.Name(inputs, ast.Store())], given),
        ast.Assign([ast.Name(output, ast.Store())], last.value),
        *setup.body,
        last,
    ]
    for added in body[len(forward.body) - 1 : len(forward.body) + 1]:
        ast.fix_missing_locations(ast.copy_location(added, last))
    whole = copy.copy(forward)
    whole.body = body
    return whole
