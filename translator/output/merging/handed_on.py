"""A public kernel that hands its arguments on to one of several private ones.

def kernel(x_ptr, BLOCK: gl.constexpr):
    if 64 <= BLOCK and BLOCK <= 1024 and gl.num_warps() <= 4:
        _kernel(x_ptr, BLOCK)
    else:
        gl.static_assert(False, "kernel is translated for ...")
"""

from __future__ import annotations

import textwrap
from collections.abc import Sequence, Set
from dataclasses import dataclass

from gluonize.decide.layouts.size_range import in_words
from gluonize.gluon.trees.function import JIT, Block, GluonFunction, call_in_block, formatted, statements
from gluonize.numbered import numbered
from gluonize.write.contracts import contracts
from gluonize.write.programs.persistent import for_tiles
from gluonize.write.state.unit import Tiles

_ASKED = "num_stages"  # what a launch gives as an option, and a kernel may have as a parameter


@dataclass(frozen=True)
class Ranged:
    """A kernel for sizes within limits. added: its parameters that the source does not have."""

    function: GluonFunction
    limits: tuple[contracts.SizeRange | contracts.Bound, ...]
    added: Set[str]


def picked_by_ranges(
    name: str, kernels: Sequence[Ranged], taken: set[str], tiles: Tiles | None = None
) -> tuple[list[Block], GluonFunction]:
    """(private kernels, the public one that takes the first whose limits hold). tiles: of programs that have several."""
    own = set().union(*(kernel.added for kernel in kernels)) - {_ASKED}
    asking = [k for k in kernels if any(p.name.value == _ASKED for p in k.function.parameters)]
    public = (asking or list(kernels))[0].function.without_parameters(own)[0]
    before: list[Block] = []
    lines: list[str] = []
    for kernel in kernels:
        private = numbered(f"_{name.lstrip('_')}", lambda found: found in taken or found == name)
        taken.add(private)
        before.append((for_tiles(kernel.function.called(private), tiles).defined(JIT),))
        tests = contracts.conditions(kernel.limits)
        test = condition(" and ".join(tests), public.indent)
        lines += [
            f"el{test}" if lines else test,
            call_in_block(private, for_tiles(kernel.function, tiles).handed_on(own)),
        ]
    message = contracts.quoted(
        f"{name} is translated for {'; or for '.join(in_words(kernel.limits) for kernel in kernels)}"
    )
    lines += refused(message, public.indent)
    return before, public.with_statements(statements("\n".join(lines) + "\n"))


def condition(test: str, indent: int) -> str:
    """`if test:`, as black has it behind an indentation."""
    return formatted(f"if {test}:\n    pass", indent).rstrip().removesuffix("pass").rstrip()


def refused(message: str, indent: int) -> list[str]:
    """The branch of a kernel for launches that it was not translated for; indent: of the kernel's body, in columns."""
    refusal = formatted(f"gl.static_assert(False, {message})", indent + 4)
    return ["else:", *textwrap.indent(refusal, "    ").splitlines()]


__all__ = ["Ranged", "condition", "picked_by_ranges", "refused"]
