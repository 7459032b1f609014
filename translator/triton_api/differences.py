"""What one Triton does another way than the next, where a name alone does not say it. Each function asks what is there, not which version."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Mapping
from typing import Any

from gluonize.triton_api.backend import knobs
from gluonize.triton_api.front_end import code_generator
from gluonize.triton_api.libtriton import nvidia

FP_FUSION = "enable_fp_fusion"  # of a launch: whether a product and a sum may become one instruction, which rounds once


class CodeGenerator(code_generator.CodeGenerator):
    """Triton's code generator, which says whether it visits the body of a loop only to find what the loop carries.

    From Triton 3.9 on it counts that itself, and visits no inner loop again on the way.
    """

    _loop_carry_discovery_depth = 0

    @property
    def discovers(self) -> bool:
        """Whether what is visited now is thrown away."""
        return self._loop_carry_discovery_depth > 0

    def _find_carries(self, *args: Any, **kwargs: Any) -> Any:
        counted = hasattr(super(), "_discovering_loop_carries")
        with contextlib.nullcontext() if counted else self._counting():
            return super()._find_carries(*args, **kwargs)

    @contextlib.contextmanager
    def _counting(self) -> Iterator[None]:
        self._loop_carry_discovery_depth += 1
        try:
            yield
        finally:
            self._loop_carry_discovery_depth -= 1


def base_arch(options: Any) -> str:
    """The architecture of AMD options without a suffix; Triton 3.8 knows none with one."""
    return getattr(options, "base_arch", options.arch)


def shares_out_clusters() -> bool:
    """Whether there is the pass that gives each CTA of a cluster its part of every tensor; from Triton 3.9 on."""
    return hasattr(nvidia.passes.ttnvgpuir, "add_assign_cga_layouts")


def fuses() -> bool:
    """Whether Triton fuses products with sums where a launch does not say: from 3.10 on it does not, before it does. The user's
    environment may say otherwise (TRITON_DEFAULT_FP_FUSION, TRITON_FORCE_DISABLE_FP_FUSION)."""
    return bool(knobs.language.default_fp_fusion) and not getattr(knobs.language, "force_disable_fp_fusion", False)


def with_numerics(options: Mapping[str, Any]) -> dict[str, Any]:
    """Options of a launch with those that change numbers said, so that what is compiled is what the output's header says."""
    return {FP_FUSION: fuses(), **options}
