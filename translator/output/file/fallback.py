"""`--fallback general`: the kernel as it was written stays beside its translation, and a launcher picks per launch.

The general kernel is the author's own text: it makes no assumption that the source did not make, so that whatever the
source accepted is still accepted. What only the compiler sees (a tile size from a heuristic) is picked by the
translation's own `static_assert`s, which fail before anything is launched.
"""

from __future__ import annotations

import json
from typing import Any

from gluonize.gluon.imports import Import
from gluonize.gluon.trees.function import formatted
from gluonize.output.contracts.launch_checks import Checks, asked_of
from gluonize.output.contracts.seen_rows import MATCHES, SEEN, shown, spelled
from gluonize.output.merging.kernel_family import Family
from gluonize.triton_api import front_end, jit_functions
from gluonize.triton_api.differences import FP_FUSION
from gluonize.triton_api.row import place_in
from gluonize.versions import triton_version

LAUNCHER_IMPORTS = (
    Import(*place_in(front_end.ROWS, "CompilationError", triton_version()), "CompilationError"),
    Import(*place_in(jit_functions.ROWS, "KernelInterface", triton_version()), "KernelInterface"),
)

LAUNCHER = '''class _OrGeneral(KernelInterface):
    """Launches `fn`, or `general` where the arguments are outside what `fn` was translated for."""

    def __init__(self, fn, general, fits, **options):
        import functools

        self.fn, self.general, self.fits = fn, general, fits
        jit = fn
        while not hasattr(jit, "params"):  # under autotune and heuristics
            jit = jit.fn
        jit.run = functools.partial(jit.run, **options)
        self.defaults = {p.name: p.default for p in jit.params if p.has_default}

    def run(self, *args, **kwargs):
        if not self.fits(self.defaults | dict(zip(self.fn.arg_names, args)) | kwargs):
            return self.general.run(*args, **kwargs)
        try:
            return self.fn.run(*args, **kwargs)
        except CompilationError:  # a static_assert; nothing was launched yet
            return self.general.run(*args, **kwargs)

    def __getattr__(self, name):
        return getattr(self.fn, name)'''


def served_rows(family: Family) -> list[dict[str, Any]]:
    """What the arguments of a launch show of each configuration the family serves: dtypes, values, num_warps."""
    rows: list[dict[str, Any]] = []
    for values in family.served:
        row = shown(values)
        if row not in rows:
            rows.append(row)
    return rows


def fits_name(kernel: str) -> str:
    return f"_fits_{kernel.lstrip('_')}"


def fits_function(family: Family, picked_later: bool) -> str:
    """`_fits_<kernel>(given)`: whether the translation serves a launch with these arguments.

    picked_later: autotune or heuristics decide the number of warps, so a launch that does not name it may have any.
    """
    name, rows = family.name, served_rows(family)
    lines = [
        f"def {fits_name(name)}(given):",
        f'    """Whether the translated {name} serves a launch with these arguments."""',
        *(assumed_lines(family) if family.contract else ()),
    ]
    defaults = {"num_warps": 4} | ({"num_ctas": 1} if any("num_ctas" in row for row in rows) else {})
    lines += [
        "    served = (",
        *(f"        {spelled(row)}," for row in rows),
        "    )",
        *(
            []
            if picked_later
            else [f"    given = {json.dumps(defaults)} | given  # as Triton launches without a number"]
        ),
        f"    {SEEN}",
        f"    return any({MATCHES} for row in served)",
    ]
    return formatted("\n".join(lines)).rstrip()


def assumed_lines(family: Family) -> list[str]:
    """Statements that return False for a launch outside of the contract."""
    asked = asked_of(family.contract, family.loaded.fn, [version.spec for version in family.versions])
    checks = Checks((asked,))
    lines = []
    for word, text in checks.functions().items():
        if text != word:
            lines += [f"    {line}" for line in text.split("\n")] if "\n" in text else [f"    {word} = {text}"]
    grid = checks.word("grid")
    more = [f"{grid}=None"] if family.contract.asks_grid else []
    parameters = [*(f"{p.name}=None" for p in family.loaded.fn.params), *more, f"**{checks.word('options')}"]
    every = " and ".join(f"({text})" for text in checks.texts(asked))
    lines += [f"    def assumed({', '.join(parameters)}):", f"        return {every}"]
    if not more:
        return [*lines, "    if not assumed(**given):", "        return False"]
    return [
        *lines,
        '    grid = given.get("grid", ())',
        "    programs = [*(grid(given) if callable(grid) else grid), 1, 1, 1]",
        "    if 0 in programs:",
        "        return True  # nothing is launched",
        f'    if not assumed(**given | {{"{grid}": programs}}):',
        "        return False",
    ]


def installed(family: Family, fuses: bool) -> str:
    """The statement that puts the launcher under the public name. fuses: whether the translation's products are fused with sums."""
    name = family.name
    return f"{name} = _OrGeneral({name}, {name}_general, {fits_name(name)}, {FP_FUSION}={fuses})"
