"""Kernels made from one launch with `--general`, at configurations that they were not made from.

    python bench/general.py [--only FIXTURE] [--target gfx950] [--configurations 24] [-j 1] [--json bench/results/general.json] [--markdown bench/results/general.md]

A configuration is a choice of tile sizes and warps that Triton compiles for the target. Of each the table counts whether the general
kernel compiles, computes what the source does, and how many instructions it has beside a translation made for that configuration.
Configurations are drawn the same way each time; `refused` are those that the kernel refuses by name.
"""

from __future__ import annotations

import argparse
import itertools
import json
import math
import random
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

from gluonize.product.cluster.open_pool import open_pool  # noqa: E402
from gluonize.diagnostics import TranslationError  # noqa: E402
from gluonize.general.launches.trials import WARPS, with_sizes  # noqa: E402
from gluonize.judge.lower.compile import Lowered  # noqa: E402
from gluonize.product.project.cache.kept_jobs import KeptJobs  # noqa: E402
from gluonize.request import TranslateRequest  # noqa: E402
from gluonize.read.spec.launch import LaunchSpec, read_launches  # noqa: E402

TRANSLATE, LOWER = "gluonize.translation:translate_kernel", "gluonize.judge.lower.jobs:lower_file"
VALIDATE = "gluonize.judge.verdict:validate_launch"
MARGIN = 1.02  # instructions of the general kernel over those of one made for the configuration
STATUSES = ("right", "wrong", "refused", "failed", "not validated")


@dataclass(frozen=True)
class Made:
    """A fixture's launch, and the tile sizes that are tried instead of its own. row: the one that is the length of rows of tensors;
    covered: arguments and the sizes whose tiles cover them, one program each, where more programs read past the end; name: of several
    launches of one fixture."""

    fixture: str
    launch: str
    tiles: dict[str, tuple[int, ...]]
    warps: tuple[int, ...] = (1, 2, 4, 8)
    row: str = ""
    covered: tuple[tuple[str, str], ...] = ()
    name: str = ""

    @property
    def label(self) -> str:
        return self.name or self.fixture

    @property
    def folder(self) -> Path:
        return ROOT / "fixtures" / self.fixture

    @property
    def spec(self) -> LaunchSpec:
        every = read_launches(str(self.folder / "launches.json"))
        return next(spec for spec in every if spec.id == self.launch)


TILES = (16, 32, 64, 128, 256)
ROWS_OF = tuple(2**i for i in range(6, 15))
MADE = (
    Made("matmul", "matmul/fp16", {"BLOCK_M": TILES, "BLOCK_N": TILES, "BLOCK_K": TILES}),
    Made("softmax", "softmax/fp32", {"BLOCK_SIZE": ROWS_OF}, (1, 2, 4, 8, 16)),
    Made("layer_norm", "layer_norm/forward", {"BLOCK_SIZE": ROWS_OF}, (1, 2, 4, 8, 16)),
    Made("cross_entropy", "cross_entropy/forward", {"BLOCK_SIZE": ROWS_OF}, (1, 2, 4, 8, 16)),
    Made(
        "flash_attention",
        "flash_attention/causal",
        {"HEAD_DIM": TILES[1:], "BLOCK_M": TILES, "BLOCK_N": TILES},
        row="HEAD_DIM",
    ),
    Made("split_k_matmul", "split_k_matmul/fp16", {"BLOCK_M": TILES, "BLOCK_N": TILES, "BLOCK_K": TILES}),
    Made(
        "fp8_matmul",
        "fp8_matmul/64x64x128",
        {"BLOCK_M": TILES, "BLOCK_N": TILES, "BLOCK_K": TILES[1:]},
        covered=(("M", "BLOCK_M"), ("N", "BLOCK_N")),
    ),
    Made("int8_matmul", "int8_matmul/int8", {"BLOCK_M": TILES, "BLOCK_N": TILES, "BLOCK_K": TILES[1:]}),
    Made("scan", "scan/cumsum_fp32", {"BLOCK_SIZE": ROWS_OF}, (1, 2, 4, 8, 16)),
    Made("scan", "scan/linear_recurrence", {"BLOCK_T": TILES, "BLOCK_D": TILES[:-1]}, name="linear_recurrence"),
)


@dataclass
class Outcome:
    """One configuration: `right`, `wrong`, `refused`, `failed` or `not validated`; instructions of both kernels, where both compile."""

    sizes: dict[str, int]
    status: str
    why: str = ""
    general: int = 0
    exact: int = 0

    @property
    def within(self) -> bool:
        return self.status == "right" and 0 < self.general <= MARGIN * self.exact


@dataclass
class Figures:
    """What a general kernel of one fixture for one target holds for. note: as the translation says; length: over that of the exact one."""

    fixture: str
    target: str
    note: str
    length: float
    outcomes: list[Outcome] = field(default_factory=list)

    def count(self, status: str) -> int:
        return sum(outcome.status == status for outcome in self.outcomes)

    @property
    def line(self) -> str:
        ratios = [o.general / o.exact for o in self.outcomes if o.exact and o.general]
        worst = f"{max(ratios):.2f}" if ratios else "-"
        counts = [self.count(status) for status in STATUSES]
        cells = [self.fixture, self.target, len(self.outcomes), *counts, sum(o.within for o in self.outcomes), worst]
        return "| " + " | ".join(map(str, cells)) + f" | {self.length:.2f} |"


HEAD = (
    "| fixture | target | configurations | right | wrong | refused | failed | not validated | within 2 % | worst | length |\n"
    "|---|---|---|---|---|---|---|---|---|---|---|"
)


def drawn(made: Made, seed: int = 0) -> Iterator[dict[str, int]]:
    """Configurations other than the launch's own, in the same order each time."""
    own = {**made.spec.constexprs, WARPS: made.spec.options[WARPS]}
    every = [dict(zip((*made.tiles, WARPS), sizes)) for sizes in itertools.product(*made.tiles.values(), made.warps)]
    every = [sizes for sizes in every if any(own[name] != value for name, value in sizes.items())]
    random.Random(seed).shuffle(every)
    yield from every


def at(made: Made, sizes: dict[str, int]) -> LaunchSpec:
    """The launch with other sizes and its own values."""
    spec, row = made.spec, made.row
    tiles = {name: value for name, value in sizes.items() if name != WARPS}
    values = spec.values if not row else with_rows(spec.values, spec.constexprs[row], sizes[row])
    programs = math.prod(-(-spec.values[name] // sizes[tile]) for name, tile in made.covered)
    grid = (programs,) if made.covered else spec.grid
    return replace(with_sizes(spec, sizes), values=values | tiles, grid=grid)


def with_rows(values: dict, old: int, new: int) -> dict:
    """The values of a launch whose tensors have rows of `new` elements instead of `old`; their strides are arguments too."""
    out = dict(values)
    for name, value in values.items():
        if name.startswith("stride") and value % old == 0:
            out[name] = value // old * new
        elif isinstance(value, dict) and value["tensor"]["shape"][-1] == old:
            tensor = value["tensor"]
            *outer, last = tensor["stride"]
            strides = [*(stride // old * new for stride in outer), last]
            shape, storage = [*tensor["shape"][:-1], new], tensor["storage"] // old * new
            out[name] = {"tensor": tensor | {"shape": shape, "stride": strides, "storage": storage}}
    return out


def measured(pool: KeptJobs, made: Made, target: str, count: int) -> Figures:
    """The general kernel made from one launch at `count` configurations that Triton takes."""
    source, spec = str(made.folder / "kernel.py"), made.spec
    request = TranslateRequest(source, target, launches=(spec,), general=True)
    result = pool.submit(TRANSLATE, request).result()
    exact = pool.submit(TRANSLATE, replace(request, general=False)).result()
    note = next((n for n in result.notes if "holds for" in n), "")
    figures = Figures(made.label, target, note, result.text.count("\n") / exact.text.count("\n"))
    with tempfile.TemporaryDirectory() as folder:
        general = Path(folder) / "general.py"
        general.write_text(result.text, encoding="utf-8")
        for sizes in drawn(made):
            if len(figures.outcomes) == count:
                break
            tried = at(made, sizes)
            if isinstance(lowered(pool, source, tried, target), Lowered):
                figures.outcomes.append(outcome(pool, source, general, tried, target, sizes))
    return figures


def lowered(pool: KeptJobs, source: str, spec: LaunchSpec, target: str, folders: tuple[str, ...] = ()) -> Lowered | str:
    """A kernel compiled; or why it is not, a workgroup's LDS included. folders: in which modules are looked for."""
    try:
        found = pool.submit(LOWER, source, spec, target, folders).result()
    except TranslationError as error:
        return error.diagnostics[0].why or error.diagnostics[0].message
    return found if (problem := found.lds_overflow()) is None else problem.message


def judged(
    pool: KeptJobs,
    source: str,
    general: Path,
    spec: LaunchSpec,
    target: str,
    sizes: dict[str, int],
    folders: tuple[str, ...] = (),
) -> Outcome:
    """Whether the general kernel computes what the source does, for one configuration."""
    ours = lowered(pool, str(general), spec, target, folders)
    if isinstance(ours, str):
        return Outcome(
            sizes,
            "refused" if "translated for" in ours or " asserts " in ours else "failed",
            " ".join(ours.split())[:200],
        )
    answer = pool.submit(VALIDATE, source, str(general), spec, target, folders).result()
    status = {"validated": "right", "mismatch": "wrong"}.get(answer["status"], "not validated")
    why = "" if status == "right" else str(answer).replace(f"{ROOT}/", "")[:200]
    return Outcome(sizes, status, why, ours.metrics.mix.insns)


def outcome(
    pool: KeptJobs, source: str, general: Path, spec: LaunchSpec, target: str, sizes: dict[str, int]
) -> Outcome:
    """What the general kernel does for one configuration, beside a translation made for it."""
    found = judged(pool, source, general, spec, target, sizes)
    if not found.general:
        return found
    one = pool.submit(TRANSLATE, TranslateRequest(source, target, launches=(spec,))).result()
    if one.text is not None:
        path = general.with_name("exact.py")
        path.write_text(one.text, encoding="utf-8")
        made = lowered(pool, str(path), spec, target)
        found.exact = made.metrics.mix.insns if isinstance(made, Lowered) else 0
    return found


def kept(path: Path, found: list[Figures]) -> list[Figures]:
    """The figures of a file, those found now in their place."""
    known = {(f["fixture"], f["target"]): f for f in (json.loads(path.read_text()) if path.exists() else [])}
    known |= {(f.fixture, f.target): asdict(f) for f in found}
    rows = [Figures(**{**f, "outcomes": [Outcome(**o) for o in f["outcomes"]]}) for f in known.values()]
    return sorted(rows, key=lambda f: (f.fixture, f.target))


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", default="", help="fixtures whose name has this")
    parser.add_argument("--target", default="gfx950")
    parser.add_argument("--configurations", type=int, default=24)
    parser.add_argument("-j", "--jobs", type=int, default=1)
    parser.add_argument("--json", type=Path)
    parser.add_argument("--markdown", type=Path)
    asked = parser.parse_args()
    found = []
    with open_pool(asked.jobs, 1200.0, cached=False) as pool:
        for made in (made for made in MADE if asked.only in made.label):
            found.append(measured(pool, made, asked.target, asked.configurations))
            print(
                found[-1].note,
                *(f"  {o.sizes} {o.status} {o.general}/{o.exact} {o.why}" for o in found[-1].outcomes),
                sep="\n",
            )
            print(found[-1].line, flush=True)
            if asked.json:  # what is measured stays, whatever becomes of the rest
                found_all = kept(asked.json, found)
                asked.json.write_text(json.dumps([asdict(f) for f in found_all], indent=1) + "\n", encoding="utf-8")
    if asked.markdown and asked.json:
        lines = [HEAD, *(f.line for f in kept(asked.json, []))]
        asked.markdown.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
