"""How fast each architecture issues, computes and moves data: the constants of the cycle model (`translator/judge/cycles`).

Times are in clocks of the shader ("clk"). Cycles of matrix instructions are in `rules/targets.py`. Every field of a row has an entry in
its `basis`: where the number is from, as one word and the source.

* `documented`: instruction set manuals, LLVM, AMD's matrix instruction calculator and guides;
* `measured`: by the ROCm Gluon tutorials ("tutorials") or AMD's kernel optimization guide ("guide"), on MI300X and MI355X;
* `llvm`: LLVM's schedule model, which knows latencies without load;
* `fitted`: the one number fitted to published efficiencies, on the pairs that `bench/cycles.py` calls fitted;
* `guess`: taken from the nearest architecture that has the number.
"""

from __future__ import annotations

from dataclasses import dataclass, fields, replace

_WIDTHS = (4, 8, 16)


@dataclass(frozen=True)
class Timing:
    """The constants of one architecture.

    issue: clk from one instruction of a wave to its next. valu, transcendental: clk that a vector instruction holds its SIMD's
    vector port. valu_latency, transcendental_latency: until a dependent instruction can issue; 0 where the issue rate covers it.
    shadow, scaled_shadow: clk after a matrix instruction in which no other vector instruction of its SIMD issues, all but the last
    of a shorter one; memory_shadow: nor a memory instruction. packed_waits: packed fp32 and dot instructions wait for the matrix pipe.

    lds_bytes: per clk of the unit that shares LDS. lds_latency: from the end of the service to the result. lds_queue: requests that
    two SIMDs hold. write_issue: clk per 4 bytes and lane that a write to LDS
    keeps its wave issuing. read_phases, write_phases: bytes per lane -> the lanes that LDS serves together.

    memory_clk: clk of the vector memory unit per instruction by bytes per lane (64 lanes). memory_queue: instructions waiting for
    it. in_flight: KiB of loads between it and their return. memory_latency: from processing to return, under load. scalar_latency: of
    scalar loads. barrier: clk from the last arrival to going on.

    stores_apart, scalars_apart: stores have a counter of their own; scalar loads have one apart from LDS.
    port_bytes: per clk that a compute unit takes out of L2; tile_bytes: that copies of the tensor data mover take of these, 0 without one;
    l2_bytes: that L2 gives each of them while all of them ask; fetch_bytes: that the L2 cache of one XCD takes out of what is behind
    it, 0 where that is not known. units: compute units, each with workgroups of its own, that are assumed where the target's row has no
    number of them.
    memory_tbs: bandwidth of device memory in TB/s, 0 where it is not published. error, whole_error: what is known of the error of loops
    and of whole launches, for people.
    """

    issue: int
    valu: int
    transcendental: int
    valu_latency: int
    transcendental_latency: int
    shadow: int
    scaled_shadow: int
    memory_shadow: bool
    packed_waits: bool
    lds_bytes: int
    lds_latency: int
    lds_queue: int
    write_issue: int
    read_phases: dict[int, tuple[tuple[int, ...], ...]]
    write_phases: dict[int, tuple[tuple[int, ...], ...]]
    memory_clk: dict[int, int]
    memory_queue: int
    in_flight: int
    memory_latency: int
    scalar_latency: int
    barrier: int
    stores_apart: bool
    scalars_apart: bool
    port_bytes: int
    tile_bytes: int
    l2_bytes: int
    fetch_bytes: int
    units: int
    memory_tbs: float
    error: str
    whole_error: str
    basis: dict[str, str]

    def __post_init__(self):
        named = {f.name for f in fields(self)} - {"basis", "error", "whole_error"}
        missing, unknown = named - self.basis.keys(), self.basis.keys() - named
        assert (
            not missing and not unknown
        ), f"timing without basis: {sorted(missing)}; basis of nothing: {sorted(unknown)}"
        kinds = ("documented", "measured", "llvm", "fitted", "guess")
        assert all(b.startswith(kinds) for b in self.basis.values()), self.basis
        for phases in (self.read_phases, self.write_phases):
            assert tuple(sorted(phases)) == _WIDTHS, f"phases of {sorted(phases)} bytes"
            lanes = {width: sorted(n for group in groups for n in group) for width, groups in phases.items()}
            assert all(
                x == list(range(len(x))) and len(x) in (32, 64) for x in lanes.values()
            ), "a lane twice, or never"
            assert len({len(x) for x in lanes.values()}) == 1, "widths with different lanes"


def _consecutive(lanes: int, group: int) -> tuple[tuple[int, ...], ...]:
    return tuple(tuple(range(n, n + group)) for n in range(0, lanes, group))


def _ranges(*groups: tuple[tuple[int, int], ...]) -> tuple[tuple[int, ...], ...]:
    """Groups of lanes given as first and last of runs."""
    return tuple(tuple(n for first, last in runs for n in range(first, last + 1)) for runs in groups)


def _doubled(groups: tuple[tuple[int, ...], ...]) -> tuple[tuple[int, ...], ...]:
    """The groups of lanes 0 to 31, each followed by the same of lanes 32 to 63."""
    return tuple(tuple(n + half for n in group) for group in groups for half in (0, 32))


_CDNA3_B128 = _doubled(
    _ranges(((0, 3), (20, 23)), ((4, 7), (16, 19)), ((8, 11), (28, 31)), ((12, 15), (24, 27)))
)  # fmt: skip
_CDNA4_B128 = _doubled(_ranges(((0, 3), (12, 15), (20, 27)), ((4, 11), (16, 19), (28, 31))))
_RDNA3_B128 = _ranges(((0, 3), (20, 23)), ((4, 7), (16, 19)), ((8, 11), (28, 31)), ((12, 15), (24, 27)))

_CDNA = dict(
    issue=4,
    valu=4,
    transcendental=8,
    valu_latency=0,
    transcendental_latency=0,
    shadow=8,
    scaled_shadow=12,
    memory_shadow=True,
    packed_waits=True,
    lds_latency=60,
    lds_queue=8,
    write_issue=4,
    memory_clk={4: 4, 8: 16, 16: 16},
    memory_queue=12,
    in_flight=32,
    memory_latency=800,
    scalar_latency=200,
    barrier=8,
    stores_apart=False,
    scalars_apart=False,
    port_bytes=64,
    tile_bytes=0,
    units=0,
)
_CDNA_BASIS = {
    "issue": "documented: a wave of 64 takes 4 clk on 16 lanes; tutorials (attention notes)",
    "valu": "documented: as issue",
    "transcendental": "measured: tutorials (attention notes), 3 in the 24 clk beside a 32-clk MFMA",
    "valu_latency": "documented: results are there at the next issue",
    "transcendental_latency": "documented: the compiler puts s_nop where one is needed",
    "shadow": "measured: tutorials (attention notes), vector instructions from clk 8 of an MFMA",
    "scaled_shadow": "measured: tutorials (a4w4 notes), memory instructions of another wave from clk 12",
    "memory_shadow": "measured: tutorials (a4w4 notes), which count reads of LDS beside an MFMA",
    "packed_waits": "measured: tutorials (attention notes); documented: LLVM isNeverCoissue",
    "lds_latency": "measured: tutorials (lds_throughput.md), first result after 50 to 70 clk: the middle",
    "lds_queue": "measured: tutorials (lds_throughput.md), 8 entries per SIMD pair",
    "write_issue": "measured: tutorials (gfx942 notes), ds_write_b128 issues in 4 + 16 clk",
    "memory_clk": "measured: tutorials (v8 notes), 16 clk per dwordx4 or dwordx2, 4 per dword",
    "memory_queue": "measured: tutorials (v8 notes), about 12",
    "in_flight": "measured: tutorials (v8 notes), 32 KiB of the vector L1",
    "memory_latency": "fitted: between 700 and 900 the error is the same within a fifth of a point; tutorials: about 1000 in one GEMM",
    "scalar_latency": "guess",
    "barrier": "guess: between 4 and 16",
    "memory_tbs": "documented: data sheet",
    "port_bytes": "measured: tutorials (v8 notes), as memory_clk",
    "tile_bytes": "documented: no tensor data mover",
    "l2_bytes": "documented: CDNA 3 white paper, 2 KiB per clk for the compute units of a die",
    "units": "documented: in rules/targets.py",
    "stores_apart": "documented: vmcnt counts loads and stores",
    "scalars_apart": "documented: lgkmcnt counts both",
}

_WAVE32 = dict(
    issue=1,
    valu=1,
    transcendental=4,
    valu_latency=5,
    transcendental_latency=8,
    shadow=0,
    scaled_shadow=0,
    memory_shadow=False,
    packed_waits=False,
    lds_latency=60,
    lds_queue=8,
    write_issue=1,
    memory_clk={4: 4, 8: 8, 16: 16},
    memory_queue=12,
    in_flight=32,
    memory_latency=800,
    scalar_latency=200,
    barrier=8,
    stores_apart=True,
    port_bytes=64,
    tile_bytes=0,
    l2_bytes=64,
    fetch_bytes=0,
    units=0,
)
_WAVE32_BASIS = {
    "issue": "documented: a wave of 32 takes one clk on 32 lanes",
    "valu": "documented: as issue",
    "transcendental": "documented: a quarter of the rate",
    "valu_latency": "llvm",
    "transcendental_latency": "llvm: 7 to 10",
    "shadow": "guess",
    "scaled_shadow": "guess",
    "memory_shadow": "guess",
    "packed_waits": "guess",
    "lds_bytes": "guess: 4 bytes per bank",
    "lds_latency": "guess: as CDNA; llvm says 20 without load",
    "lds_queue": "guess: as CDNA",
    "write_issue": "guess",
    "read_phases": "measured: guide, 4 phases of 8 lanes for 16 bytes; narrower ones: guess",
    "write_phases": "guess: consecutive lanes",
    "memory_clk": "guess: 64 bytes per clk, as CDNA",
    "memory_queue": "guess: as CDNA",
    "in_flight": "guess: as CDNA",
    "memory_latency": "guess: as CDNA; llvm says 320 without load",
    "scalar_latency": "guess",
    "barrier": "guess",
    "port_bytes": "guess: as CDNA",
    "tile_bytes": "documented: no tensor data mover",
    "l2_bytes": "guess: as gfx950",
    "fetch_bytes": "guess: nothing is published, so what L2 fetches is left out",
    "units": "documented: in rules/targets.py",
    "memory_tbs": "documented: data sheet; not published for gfx1250 and gfx1200",
    "stores_apart": "documented: vscnt, storecnt",
    "scalars_apart": "documented",
}
_UNCALIBRATED = "no published measurement to compare with: latencies are guesses, use it to compare, not as time"

_AT_FULL_CLOCK = (
    "at the data sheet's clock, which load lowers (seven published GEMMs on MI355X took 1.1 to 1.4 times as long)"
)
_ORDER_OF_MAGNITUDE = "an order of magnitude: " + _UNCALIBRATED

TIMINGS: dict[str, Timing] = {
    "gfx942": Timing(
        **_CDNA,
        memory_tbs=5.3,
        l2_bytes=53,
        fetch_bytes=1024,
        whole_error=_AT_FULL_CLOCK,
        lds_bytes=128,
        read_phases={4: _consecutive(64, 32), 8: _consecutive(64, 16), 16: _CDNA3_B128},
        write_phases={4: _consecutive(64, 32), 8: _consecutive(64, 16), 16: _consecutive(64, 8)},
        error="compared with four published efficiencies of GEMM loops, see bench/results/cycles.md",
        basis=_CDNA_BASIS
        | {
            "lds_bytes": "measured: tutorials, 8 clk per wave and ds_read_b128; documented: 32 banks",
            "fetch_bytes": "documented: CDNA 3 white paper, 17.2 TB/s of Infinity Cache at 2.1 GHz, an eighth for each XCD",
            "read_phases": "measured: guide (empirical-lds)",
            "write_phases": "measured: guide (empirical-lds) for 16 bytes",
        },
    ),
    "gfx950": Timing(
        **_CDNA,
        memory_tbs=8.0,
        l2_bytes=64,
        fetch_bytes=896,
        whole_error=_AT_FULL_CLOCK,
        lds_bytes=256,
        read_phases={4: _consecutive(64, 64), 8: _consecutive(64, 32), 16: _CDNA4_B128},
        write_phases={4: _consecutive(64, 64), 8: _consecutive(64, 32), 16: _consecutive(64, 16)},
        error="compared with nine published efficiencies of GEMM loops, see bench/results/cycles.md",
        basis=_CDNA_BASIS
        | {
            "lds_bytes": "measured: tutorials (lds_throughput.md), 16 clk per SIMD and ds_read_b128; documented: 64 banks",
            "fetch_bytes": "guess: as many bytes in a second as gfx942, at 2.4 GHz",
            "read_phases": "measured: guide (empirical-lds)",
            "write_phases": "guess: consecutive lanes, as gfx942",
        },
    ),
    "gfx1250": Timing(
        **(_WAVE32 | {"units": 256, "tile_bytes": 64, "shadow": 4, "scaled_shadow": 4}),
        memory_tbs=0.0,
        whole_error=_ORDER_OF_MAGNITUDE,
        lds_bytes=256,
        scalars_apart=True,
        read_phases={4: _consecutive(32, 32), 8: _consecutive(32, 32), 16: _consecutive(32, 16)},
        write_phases={4: _consecutive(32, 32), 8: _consecutive(32, 32), 16: _consecutive(32, 16)},
        error=_UNCALIBRATED
        + "; tiles that the tensor data mover copies are taken to arrive as what vector instructions load",
        basis=_WAVE32_BASIS
        | {
            "shadow": "documented: LLVM's hazards have 4 vector instructions beside the 8 clk of a WMMA, one beside 4 clk (GCNHazardRecognizer)",
            "scaled_shadow": "guess: as shadow",
            "memory_shadow": "documented: hipBLASLt's scheduler for gfx1250, only vector instructions are bound to slots of a WMMA",
            "units": "guess: as gfx950",
            "tile_bytes": "guess: as port_bytes, since tiles come out of L2 as well; requests, latency and bytes in flight as of vector loads",
            "lds_bytes": "guess: 4 bytes for each of 64 banks",
            "read_phases": "guess: as many consecutive lanes as fill 64 banks",
        },
    ),
    "gfx1100": Timing(
        **_WAVE32,
        memory_tbs=0.96,
        whole_error=_ORDER_OF_MAGNITUDE,
        lds_bytes=128,
        scalars_apart=False,
        read_phases={4: _consecutive(32, 32), 8: _consecutive(32, 16), 16: _RDNA3_B128},
        write_phases={4: _consecutive(32, 32), 8: _consecutive(32, 16), 16: _consecutive(32, 8)},
        error=_UNCALIBRATED,
        basis=_WAVE32_BASIS,
    ),
    "gfx1201": Timing(
        **_WAVE32,
        memory_tbs=0.64,
        whole_error=_ORDER_OF_MAGNITUDE,
        lds_bytes=128,
        scalars_apart=True,
        read_phases={4: _consecutive(32, 32), 8: _consecutive(32, 16), 16: _consecutive(32, 8)},
        write_phases={4: _consecutive(32, 32), 8: _consecutive(32, 16), 16: _consecutive(32, 8)},
        error=_UNCALIBRATED,
        basis=_WAVE32_BASIS,
    ),
}
TIMINGS["gfx1200"] = replace(TIMINGS["gfx1201"], memory_tbs=0.0)
