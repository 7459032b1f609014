"""Try what may relieve kernels that spill more registers than Triton's compile, or have longer loops, and keep what helps most.

Everything is compiled in child processes. Deterministic: what is tried, in which order and how often depends on texts and on
instruction counts, never on time.
"""

from __future__ import annotations

import ast
import logging
import os
import re
import tempfile
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from translator.diagnostics import InternalError, TranslationError
from translator.lowering.metrics import KernelMetrics
from translator.lowering.parity import MAX_INSTRUCTIONS, Parity
from translator.optimize.relief import BARRIER, IMPORT, WHY, Relief, parse_relief, places, relieved
from translator.optimize.tuning import Tuning
from translator.request import TranslateRequest
from translator.source.launch_spec import LaunchSpec

if TYPE_CHECKING:
    from translator.lowering.worker import WorkerPool

log = logging.getLogger("gluonize")

TRANSLATE = "translator.translation:translate_kernel"
LOWER = "translator.lowering.jobs:lower_file"
KINDS = {"spills", "instructions"}  # of `Parity.worse`, what a schedule changes
ROUNDS = 3  # barriers of one kernel at most
MOST_TRIED = 16  # a round; fewer of large kernels
INSTRUCTIONS_TRIED = 48_000  # a round: a minute of compiling on one core
MOST_INSTRUCTIONS = 20_000  # of a kernel: one compile takes half a minute, and the limit of a job is a minute
MOST_LAUNCHES = 2  # of one kernel: each of an autotuned one would be compiled for each trial
# What relief may cost a kernel whose loop is no longer than Triton's allows.
LONGER_LOOP, LONGER = 1.02, 1.05


@dataclass(frozen=True)
class Compared:
    """One compiled launch: its metrics, and those of Triton's own compile."""

    spec: LaunchSpec
    gluon: KernelMetrics
    triton: KernelMetrics

    def parity(self, gluon: KernelMetrics | None = None) -> Parity:
        return Parity(self.spec.id, "", gluon or self.gluon, self.triton)


def relieve(request: TranslateRequest, launches: Sequence[Compared], pool: "WorkerPool") -> TranslateRequest:
    """`request` with a relief for each kernel that one was found for."""
    if request.optimize != "parity" or request.strategy or request.tunings:
        return request
    found: list[tuple[str, Tuning]] = []
    for kernel in sorted({x.spec.kernel for x in launches}):
        own = [x for x in launches if x.spec.kernel == kernel]
        small = len(own) <= MOST_LAUNCHES and all(x.gluon.mix.insns <= MOST_INSTRUCTIONS for x in own)
        if small and any(KINDS & x.parity().worse().keys() for x in own):
            if relief := _relief_of(request, own, pool):
                found.append((kernel, replace(request.tuning(kernel), relief=relief)))
    return replace(request, tunings=tuple(found))


def _relief_of(request: TranslateRequest, launches: list[Compared], pool: "WorkerPool") -> Relief:
    texts = [_text(request, x.spec, pool) for x in launches]
    if not all(texts):
        return Relief()
    with tempfile.TemporaryDirectory(prefix="gluonize-relief-") as folder:
        trials = _Trials(request, launches, texts, pool, folder)
        best = min(trials.figures([Relief(), Relief(late=True)]))
        most = max(4, min(MOST_TRIED, INSTRUCTIONS_TRIED // max(x.gluon.mix.insns for x in launches)))
        for _ in range(ROUNDS):
            if best.met:
                break
            better = min([best, *trials.figures(_more(texts[0], best.relief, most))])
            if better.relief == best.relief:
                break
            best = better
    return best.relief


def _text(request: TranslateRequest, spec: LaunchSpec, pool: "WorkerPool") -> str:
    """The kernel alone, as it is without relief."""
    alone = replace(request, kernels=(spec.kernel,), launches=(spec,), standalone=True, fallback=None)
    return pool.call(TRANSLATE, alone, what=f"translating {spec.kernel} for {request.target}").text or ""


def _more(text: str, relief: Relief, most: int) -> list[Relief]:
    """`relief` with one more barrier, at `most` places from the whole of the kernel, or with the last one elsewhere nearby.

    The first barrier is tried without late scalars too: what they save it may save as well, and more.
    """
    out: list[Relief] = []
    for late in (relief.late, False) if relief == Relief(late=True) else (relief.late,):
        every = places(_kernel(text, Relief(late)))
        spread = every if len(every) <= most else [every[i * len(every) // most] for i in range(most)]
        out += [Relief(late, (*relief.barriers, n)) for n in spread if n not in relief.barriers]
        if relief.barriers and relief.barriers[-1] in every:
            at = every.index(relief.barriers[-1])
            near = [every[i] for i in (at - 2, at - 1, at + 1, at + 2) if 0 <= i < len(every)]
            out += [Relief(late, (*relief.barriers[:-1], n)) for n in near if n not in relief.barriers]
    return out


def _kernel(text: str, relief: Relief) -> str:
    """The text of the kernel, the last function of a standalone file that is compiled, with `relief`."""
    first, last = _span(text)
    return relieved("".join(text.splitlines(keepends=True)[first:last]), relief, [WHY, BARRIER])


def _span(text: str) -> tuple[int, int]:
    kernel = [n for n in ast.parse(text).body if isinstance(n, ast.FunctionDef) and n.decorator_list][-1]
    return kernel.lineno - 1, kernel.end_lineno


@dataclass(frozen=True, order=True)
class _Figures:
    """What a relief comes to, best first.

    beyond: limits of parity exceeded by other things than spills. longer: by how much the instructions exceed theirs. vgpr,
    sgpr: spills above Triton's. length: instructions of the loops, or of kernels without one. words: those of the relief.
    """

    beyond: int
    longer: float
    vgpr: int
    sgpr: int
    barriers: int
    length: int
    words: str

    @property
    def relief(self) -> Relief:
        return parse_relief(self.words)

    @property
    def met(self) -> bool:
        return not (self.beyond or self.vgpr or self.sgpr)

    def described(self) -> str:
        return f"{self.beyond} limits exceeded, {self.vgpr} VGPRs and {self.sgpr} SGPRs above Triton's, {self.length} instructions"


_WORST = _Figures(10**9, 0.0, 0, 0, 0, 0, "")


class _Trials:
    """Compiles texts with relief and says what they come to."""

    def __init__(
        self, request: TranslateRequest, launches: list[Compared], texts: list[str], pool: "WorkerPool", folder: str
    ):
        self.request, self.launches, self.texts, self.pool, self.folder = request, launches, texts, pool, folder
        self.number = 0
        self.known = {Relief(): self._measured(Relief(), [x.gluon for x in launches])}

    def figures(self, reliefs: Iterable[Relief]) -> list[_Figures]:
        asked = list(dict.fromkeys(reliefs))
        pending = {r: self._submit(r) for r in asked if r not in self.known}
        for relief, futures in pending.items():
            self.known[relief] = self._result(relief, futures)
        return [self.known[r] for r in asked]

    def _submit(self, relief: Relief) -> list:
        out = []
        for x, text in zip(self.launches, self.texts):
            changed = _with_relief(text, relief)
            if changed == text:
                return []
            self.number += 1
            path = os.path.join(self.folder, f"{x.spec.kernel.rpartition('.')[2]}_{self.number}.py")
            with open(path, "w", encoding="utf-8") as file:
                file.write(changed)
            what = f"{x.spec.kernel} on {self.request.target} ({relief.words()})"
            arguments = (path, x.spec, self.request.target, self.request.search_path, self.request.import_hosts)
            out.append(self.pool.submit(LOWER, *arguments, what=what))
        return out

    def _result(self, relief: Relief, futures: list) -> _Figures:
        if not futures:
            return _WORST
        what = f"{self.launches[0].spec.kernel} on {self.request.target} with relief {relief.words()}"
        try:
            measured = [future.result().metrics for future in futures]
        except (TranslationError, InternalError) as error:
            log.info("%s: %s", what, str(error).strip().splitlines()[-1])
            return _WORST
        figures = self._measured(relief, measured)
        log.info("%s: %s", what, figures.described())
        return figures if all(map(_affordable, self.launches, measured)) else _WORST

    def _measured(self, relief: Relief, measured: list[KernelMetrics]) -> _Figures:
        parities = [x.parity(m) for x, m in zip(self.launches, measured)]
        others = [line for p in parities for kind, lines in p.worse().items() if kind != "spills" for line in lines]
        pairs = list(zip(self.launches, measured))
        return _Figures(
            len(others),
            round(sum(max(0.0, _longer(p) - MAX_INSTRUCTIONS) for p in parities), 3),
            sum(max(0, m.spill - x.triton.spill) for x, m in pairs),
            sum(max(0, m.sgpr_spill - x.triton.sgpr_spill) for x, m in pairs),
            len(relief.barriers),
            sum((m.loop or m.mix).insns for m in measured),
            relief.words(),
        )


def _affordable(x: Compared, metrics: KernelMetrics) -> bool:
    """Whether a kernel costs no more elsewhere than relief is worth."""
    limit = max(x.gluon.spill, x.triton.spill) if "instructions" in x.parity().worse() else x.gluon.spill
    if metrics.spill > limit or (metrics.occupancy or 0) < (x.gluon.occupancy or 0):
        return False
    if metrics.mix.insns > LONGER * x.gluon.mix.insns:
        return False
    ours, before = metrics.loop, x.gluon.loop
    return ours is None or before is None or ours.insns <= LONGER_LOOP * before.insns


def _longer(parity: Parity) -> float:
    ratios = parity.loop_ratios() or parity.ratios()
    return ratios["insns"] or 0.0


def _with_relief(text: str, relief: Relief) -> str:
    """The file `text` with the kernel relieved; the same text where it has another use for the name `hint`."""
    if relief.barriers and IMPORT not in text:
        if re.search(r"\bhint\b", text):
            return text
        text = re.sub(r"^(from triton\.experimental)", rf"{IMPORT}\n\1", text, count=1, flags=re.MULTILINE)
    first, last = _span(text)
    lines = text.splitlines(keepends=True)
    return "".join([*lines[:first], _kernel(text, relief), *lines[last:]])
