"""Kernels of an inference engine, translated from its Triton, beside the same ones that its authors wrote by hand in Gluon.

    python bench/pairs/pairs.py LAUNCHES.json -t TARGET --path FOLDER [--confirm] [--json FILE] [--markdown FILE]

LAUNCHES: what `gluonize capture` recorded of `record.py`; FOLDER: where the packages are. Both are its users' own: nothing of them is
kept here but names and figures. A pair has the same operation, head dimension, window and kinds of elements. Clocks are those that are
predicted of a compute unit for a million operations of matrices in the hottest loop, as tiles differ. --confirm: with choices that compiles
confirm, as `gluonize translate` has them.
"""

from __future__ import annotations

import argparse
import ast
import json
import re
import sys
import tempfile
from dataclasses import asdict, dataclass
from pathlib import Path
from statistics import median

ROOT = Path(__file__).resolve().parent.parent.parent
sys.path.insert(0, str(ROOT))

from gluonize.diagnostics import TranslationError  # noqa: E402
from gluonize.judge.cycles.prediction import Walked  # noqa: E402
from gluonize.product.cluster.open_pool import open_pool  # noqa: E402
from gluonize.read.kernels.gluon_kernels import plain_launch  # noqa: E402
from gluonize.read.spec.launch import LaunchSpec, read_launches  # noqa: E402
from gluonize.request import TranslateRequest  # noqa: E402
from gluonize.search.choose import LOWER, TRANSLATE  # noqa: E402
from gluonize.search.confirm import with_confirmed  # noqa: E402

_HEADS = (("N_HEADS", "NUM_Q_HEADS"), ("N_KV_HEADS", "NUM_KV_HEADS"))
OPERATIONS = ("prefill", "extend", "decode")


@dataclass(frozen=True)
class Side:
    """clocks: for a million operations, 0 where there is no loop with products."""

    kernel: str
    clocks: float
    efficiency: float
    spills: int
    vgpr: int
    lds: int
    barriers: int
    lines: int


@dataclass(frozen=True)
class Pair:
    """why: what cannot be compared."""

    name: str
    ours: Side | None = None
    triton: Side | None = None
    hand: Side | None = None
    why: str = ""

    @property
    def ratio(self) -> float:
        compared = self.ours and self.hand and self.ours.clocks and self.hand.clocks
        return self.ours.clocks / self.hand.clocks if compared else 0.0


def key_of(spec: LaunchSpec) -> tuple | None:
    """What both sides of a pair have in common; None for a launch that is part of none."""
    given, name = spec.constexprs, spec.kernel
    if "reduce" in name or "stage2" in name:
        return None
    head = given.get("HEAD_DIM") or given.get("Lq") or given.get("Lk")
    window = next((given[x] for x in ("WINDOW_LEFT", "SLIDING_WINDOW_SIZE") if x in given), -1)
    operation = next((x for x in OPERATIONS if x in name), "")
    if not operation:
        operation = "decode" if "stage1" in name else "extend" if given.get("HAS_KV_CACHE") else "prefill"
    heads = [given.get(x, given.get(y)) for x, y in _HEADS]
    grouped = heads[0] != heads[1] if heads[0] else given.get("kv_group_num", 2) != 1
    kinds = [
        kind for x, kind in sorted(spec.signature.items()) if re.fullmatch("(?i)k(_extend|_buffer|_cache|_ptr)?", x)
    ]
    return (operation, head, window, grouped, any("fp8" in kind for kind in kinds))


def lines_of(text: str, kernel: str) -> int:
    """Lines of a kernel's own function."""
    found = [
        n for n in ast.walk(ast.parse(text)) if isinstance(n, ast.FunctionDef) and n.name == kernel.rpartition(".")[2]
    ]
    return found[0].end_lineno - found[0].lineno + 1 if found else 0


def side(walked: Walked, spec: LaunchSpec, text: str) -> Side:
    hot, metrics = walked.cycles.hot, walked.metrics
    clocks = hot.per_workgroup / walked.cycles.work * 1e6 if hot and walked.cycles.work else 0.0
    loop = metrics.loop or metrics.mix
    return Side(
        spec.kernel, round(clocks, 1), round((hot and hot.efficiency) or 0.0, 3), metrics.spill, metrics.vgpr, walked.lds_bytes,
        loop.barrier, lines_of(text, spec.kernel),
    )  # fmt: skip


def compared(pool, name: str, source: LaunchSpec, hand: LaunchSpec, target: str, path: str, confirm: bool) -> Pair:
    request = TranslateRequest(
        source.source, target, (source.kernel,), launches=(source,), search_path=(path,), standalone=True
    )
    try:
        by_hand = side(
            pool.call(LOWER, hand.source, plain_launch(hand), target, (path,), False, False, True),
            hand,
            Path(hand.source).read_text(),
        )
    except TranslationError as error:
        return Pair(name, why=f"by hand: {error.diagnostics[0].message}: {error.diagnostics[0].why}"[:200])
    try:
        triton = side(
            pool.call(LOWER, source.source, source, target, (path,), False, False, True),
            source,
            Path(source.source).read_text(),
        )
        result = (with_confirmed if confirm else _plain)(request, pool, lambda asked: pool.call(TRANSLATE, asked))
        if result.text is None:
            found = [d for o in result.outcomes for d in o.diagnostics] + list(result.diagnostics)
            return Pair(name, None, triton, by_hand, f"refused: {found[0].message}")
        with tempfile.TemporaryDirectory(prefix="gluonize-pairs-") as folder:
            file = Path(folder) / f"{source.kernel}.py"
            file.write_text(result.text)
            spec = result.outcomes[0].spec
            ours = side(pool.call(LOWER, str(file), spec, target, (path,), False, False, True), spec, result.text)
    except TranslationError as error:
        return Pair(name, None, None, by_hand, error.diagnostics[0].message)
    return Pair(name, ours, triton, by_hand)


def _plain(request, pool, translated):
    return translated(request)


def table(pairs: list[Pair], target: str) -> str:
    """Markdown; first how many are within 1.05 and 1.3 of the kernel by hand."""
    ratios = [pair.ratio for pair in pairs if pair.ratio]
    within = {limit: sum(ratio <= limit for ratio in ratios) for limit in (1.05, 1.3)}
    lines = [
        f"{target}: {len(pairs)} pairs, {len(ratios)} compared; clocks of the translation over those by hand: median "
        f"{median(ratios) if ratios else 0:.2f}, within 1.05: {within[1.05]}, within 1.3: {within[1.3]}.",
        "",
        "| pair | clocks / by hand | clocks: ours, Triton, by hand | matrix cores busy | spills | VGPRs | LDS KiB | barriers | lines |",
        "| --- | --- | --- | --- | --- | --- | --- | --- | --- |",
    ]
    for pair in pairs:
        sides = (pair.ours, pair.triton, pair.hand)

        def told(show) -> str:
            return ", ".join(str(show(x)) if x is not None else "-" for x in sides)

        figures = [
            told(lambda x: f"{x.clocks:.0f}"), told(lambda x: f"{x.efficiency:.1%}"), told(lambda x: x.spills), told(lambda x: x.vgpr),
            told(lambda x: x.lds // 1024), told(lambda x: x.barriers), told(lambda x: x.lines),
        ]  # fmt: skip
        lines.append(
            f"| {pair.name} | {f'{pair.ratio:.2f}' if pair.ratio else pair.why or 'no products'} | {' | '.join(figures)} |"
        )
    return "\n".join(lines) + "\n"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("launches")
    parser.add_argument("-t", "--target", required=True)
    parser.add_argument("--path", required=True)
    parser.add_argument("--confirm", action="store_true")
    parser.add_argument("--json")
    parser.add_argument("--markdown")
    options = parser.parse_args()
    launches = [(spec, key_of(spec)) for spec in read_launches(options.launches)]
    sources = {key: spec for spec, key in reversed(launches) if key and not spec.kernel.startswith("gluon")}
    pairs: list[Pair] = []
    with open_pool(1, 300.0) as pool:
        for spec, key in launches:
            if key is None or not spec.kernel.startswith("gluon"):
                continue
            given = [spec.constexprs.get(x, spec.constexprs.get(y)) for x, y in _HEADS]
            heads = f" {given[0]}/{given[1]}" if all(given) else ""
            name = f"{key[0]}{heads} D{key[1]}{' window' * (key[2] >= 0)}{' fp8' * key[4]}"
            if key not in sources:
                pairs.append(Pair(name, why="no launch of the same in Triton"))
            else:
                pairs.append(compared(pool, name, sources[key], spec, options.target, options.path, options.confirm))
            print(table(pairs[-1:], options.target).splitlines()[-1], flush=True)
            if options.json:
                Path(options.json).write_text(
                    json.dumps([asdict(x) | {"ratio": round(x.ratio, 3)} for x in pairs], indent=1) + "\n"
                )
            if options.markdown:
                Path(options.markdown).write_text(table(pairs, options.target))
    print(table(pairs, options.target).splitlines()[0])


if __name__ == "__main__":
    main()
