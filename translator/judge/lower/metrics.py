"""Static metrics of a compiled kernel: instruction counts by class, widths, registers, LDS, the hottest loop.

Counts are of instructions as written, not of cycles or of executions; a wave executes each once per pass.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable
from dataclasses import asdict, dataclass, field

from gluonize.judge.lower.amdgcn import Instruction, comment_number, metadata_number, parse_instructions
from gluonize.judge.lower.loops import find_loops
from gluonize.rules.targets import Target

_MATRIX = ("v_mfma", "v_smfmac", "v_wmma", "v_swmmac")
_MATRIX_SHAPE = re.compile(r"_(\d+x\d+x\d+)(?=_|$|[a-z])")
_DIRECT_TO_LDS = (
    "global_load_lds",
    "buffer_load_lds",
    "global_load_async_to_lds",
    "tensor_load_to_lds",
    "cluster_load",
)
_TDM = ("tensor_load_to_lds", "tensor_store_from_lds")
_MEMORY = re.compile(r"(?:global|buffer|flat)_(load|store)_(\w+)")
_LDS_WIDTH = re.compile(r"_[bui](8|16|32|64|96|128)(?:_|$)")
# Sizes of global and buffer accesses: `dwordx4` (CDNA, GFX9) and `b128` (GFX11 and later) spellings, in bits.
_WORD_BITS = {"byte": 8, "short": 16, "dword": 32, "dwordx2": 64, "dwordx3": 96, "dwordx4": 128}
_NOT_COUNTED = ("mix", "loop", "incomplete", "num_warps")
_DPP = re.compile(r"dpp|row_sh|row_ror|row_bcast|row_xmask|quad_perm")


@dataclass(frozen=True)
class InstructionMix:
    """How many instructions of each class; the classes that overlap another one say so.

    insns: all. valu: vector ALU without matrix instructions, of which dpp move data between lanes. salu: scalar ALU
    and scalar memory, branches and barrier waits included. mma: MFMA or WMMA. ds: LDS instructions = ds_read +
    ds_write + ds_other. lds_dma: copies from global memory straight to LDS, TDM loads included. tdm: tensor data
    mover loads and stores. load, store, atomic: global and buffer memory. barrier: arrivals. wait: counters.
    branch: conditional and unconditional, also in salu. scratch: accesses of spilled or indexed private memory.
    widths: {"load" | "store" | "lds_dma" | "ds": {bits per lane: count}}; TDM copies have none. matrix: {"32x32x16":
    count}, K of wave-wide operands.
    """

    insns: int = 0
    valu: int = 0
    salu: int = 0
    mma: int = 0
    ds: int = 0
    ds_read: int = 0
    ds_write: int = 0
    ds_other: int = 0
    load: int = 0
    store: int = 0
    atomic: int = 0
    lds_dma: int = 0
    tdm: int = 0
    barrier: int = 0
    wait: int = 0
    branch: int = 0
    scratch: int = 0
    dpp: int = 0
    widths: dict[str, dict[str, int]] = field(default_factory=dict, hash=False)
    matrix: dict[str, int] = field(default_factory=dict, hash=False)

    @property
    def density(self) -> float:
        """Matrix instructions per instruction, 0 to 1."""
        return self.mma / self.insns if self.insns else 0.0


@dataclass(frozen=True)
class KernelMetrics:
    """What one compiled kernel costs. vgpr counts AGPRs too where they share a file; LDS and scratch in bytes;
    occupancy in waves per SIMD (0 when one workgroup does not fit the target). incomplete: PTX of the source was dropped;
    num_warps: of a workgroup.
    """

    mix: InstructionMix
    vgpr: int
    agpr: int
    sgpr: int
    spill: int
    sgpr_spill: int
    scratch_bytes: int
    lds_bytes: int
    loops: int
    loop: InstructionMix | None
    occupancy: int | None = None
    incomplete: bool = False
    num_warps: int = 4

    def as_json(self) -> dict:
        """One flat object; the hottest loop's counts under `loop` (None without loops)."""
        own = {name: value for name, value in asdict(self).items() if name not in _NOT_COUNTED}
        return {**asdict(self.mix), **own, "loop": asdict(self.loop) if self.loop else None}


def measure(text: str, *, shared: int = 0, target: Target | None = None, num_warps: int = 4) -> KernelMetrics:
    """Metrics of an assembly text; `shared` is the LDS of one workgroup in bytes, from the compiler's metadata.

    With a `target`, occupancy follows from registers, LDS and `num_warps`.
    """
    code = parse_instructions(text)
    hottest = _hottest_loop(code)
    vgpr = max(metadata_number(text, "vgpr_count"), comment_number(text, "TotalNumVgprs"))
    return KernelMetrics(
        mix=count(code),
        vgpr=vgpr,
        agpr=metadata_number(text, "agpr_count"),
        sgpr=metadata_number(text, "sgpr_count"),
        spill=metadata_number(text, "vgpr_spill_count"),
        sgpr_spill=metadata_number(text, "sgpr_spill_count"),
        scratch_bytes=metadata_number(text, "private_segment_fixed_size"),
        lds_bytes=int(shared),
        loops=len(find_loops(code)),
        loop=count(hottest) if hottest else None,
        occupancy=target.occupancy(vgpr, int(shared), num_warps) if target else None,
        num_warps=num_warps,
    )


def count(code: Iterable[Instruction]) -> InstructionMix:
    """Counts of a stretch of code by class."""
    counts: Counter[str] = Counter()
    widths: dict[str, Counter[int]] = {"load": Counter(), "store": Counter(), "lds_dma": Counter(), "ds": Counter()}
    matrix: Counter[str] = Counter()
    for line in code:
        if line.label:
            continue
        counts["insns"] += 1
        if line.op.startswith(_MATRIX) and (shape := _MATRIX_SHAPE.search(line.op)):
            matrix[shape.group(1)] += 1
        for name in classes(line):
            counts[name] += 1
        if access := _access_width(line):
            widths[access[0]][access[1]] += 1
    spelled = {kind: {str(bits): n for bits, n in sorted(found.items())} for kind, found in widths.items() if found}
    return InstructionMix(**counts, widths=spelled, matrix=dict(sorted(matrix.items())))


def classes(line: Instruction) -> tuple[str, ...]:
    """The classes one instruction counts in; empty for what belongs to none (cache control, for example)."""
    op = line.op
    if op.startswith(_MATRIX):
        return ("mma",)
    if op.startswith("v_"):
        return ("valu", "dpp") if "permlane" in op or _DPP.search(op + " " + line.operands) else ("valu",)
    if op.startswith("ds_"):
        return ("ds", _lds_direction(op))
    if op.startswith(_TDM):
        return ("lds_dma", "tdm") if op.startswith("tensor_load") else ("tdm",)
    if op.startswith(_DIRECT_TO_LDS) or (op.startswith("buffer_load") and re.search(r"\blds\b", line.operands)):
        return ("lds_dma",)
    if "atomic" in op:
        return ("atomic",)
    if op.startswith("scratch_"):
        return ("scratch",)
    if found := _MEMORY.fullmatch(op):
        return (found.group(1),)
    if op in ("s_barrier", "s_barrier_signal"):
        return ("barrier",)
    if op.startswith("s_waitcnt") or (op.startswith("s_wait_") and op != "s_wait_alu"):
        return ("wait",)
    if op.startswith(("s_branch", "s_cbranch")):
        return ("salu", "branch")
    return ("salu",) if op.startswith("s_") else ()


def _lds_direction(op: str) -> str:
    if op.startswith(("ds_read", "ds_load")):
        return "ds_read"
    return "ds_write" if op.startswith(("ds_write", "ds_store")) else "ds_other"


def _access_width(line: Instruction) -> tuple[str, int] | None:
    """(kind as in `widths`, bits per lane) of a memory access; 0 bits when the mnemonic does not tell."""
    found = classes(line)
    if "ds_read" in found or "ds_write" in found:
        bits = _LDS_WIDTH.search(line.op)
        paired = "2" in line.op.split("_")[1] or "2addr" in line.op
        return ("ds", int(bits.group(1)) * (2 if paired else 1)) if bits else None
    if found in (("load",), ("store",)):
        return found[0], _memory_bits(_MEMORY.fullmatch(line.op).group(2))
    if found == ("lds_dma",):
        return "lds_dma", _memory_bits(line.op.partition("load_")[2])
    return None


def _memory_bits(suffix: str) -> int:
    """Bits per lane of `dwordx4`, `ubyte_d16_hi`, `b64`, `d16_hi_u8`, `tr16_b128`; 0 when unknown."""
    for part in suffix.split("_"):
        if found := re.fullmatch(r"[bui](8|16|32|64|96|128)", part):
            return int(found.group(1))
        if found := re.fullmatch(r"[us]?(byte|short|dword(?:x[234])?)", part):
            return _WORD_BITS[found.group(1)]
    return 0


def _hottest_loop(code: tuple[Instruction, ...]) -> tuple[Instruction, ...] | None:
    """The innermost loop with most matrix instructions; of equals the deepest, then the longest."""
    bodies = [(loop.depth, code[loop.first : loop.last + 1]) for loop in find_loops(code) if loop.innermost]
    if not bodies:
        return None
    return max(bodies, key=lambda x: (sum(line.op.startswith(_MATRIX) for line in x[1]), x[0], len(x[1])))[1]
