"""Matrix density of the hottest loop at the tiles of hand-written Gluon kernels: theirs, Triton's, ours.

    python bench/density.py [--only NAME] [-j 2 | --cluster ADDRESS] [--json bench/results/density.json] [--markdown bench/results/density.md]

Density is matrix instructions over all instructions of the loop: it counts instructions, not cycles. `parity` is what
`gluonize translate` writes, `aggressive` what it writes with `--optimize aggressive`, chosen by predicted cycles.
"""

from __future__ import annotations

import argparse
import json
import sys
from dataclasses import dataclass, replace
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

from gluonize.product.cluster.open_pool import open_pool  # noqa: E402
from gluonize.diagnostics import TranslationError  # noqa: E402
from gluonize.judge.lower.metrics import KernelMetrics  # noqa: E402
from gluonize.search.choose import LOWER, best, figures_of, try_candidates  # noqa: E402
from gluonize.decide.choices.chosen import Choices  # noqa: E402
from gluonize.product.project.cache.kept_jobs import KeptJobs  # noqa: E402
from gluonize.request import TranslateRequest  # noqa: E402
from gluonize.read.spec.launch import LaunchSpec, read_launches  # noqa: E402


@dataclass(frozen=True)
class HandWritten:
    """matrix of `insns` instructions in the hottest loop, VGPR spills. source: where the kernel is."""

    name: str
    matrix: int
    insns: int
    spills: int
    source: str

    @property
    def density(self) -> float:
        return self.matrix / self.insns


# Counted in the assembly that Triton 3.9.0 compiles these kernels to, with no GPU.
TRITON_EXAMPLES = "triton-lang/triton third_party/amd/python/examples/gluon"
AITER = "ROCm/aiter, Gluon kernels"


@dataclass(frozen=True)
class Row:
    """A fixture at one tile, beside hand-written kernels of the same tile."""

    fixture: str
    launch: str
    target: str
    constexprs: dict[str, int]
    num_warps: int
    hand_written: tuple[HandWritten, ...]
    dtype: str = ""  # of the tensors, where it is not the launch's

    @property
    def name(self) -> str:
        sizes = [v for k, v in self.constexprs.items() if k.startswith("BLOCK")]
        head = f" d{self.constexprs['HEAD_DIM']}" if "HEAD_DIM" in self.constexprs else ""
        return f"{self.fixture} {'x'.join(map(str, sizes))}{head} w{self.num_warps}"


def tile(m: int, n: int, k: int) -> dict[str, int]:
    return {"BLOCK_M": m, "BLOCK_N": n, "BLOCK_K": k}


def heads(m: int, n: int, d: int) -> dict[str, int]:
    return {"HEAD_DIM": d, "BLOCK_M": m, "BLOCK_N": n}


ROWS = (
    Row(
        "matmul", "matmul/fp16", "gfx1250", tile(256, 256, 64), 8,
        (
            HandWritten("basic", 64, 238, 0, TRITON_EXAMPLES),
            HandWritten("persistent, LDS prefetch", 64, 221, 0, TRITON_EXAMPLES),
            HandWritten("warp pipeline", 64, 183, 0, TRITON_EXAMPLES),
        ),
    ),
    Row(
        "descriptor_matmul", "", "gfx1250", tile(256, 256, 64), 8,
        (
            HandWritten("basic", 64, 238, 0, TRITON_EXAMPLES),
            HandWritten("persistent, LDS prefetch", 64, 221, 0, TRITON_EXAMPLES),
            HandWritten("warp pipeline", 64, 183, 0, TRITON_EXAMPLES),
        ),
    ),
    Row(
        "matmul", "matmul/fp16", "gfx1250", tile(256, 256, 128), 4,
        (HandWritten("one warp per SIMD", 256, 637, 7, TRITON_EXAMPLES),),
    ),
    Row("matmul", "matmul/bf16", "gfx1250", tile(64, 64, 256), 4, (HandWritten("GEMM", 32, 165, 0, AITER),)),
    Row(
        "descriptor_matmul", "", "gfx1250", tile(256, 256, 128), 4,
        (HandWritten("one warp per SIMD", 256, 637, 7, TRITON_EXAMPLES),),
    ),
    Row("descriptor_matmul", "", "gfx1250", tile(64, 64, 256), 4, (HandWritten("GEMM", 32, 165, 0, AITER),), "bf16"),
    Row(
        "batched_matmul", "batched_matmul/64x64x64", "gfx1250", tile(64, 64, 128), 4,
        (HandWritten("batched GEMM", 16, 99, 0, AITER),), "bf16",
    ),
    Row(
        "flash_attention", "flash_attention/full", "gfx1250", heads(128, 64, 128), 4,
        (HandWritten("attention", 64, 717, 0, TRITON_EXAMPLES),),
    ),
    Row(
        "flash_attention", "flash_attention/full", "gfx1250", heads(256, 64, 128), 8,
        (HandWritten("ping-pong attention", 64, 561, 23, TRITON_EXAMPLES),),
    ),
    Row("matmul", "matmul/fp16", "gfx950", tile(256, 256, 64), 8, ()),
)  # fmt: skip


def spec_of(row: Row) -> LaunchSpec:
    """The fixture's launch with the row's tile and types."""
    specs = read_launches(str(ROOT / "fixtures" / row.fixture / "launches.json"))
    spec = next(s for s in specs if s.id == row.launch or not row.launch)
    signature = spec.signature
    if row.dtype:
        signature = {
            k: f"*{row.dtype}" if isinstance(t, str) and t.startswith("*") else t for k, t in signature.items()
        }
    return replace(
        spec,
        id=row.name,
        signature=signature,
        constexprs={**spec.constexprs, **row.constexprs},
        options={**spec.options, "num_warps": row.num_warps},
    )


def figures(metrics: KernelMetrics | None) -> dict | None:
    if metrics is None:
        return None
    loop = metrics.loop or metrics.mix
    return {
        "matrix": loop.mma, "insns": loop.insns, "density": round(loop.density, 4), "barriers": loop.barrier,
        "vgpr": metrics.vgpr, "spills": metrics.spill, "lds_bytes": metrics.lds_bytes,
    }  # fmt: skip


def measure_row(row: Row, pool: KeptJobs) -> dict:
    source, spec = str(ROOT / "fixtures" / row.fixture / "kernel.py"), spec_of(row)
    request = TranslateRequest(source, row.target, (spec.kernel,), (spec,), optimize="aggressive")
    triton = pool.submit(LOWER, source, spec, row.target)
    tried = try_candidates(request, spec, pool)
    chosen = best(tried)[spec.kernel]
    sides = {}
    for side, choices in (("parity", Choices()), ("aggressive", chosen)):
        found = figures_of(tried, spec.id, choices)
        sides[side] = figures(found.lowered.metrics if found and found.lowered else None)
    try:
        sides["triton"] = figures(triton.result().metrics)
    except TranslationError:
        sides["triton"] = None
    ours = sides["aggressive"]
    theirs = [
        {
            "name": h.name, "matrix": h.matrix, "insns": h.insns, "density": round(h.density, 4), "spills": h.spills,
            "source": h.source,
            "ratio": round(ours["density"] / h.density, 3) if ours else None,
        }
        for h in row.hand_written
    ]  # fmt: skip
    return {"row": row.name, "target": row.target, "candidate": chosen.name, **sides, "hand_written": theirs}


def markdown(results: list[dict]) -> str:
    lines = [
        "# Matrix density beside hand-written kernels",
        "",
        "Matrix / all instructions of the hottest loop, and spilled VGPRs. Written by `python bench/density.py`.",
        "",
        "| fixture, tile, warps | target | parity | aggressive | candidate | Triton | hand-written | aggressive / hand-written |",
        "|---|---|---|---|---|---|---|---|",
    ]

    def cell(side: dict | None) -> str:
        if side is None:
            return "does not compile"
        spills = f", {side['spills']} spilled" if side["spills"] else ""
        return f"{side['matrix']}/{side['insns']} ({side['density']:.1%}){spills}"

    for r in results:
        own = [f"{r['row']}", r["target"], cell(r["parity"]), cell(r["aggressive"]), r["candidate"], cell(r["triton"])]
        for hand in r["hand_written"] or [None]:
            theirs = [f"{hand['name']}: {cell(hand)}", str(hand["ratio"])] if hand else ["", ""]
            lines.append("| " + " | ".join([*own, *theirs]) + " |")
    return "\n".join(lines) + "\n"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", default="", help="rows whose name has this in it")
    parser.add_argument("-j", "--jobs", type=int, default=2)
    parser.add_argument("--cluster", metavar="ADDRESS", help="as of gluonize translate")
    parser.add_argument("--json", type=Path)
    parser.add_argument("--markdown", type=Path)
    a = parser.parse_args()
    results, kept = [], json.loads(a.json.read_text()) if a.json and a.json.exists() else []
    with open_pool(a.jobs, 300, cached=False, cluster=a.cluster) as pool:
        for row in ROWS:
            if a.only in f"{row.name} {row.target}":
                results.append(measure_row(row, pool))
                print(markdown(results[-1:]).splitlines()[-max(1, len(row.hand_written))], flush=True)
    # Rows that were not measured now stay as they are.
    known = {(r["row"], r["target"]): r for r in [*kept, *results]}
    results = [known[key] for row in ROWS if (key := (row.name, row.target)) in known]
    if a.json:
        a.json.write_text(json.dumps(results, indent=1) + "\n")
    if a.markdown:
        a.markdown.write_text(markdown(results))


if __name__ == "__main__":
    main()
