"""Kernels made with `--general` from their first autotune configuration, at the others.

    python bench/general_configs.py LAUNCHES.json FOLDER [--target gfx950] [--every 1] [--only TEXT] [--most 6] [--seconds 300] [-j 1] [--json FILE] [--markdown FILE]

LAUNCHES.json holds captured launches, FOLDER the packages that their sources are in. Each kernel whose decorators have several
configurations that can be read is translated for the first that translates, and tried with up to `--most` of the others that Triton compiles: `right`
is what compiles and computes what the source does on the captured values, `refused` what the kernel refuses by name. A kernel that
takes longer than `--seconds` to be made does not count.
"""

from __future__ import annotations

import argparse
import json
import random
import sys
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path

import triton

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

from bench.general import STATUSES, TRANSLATE, Outcome, judged, lowered  # noqa: E402
from gluonize.product.cluster.open_pool import open_pool  # noqa: E402
from gluonize.diagnostics import InternalError, TranslationError  # noqa: E402
from gluonize.judge.lower.compile import Lowered  # noqa: E402
from gluonize.product.project.cache.kept_jobs import KeptJobs  # noqa: E402
from gluonize.request import TranslateRequest, TranslateResult  # noqa: E402
from gluonize.read.launches.derive.host.configs import autotune_configs  # noqa: E402
from gluonize.read.spec.launch import LaunchSpec, read_launches  # noqa: E402
from gluonize.read.kernels.load import load_kernel  # noqa: E402

HEAD = f"| kernel | configurations | {' | '.join(STATUSES)} | range |\n|---|---|---|---|---|---|---|---|"


@dataclass
class Tried:
    """A kernel made from one configuration, and what came of the others. note: what the translation says that it holds for, or why
    there is none."""

    id: str
    note: str
    outcomes: list[Outcome] = field(default_factory=list)

    def count(self, status: str) -> int:
        return sum(outcome.status == status for outcome in self.outcomes)

    @property
    def line(self) -> str:
        cells = [self.id, len(self.outcomes), *map(self.count, STATUSES), self.note.partition("holds for ")[2]]
        return "| " + " | ".join(map(str, cells)) + " |"


def configured(spec: LaunchSpec, config: triton.Config) -> LaunchSpec:
    """The launch as a configuration of its autotuner makes it; arguments of which it says nothing stay."""
    options = {"num_warps": config.num_warps, "num_stages": config.num_stages}
    options |= {name: value for name, value in config.kwargs.items() if name not in spec.signature}
    values = {name: value for name, value in config.kwargs.items() if name in spec.signature}
    return replace(
        spec,
        constexprs=spec.constexprs | values,
        options=spec.options | options,
        values=spec.values | values if spec.values else {},
    )


def configurations(spec: LaunchSpec, folder: str) -> list[triton.Config]:
    """Those of the kernel's decorators that differ in what a translation sees."""
    try:
        loaded = load_kernel(spec.source, spec.kernel, globals={}, search_path=[folder])
    except TranslationError:
        return []
    program = loaded.program
    found, _ = autotune_configs(loaded, program, program.import_known(loaded.module))
    return found


def sizes_of(config: triton.Config) -> dict[str, int]:
    return {**config.kwargs, "num_warps": config.num_warps, "num_stages": config.num_stages}


def made(
    pool: KeptJobs, spec: LaunchSpec, configs: Sequence[triton.Config], target: str, folders: tuple[str, ...]
) -> tuple[int, TranslateResult] | str:
    """(number of the first configuration that is translated, the general kernel made from it); or why none is."""
    why = ""
    for number, config in enumerate(configs):
        launch = configured(spec, config)
        request = TranslateRequest(
            spec.source, target, kernels=(spec.kernel,), launches=(launch,), search_path=folders, general=True,
            standalone=True,
        )  # fmt: skip
        try:
            result = pool.submit(TRANSLATE, request).result()
        except InternalError as error:
            return str(error).splitlines()[-1]
        if result.text is not None:
            return number, result
        found = [d for o in result.outcomes for d in o.diagnostics] or list(result.diagnostics)
        why = found[0].message if found else why
    return why


def tried(pool: KeptJobs, spec: LaunchSpec, target: str, folder: str, most: int) -> Tried | None:
    """A kernel made from one configuration, at `most` others; None where it has none."""
    configs, folders = configurations(spec, folder), (folder,)
    if len(configs) < 2:
        return None
    found = made(pool, spec, configs, target, folders)
    if isinstance(found, str):
        return Tried(spec.id, f"no translation: {found}")
    number, result = found
    out = Tried(spec.id, next((n for n in result.notes if "holds for" in n), ""))
    others = [config for i, config in enumerate(configs) if i != number]
    random.Random(0).shuffle(others)
    with tempfile.TemporaryDirectory() as made_in:
        general = Path(made_in) / "general.py"
        general.write_text(result.text, encoding="utf-8")
        for config in others:
            if len(out.outcomes) == most:
                break
            launch = configured(spec, config)
            if isinstance(lowered(pool, spec.source, launch, target, folders), Lowered):
                out.outcomes.append(judged(pool, spec.source, general, launch, target, sizes_of(config), folders))
    return out


def summary(found: Sequence[Tried]) -> str:
    counts: Mapping[str, int] = {status: sum(t.count(status) for t in found) for status in STATUSES}
    every = sum(counts.values())
    kernels = sum(bool(t.outcomes) for t in found)
    shares = ", ".join(f"{count} {status} ({100 * count / max(every, 1):.0f} %)" for status, count in counts.items())
    return (
        f"{every} configurations of {kernels} kernels: {shares}; {len(found) - kernels} kernels without a translation"
    )


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("launches")
    parser.add_argument("folder")
    parser.add_argument("--target", default="gfx950")
    parser.add_argument("--every", type=int, default=1)
    parser.add_argument("--only", default="", help="launches whose id has this")
    parser.add_argument("--most", type=int, default=6)
    parser.add_argument("--seconds", type=float, default=300.0)
    parser.add_argument("-j", "--jobs", type=int, default=1)
    parser.add_argument("--json", type=Path)
    parser.add_argument("--markdown", type=Path)
    asked = parser.parse_args()
    specs = {(spec.source, spec.kernel): spec for spec in reversed(read_launches(asked.launches))}
    chosen = [spec for spec in reversed(list(specs.values())) if asked.only in spec.id]
    chosen = [spec for spec in chosen if len(configurations(spec, asked.folder)) > 1][:: asked.every]
    found: list[Tried] = []
    with open_pool(asked.jobs, asked.seconds, cached=False) as pool:
        for spec in chosen:
            if (one := tried(pool, spec, asked.target, asked.folder, asked.most)) is None:
                continue
            found.append(one)
            print(one.line, *(f"  {o.sizes} {o.status} {o.why}" for o in one.outcomes if o.why), sep="\n", flush=True)
            if asked.json:
                asked.json.write_text(json.dumps([asdict(t) for t in found], indent=1) + "\n", encoding="utf-8")
    print(summary(found))
    if asked.markdown:
        asked.markdown.write_text(
            "\n".join([summary(found), "", HEAD, *(t.line for t in found)]) + "\n", encoding="utf-8"
        )
    return 0


if __name__ == "__main__":
    sys.exit(main())
