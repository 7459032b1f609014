"""Parity: what the translation costs against what Triton's own compiler makes of the source, for the same launch."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass

from gluonize.judge.lower.metrics import InstructionMix, KernelMetrics
from gluonize.rules.targets import target

MIX_ROWS = (
    *("insns", "mma", "valu", "salu", "ds_read", "ds_write", "ds_other", "lds_dma", "tdm"),
    *("load", "store", "atomic", "barrier", "wait", "branch", "scratch"),
)
WIDTH_ROWS = ("load", "store", "ds")
# What a loop, or a kernel without one, may have no more of.
COUNTED = (("mma", "mma", "matrix instructions"), ("barrier", "barriers", "barriers"))
KERNEL_ROWS = ("vgpr", "agpr", "sgpr", "spill", "sgpr_spill", "scratch_bytes", "lds_bytes", "occupancy")

# Above these the translation counts as worse than Triton's compile. Scheduling moves instruction counts by a few percent;
# widths are averages, which a narrow access more moves. Anything else has to be no worse at all.
MAX_INSTRUCTIONS = 1.10
MIN_WIDTH = 0.9


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
        """The same for the hottest loops, per tile; None unless both have the same one."""
        if not self.same_loop():
            return None
        mine, other = self.unrolled()
        return {name: ratio(ours * other, theirs * mine) for name, ours, theirs in self.loop_rows()}

    def same_loop(self) -> bool:
        """Whether both hottest loops are of the same work: both have matrix instructions, or neither has.

        Where one side has its products outside of loops, what is left to compare is the whole kernels.
        """
        ours, theirs = self.translated.loop, self.triton.loop
        return ours is not None and theirs is not None and bool(ours.mma) == bool(theirs.mma)

    def unrolled(self) -> tuple[int, int]:
        """How many tiles one pass of the hottest loop does, (translation, Triton), relative to the shorter one.

        LLVM unrolls small loops, and not always both: a body that has n times the matrix instructions does n tiles. Ours
        has to fetch or synchronize n times as well: products that are made twice are no second tile.
        """
        ours, theirs = (side.loop or InstructionMix() for side in (self.translated, self.triton))
        if not ours.mma or not theirs.mma:
            return 1, 1
        if not theirs.mma % ours.mma:
            return 1, theirs.mma // ours.mma
        n, rest = divmod(ours.mma, theirs.mma)
        return (n, 1) if not rest and _repeated(ours, theirs, n) else (1, 1)

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

        See `mean_widths`.
        """
        return mean_widths(accesses(self.translated.mix, kind), accesses(self.triton.mix, kind))

    @property
    def note(self) -> str:
        """Why the figures are not of the same work, and nothing of one is worse; "" where they are."""
        return "not comparable: Triton drops the source's PTX" if self.triton.incomplete else ""

    def regressions(self) -> tuple[str, ...]:
        """One line per figure in which the translation is worse than Triton beyond the limits above."""
        return tuple(line for lines in self.worse().values() for line in lines)

    def worse(self) -> dict[str, list[str]]:
        """The lines of `regressions` by kind: "instructions", "mma", "barriers", "spills", "lds", "widths".

        Instructions, matrix instructions and barriers are those of the hottest loops, per tile: a longer prologue is often
        the price of a shorter loop. Kernels that have not the same loop are compared as a whole.
        """
        if self.note:
            return {}
        same = self.same_loop()
        what, per = ("hottest loop", " per tile") if same else ("kernel", "")
        ours, theirs = (side.loop if same else side.mix for side in (self.translated, self.triton))
        mine, other = self.unrolled() if same else (1, 1)
        found: dict[str, list[str]] = {}
        longer = ratio(ours.insns * other, theirs.insns * mine)
        if longer is not None and longer > MAX_INSTRUCTIONS:
            found["instructions"] = [f"{what} has {longer:.2f}x the instructions"]
        for name, kind, words in COUNTED:
            n, limit = getattr(ours, name), getattr(theirs, name)
            if n * other > limit * mine:
                found[kind] = [f"{what} has {n / mine:g} {words}{per}, Triton's {limit / other:g}"]
        for registers, name in (("VGPRs", "spill"), ("SGPRs", "sgpr_spill")):
            n, limit = getattr(self.translated, name), getattr(self.triton, name)
            if n > limit:
                found.setdefault("spills", []).append(f"spills {n} {registers}, Triton {limit}")
        ours_fit, theirs_fit = (self._fit(side.lds_bytes) for side in (self.translated, self.triton))
        if ours_fit < theirs_fit:
            size, other = self.translated.lds_bytes, self.triton.lds_bytes
            found["lds"] = [
                f"{size} bytes of LDS leave room for {ours_fit} workgroups, Triton's {other} for {theirs_fit}"
            ]
        for kind in ("load", "store"):
            if narrow := narrower(*(accesses(side.mix, kind) for side in (self.translated, self.triton))):
                found.setdefault("widths", []).append(f"{kind}s are {narrow}")
        return found

    def _fit(self, lds_bytes: int) -> int:
        """Workgroups that a compute unit would hold of Triton's kernel if each had so much LDS: bytes that leave room for as many as
        registers do are free.
        """
        return target(self.target).workgroups(self.triton.vgpr, lds_bytes, self.triton.num_warps)

    def as_json(self) -> dict:
        """{"ratios", "loop" (or None), "unrolled", "widths": {"load": [ours, Triton's], ...}, "regressions"}."""
        widths = {kind: self.widths(kind) for kind in WIDTH_ROWS}
        return {
            "ratios": _rounded(self.ratios()),
            "loop": _rounded(self.loop_ratios()),
            "unrolled": list(self.unrolled()),
            "widths": {k: [round(x, 1) for x in v] for k, v in widths.items()},
            "regressions": list(self.regressions()),
            **({"note": self.note} if self.note else {}),
        }


def ratio(ours: float, theirs: float) -> float | None:
    """ours / theirs; 1 when both are zero, None when only `theirs` is."""
    if theirs == 0:
        return 1.0 if ours == 0 else None
    return ours / theirs


def _repeated(body: InstructionMix, tile: InstructionMix, n: int) -> bool:
    """Whether `body` has the loads or the barriers of n times `tile`; yes where `tile` has neither."""
    pairs = [(body.load + body.lds_dma, tile.load + tile.lds_dma), (body.barrier, tile.barrier)]
    return any(ours >= n * theirs for ours, theirs in pairs if theirs) or not any(theirs for _, theirs in pairs)


def mean_widths(mine: dict[int, float], other: dict[int, float]) -> tuple[float, float]:
    """Mean bits of the accesses `mine` and of those of `other` that correspond to them; both {bits per lane: accesses}.

    Where there are, at every width, at most as many of that width or less in `mine` as in `other`, none has become
    narrower: some are gone, to the tensor data mover (whose copies have no width per lane) or with iterations that
    Triton peels. Then as many bits are compared, in the narrowest accesses of `other`.
    """
    if none_narrower(mine, other):
        other = _narrowest(other, sum(bits * n for bits, n in mine.items()))
    return _mean(mine), _mean(other)


def narrower(mine: dict[int, float], other: dict[int, float]) -> str:
    """In words, how `mine` are narrower than `other`: on average by more than MIN_WIDTH allows, or the widest. "" if not."""
    ours, theirs = mean_widths(mine, other)
    if ours and theirs and ours < MIN_WIDTH * theirs:
        return f"{ours:.0f} bits wide on average, Triton's {theirs:.0f}"
    ours, theirs = max(mine, default=0), max(other, default=0)
    return f"{ours} bits wide at most, Triton's {theirs}" if ours < theirs and not none_narrower(mine, other) else ""


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
