"""Parity: what the translation costs against what Triton's own compiler makes of the source, for the same launch."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass

from translator.lowering.metrics import InstructionMix, KernelMetrics

MIX_ROWS = (
    *("insns", "mma", "valu", "salu", "ds_read", "ds_write", "ds_other", "lds_dma", "tdm"),
    *("load", "store", "atomic", "barrier", "wait", "branch", "scratch"),
)
WIDTH_ROWS = ("load", "store", "ds")
KERNEL_ROWS = ("vgpr", "agpr", "sgpr", "spill", "sgpr_spill", "scratch_bytes", "lds_bytes", "occupancy")

# Above these the translation counts as slower than Triton's compile. Scheduling noise moves instruction counts by a few
# percent, LDS padding moves bytes by up to a sixteenth; anything else has to be no worse.
MAX_INSTRUCTIONS = 1.10
MAX_LDS = 1.07
# Spilling a register or two at the edge of the budget is not a difference anyone can measure.
SPILL_SLACK = 2


@dataclass(frozen=True)
class Parity:
    """Metrics of the translation beside those of Triton's own compile; ratios are translation / Triton.

    kernel: what tables call it, with the launch where a kernel has several.
    """

    kernel: str
    target: str
    translated: KernelMetrics
    triton: KernelMetrics

    def ratios(self) -> dict[str, float | None]:
        """Per metric of the whole kernel; None where Triton has none of something that the translation has."""
        return {name: ratio(ours, theirs) for name, ours, theirs in self.rows()}

    def loop_ratios(self) -> dict[str, float | None] | None:
        """The same for the hottest loops, per tile; None unless both have one."""
        if self.translated.loop is None or self.triton.loop is None:
            return None
        mine, other = self.unrolled()
        return {name: ratio(ours * other, theirs * mine) for name, ours, theirs in self.loop_rows()}

    def unrolled(self) -> tuple[int, int]:
        """How many tiles one pass of the hottest loop does, (translation, Triton), relative to the shorter one.

        LLVM unrolls small loops, and not always both: a body that has n times the matrix instructions does n tiles.
        """
        ours, theirs = (side.loop.mma if side.loop else 0 for side in (self.translated, self.triton))
        if ours and theirs and not ours % theirs:
            return ours // theirs, 1
        if ours and theirs and not theirs % ours:
            return 1, theirs // ours
        return 1, 1

    def rows(self) -> list[tuple[str, int, int]]:
        """(metric, translation, Triton) of the whole kernel."""
        found = [(n, getattr(self.translated.mix, n), getattr(self.triton.mix, n)) for n in MIX_ROWS]
        own = [(n, getattr(self.translated, n) or 0, getattr(self.triton, n) or 0) for n in KERNEL_ROWS]
        return found + own

    def loop_rows(self) -> list[tuple[str, int, int]]:
        """(metric, translation, Triton) of the hottest loop; zeros for a side without a loop."""
        ours, theirs = self.translated.loop or InstructionMix(), self.triton.loop or InstructionMix()
        return [(n, getattr(ours, n), getattr(theirs, n)) for n in MIX_ROWS]

    def widths(self, kind: str) -> tuple[float, float]:
        """Average bits per lane of the accesses of `kind`, like with like. Loads are to registers or straight to LDS.

        Where the translation has, at every width, at most as many accesses of that width or less as Triton has, none has
        become narrower: some are gone, to the tensor data mover (whose copies have no width per lane) or with iterations
        that Triton peels. Then as many bits are compared, in Triton's narrowest accesses.
        """
        mine, other = (accesses(side.mix, kind) for side in (self.translated, self.triton))
        if none_narrower(mine, other):
            other = _narrowest(other, sum(bits * n for bits, n in mine.items()))
        return _mean(mine), _mean(other)

    def regressions(self) -> tuple[str, ...]:
        """One line per figure in which the translation is worse than Triton beyond the limits above."""
        found = []
        whole = ratio(self.translated.mix.insns, self.triton.mix.insns)
        loop = (self.loop_ratios() or {}).get("insns")
        if loop is not None and loop > MAX_INSTRUCTIONS:
            found.append(f"hottest loop has {loop:.2f}x the instructions")
        # With a loop on both sides its length is what counts; outside it a longer prologue is often the price.
        if loop is None and whole is not None and whole > MAX_INSTRUCTIONS:
            found.append(f"kernel has {whole:.2f}x the instructions")
        if self.translated.spill > self.triton.spill + SPILL_SLACK:
            found.append(f"spills {self.translated.spill} VGPRs, Triton {self.triton.spill}")
        if (used := ratio(self.translated.lds_bytes, self.triton.lds_bytes)) is None or used > MAX_LDS:
            found.append(f"uses {self.translated.lds_bytes} bytes of LDS, Triton {self.triton.lds_bytes}")
        for kind in ("load", "store"):
            ours, theirs = self.widths(kind)
            if ours and theirs and ours < 0.9 * theirs:
                found.append(f"{kind}s are {ours:.0f} bits wide on average, Triton's {theirs:.0f}")
        return tuple(found)

    def as_json(self) -> dict:
        """{"ratios", "loop" (or None), "unrolled", "widths": {"load": [ours, Triton's], ...}, "regressions"}."""
        widths = {kind: self.widths(kind) for kind in WIDTH_ROWS}
        return {
            "ratios": _rounded(self.ratios()),
            "loop": _rounded(self.loop_ratios()),
            "unrolled": list(self.unrolled()),
            "widths": {k: [round(x, 1) for x in v] for k, v in widths.items()},
            "regressions": list(self.regressions()),
        }


def ratio(ours: float, theirs: float) -> float | None:
    """ours / theirs; 1 when both are zero, None when only `theirs` is."""
    if theirs == 0:
        return 1.0 if ours == 0 else None
    return ours / theirs


def none_narrower(mine: dict[int, float], other: dict[int, float]) -> bool:
    """Whether there are, at every width, at most as many accesses of that width or less in `mine` as in `other`."""
    return all(
        sum(n for b, n in mine.items() if b <= bits) <= sum(n for b, n in other.items() if b <= bits)
        for bits in {*mine, *other}
    )


def accesses(mix: InstructionMix, kind: str) -> dict[int, float]:
    """{bits per lane: accesses} of those whose width is known; loads are to registers or straight to LDS, TDM excepted."""
    found: Counter[int] = Counter()
    for name in ("load", "lds_dma") if kind == "load" else (kind,):
        found.update({int(bits): n for bits, n in mix.widths.get(name, {}).items() if int(bits)})
    return dict(found)


def _mean(accesses: dict[int, float]) -> float:
    return sum(bits * n for bits, n in accesses.items()) / sum(accesses.values()) if accesses else 0.0


def _narrowest(accesses: dict[int, float], total: int) -> dict[int, float]:
    """As many of `accesses`, narrowest first and the last in part, as have `total` bits."""
    found: dict[int, float] = {}
    for bits, n in sorted(accesses.items()):
        if total > 0:
            found[bits] = min(n, total / bits)
            total -= bits * n
    return found


def _rounded(ratios: dict[str, float | None] | None) -> dict[str, float | None] | None:
    return ratios and {name: value if value is None else round(value, 4) for name, value in ratios.items()}
