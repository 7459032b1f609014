"""Translate one traced launch of one kernel into Gluon functions."""

from __future__ import annotations

from translator.frontend.launch import TracedLaunch
from translator.optimize.tuning import Tuning
from translator.pipeline.emit import check_stages
from translator.rewrite.emit import EmittedKernel, assemble
from translator.rewrite.function import FunctionRewriter
from translator.rewrite.tdm import NotForTheDataMover
from translator.rewrite.unit import Unit


def rewrite_kernel(launch: TracedLaunch, tuning: Tuning = Tuning()) -> EmittedKernel:
    """The kernel in Gluon, its pipelined loops changed as `tuning` says.

    Raises TranslationError for what has no correct translation.
    """
    small = frozenset(
        name for name, flags in launch.spec.attrs.items() if isinstance(flags, str) and "S" in flags
    )
    plain: dict[tuple[int, ...], str] = {}
    while True:
        unit = Unit(launch.trace, launch.anchors, launch.target, launch.num_warps, small, buffer_atomics=launch.buffer_atomics)
        unit.tuning = tuning
        unit.staging = launch.staging
        unit.operands_in_lds = launch.operands_in_lds
        unit.descriptor_layouts = launch.descriptor_layouts
        unit.plain_descriptors = frozenset(plain)
        rewriter = FunctionRewriter(unit, launch.trace.frames[0], ())
        try:
            text = rewriter.rewrite()
        except NotForTheDataMover as kept:
            assert kept.site not in plain, f"bug in gluonize: {kept.reason}"
            plain[kept.site] = kept.reason
            continue
        for reason in plain.values():
            rewriter.record.choose(f"tensor descriptors as bounds-masked accesses: {reason}")
        check_stages(rewriter)
        return assemble(unit, rewriter, text)
