"""Conditions on whole arguments and on the number of programs, as the lines of a launch check.

    n = dict.fromkeys(["BLOCK", "stride"], 0) | {k: v for k, v in given.items() if isinstance(v, int)}
    if (n["BLOCK"] - 1) * n["stride"] > 2**31 - 1:
        raise ValueError("kernel: `offs * stride` may overflow")

Hooks that run before a launch do not see its grid: a check that asks for it stands around the jit function's `run`.
"""

from __future__ import annotations

import json
from collections.abc import Sequence

from gluonize.facts.integers.host_bounds import Condition, spelled

Conditions = Sequence[tuple[Condition, str]]  # each with an expression that it is for


def asks_grid(conditions: Conditions) -> bool:
    return any(condition.bound.asks_grid() for condition, _ in conditions)


def condition_lines(kernel: str, conditions: Conditions) -> list[str]:
    """Statements that refuse a launch outside of the conditions; `given` has its arguments by name, and its grid."""
    plain = [pair for pair in conditions if not pair[0].bound.asks_grid()]
    counting = [pair for pair in conditions if pair[0].bound.asks_grid()]
    lines = [*_numbers(conditions), *_refusals(kernel, plain)]
    if counting:
        lines += ['    if given.get("warmup"):', "        return  # nothing is launched", *_grid()]
        lines += _nothing_launched(counting, "return")
    return lines + _refusals(kernel, counting)


def _refusals(kernel: str, conditions: Conditions) -> list[str]:
    lines = []
    for condition, what in conditions:
        message = f"{kernel}: `{what}` may overflow"
        lines += [f"    if {failure(condition)}:", f"        raise ValueError({json.dumps(message)})"]
    return lines


def condition_tests(conditions: Conditions) -> list[str]:
    """Statements that return False for a launch outside of the conditions."""
    lines = [*_numbers(conditions), *(_grid() if asks_grid(conditions) else [])]
    lines += _nothing_launched(conditions, "return True")
    for condition, _ in conditions:
        lines += [f"    if {failure(condition)}:", "        return False"]
    return lines


def failure(condition: Condition) -> str:
    """`n["rows"] * 4 > 2**31 - 1`."""
    return f"{condition.bound.text(lambda name: f'n[{json.dumps(name)}]')} > {spelled(condition.most)}"


def _numbers(conditions: Conditions) -> list[str]:
    """`n`: the whole numbers among the arguments."""
    names = sorted(frozenset().union(*(condition.bound.arguments() for condition, _ in conditions)))
    listed = ", ".join(json.dumps(name) for name in names)
    whole = "{k: v for k, v in given.items() if isinstance(v, int)}"
    lines = [f"    n = dict.fromkeys([{listed}], 0) | {whole}"] if names else []
    for name in names:
        owner, _, size = name.partition(".shape[")
        if size:  # of a descriptor, which is given as (base, shape, strides)
            lines += [
                f"    if isinstance(given.get({json.dumps(owner)}), tuple):",
                f"        n[{json.dumps(name)}] = given[{json.dumps(owner)}][1][{size}",
            ]
    return lines


def _grid() -> list[str]:
    return [
        '    grid = given.get("grid", ())',
        "    grid = [*(grid(given) if callable(grid) else grid), 1, 1, 1]",
    ]


def _nothing_launched(conditions: Conditions, leave: str) -> list[str]:
    """What is divided by a count of programs has no value for a grid of 0."""
    divides = any(condition.bound.divides_by_grid() for condition, _ in conditions)
    return ["    if 0 in grid:", f"        {leave}  # nothing is launched"] if divides else []


def run_checked_name(kernel: str) -> str:
    return f"_run_checked_{kernel.lstrip('_')}"


def run_wrapper(kernel: str, check: str) -> str:
    """A function that puts the check around a jit function's `run`, which is given the grid."""
    return "\n".join(
        [
            f"def {run_checked_name(kernel)}(run):",
            f'    """`run` of {kernel}, once its arguments and its grid have passed the check."""',
            "",
            "    def checked(*args, **kwargs):",
            f"        {check}(*args, **kwargs)",
            "        return run(*args, **kwargs)",
            "",
            "    return checked",
        ]
    )


__all__ = ["Conditions", "asks_grid", "condition_lines", "condition_tests", "run_checked_name", "run_wrapper"]
