"""`gluonize targets`: what each architecture has, and what Triton constructs become there."""

from __future__ import annotations

from gluonize.product.cli import exit_status
from gluonize.product.cli.console import Verbosity, rich_console
from gluonize.product.cli.results import write_json
from gluonize.rules.targets import DEFAULT_TARGETS, TARGETS, MatrixRow, Target

COPIES = {
    "none": "through registers: buffer_load, then a store to LDS",
    "direct_to_lds": "cdna4.async_copy.buffer_load_to_shared, commit and wait groups",
    "async_copy": "cdna5.async_copy.global_to_shared, commit and wait groups",
    "tdm": "cdna5.tdm.async_load for strided tiles, else cdna5.async_copy.global_to_shared",
}


def run_targets(json: str | None, verbosity: Verbosity) -> int:
    """Print the tables of `rules/targets.py`."""
    if json:
        write_json(json, [target_as_json(row) for row in TARGETS.values()])
        if json == "-":
            return exit_status.DONE
    from rich.table import Table

    console = rich_console(verbosity)
    table = Table(box=None, pad_edge=False)
    for name in ("target", "product", "family"):
        table.add_column(name)
    for name in ("wave", "LDS/workgroup", "VGPRs/wave", "max waves"):
        table.add_column(name, justify="right")
    for row in TARGETS.values():
        kib = f"{row.lds_bytes // 1024} KiB"
        cells = (row.warp_size, kib, row.vgpr_limit, row.max_waves)
        table.add_row(row.name, row.product, row.family, *map(str, cells))
    console.print(table)
    console.print(f"\n-t all means {', '.join(DEFAULT_TARGETS)}\n")
    if not verbosity.verbose:
        console.print("what loads, copies and products become on each, and who says so: -v", markup=False)
        return exit_status.DONE
    for row in TARGETS.values():
        console.print(f"{row.name}", style="bold")
        for label, text in mapping(row):
            console.print(f"  {label:14s}{text}", markup=False)
        for label, source in row.sources.items():
            console.print(f"  {label + ' from':14s}{source}", markup=False)
    return exit_status.DONE


def mapping(row: Target) -> list[tuple[str, str]]:
    """(Triton construct, what it becomes on the target), one line each."""
    lines = [("load, store", f"{row.buffer_module}.buffer_load / buffer_store where 32-bit offsets provably fit")]
    lines.append(("global to LDS", COPIES[row.async_mechanism]))
    families: dict[tuple[str, str], list[MatrixRow]] = {}
    for matrix in row.matrix:
        families.setdefault((matrix.kind, " ".join(matrix.dtypes)), []).append(matrix)
    for (kind, dtypes), rows in families.items():
        construct = "dot_scaled" if kind.endswith("_scaled") else "dot"
        shapes = ", ".join(
            "x".join(map(str, m.shape))
            + (f" ({m.precision})" if m.precision != "ieee" else "")
            + (f" {m.cycles} cycles" if m.cycles else "")
            for m in rows
        )
        lines.append((construct, f"{dtypes}: {kind} {shapes}"))
    if not any("fp32" in m.dtypes for m in row.matrix):
        lines.append(("dot", "fp32: dot_fma (no matrix instruction)"))
    if not row.native_fp8:
        lines.append(("dot", "fp8: operands are converted to fp16"))
    if row.supports_warp_specialization:
        lines.append(("strategies", "warp-specialized producer and consumer with mbarriers"))
    if row.cluster_ctas > 1:
        lines.append(("num_ctas", f"clusters of at most {row.cluster_ctas} workgroups"))
    return lines


def target_as_json(row: Target) -> dict:
    """The table of one target, matrix instructions included."""
    from dataclasses import asdict

    return {**asdict(row), "mapping": [list(line) for line in mapping(row)]}
