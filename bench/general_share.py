"""The share of captured kernels that hold, made general, for all tile sizes and numbers of warps within a factor of two each way.

    python bench/general_share.py LAUNCHES.json FOLDER [--target gfx950] [--every 1] [--offset 0] [--only TEXT] [--seconds 300] [--tried 2] [--json FILE]

LAUNCHES.json holds captured launches, FOLDER the packages that their sources are in. A kernel counts where it holds for all
combinations of half, once and twice each size; those that Triton refuses, and those whose rings find no room in LDS, are left out. `--every N`
looks at each N-th launch, from the one with the number `--offset` on. A kernel that takes more than `--seconds` of processor time to be made
does not count. `--tried` of the combinations, drawn at random from those that Triton compiles, are compiled and validated for each
kernel: one that is not right there does not count either. FILE keeps the kernels that it has and that are not measured now.
"""

from __future__ import annotations

import argparse
import collections
import itertools
import json
import random
import resource
import signal
import subprocess
import sys
import tempfile
import time
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from unittest import mock

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

from bench.general import Outcome, judged, lowered  # noqa: E402
from gluonize.rules.targets import target as target_row  # noqa: E402
from gluonize.general.launches.trials import WARPS, with_sizes  # noqa: E402
from gluonize.general.general_versions import general_versions  # noqa: E402
from gluonize.general.other_texts import tile_sizes  # noqa: E402
from gluonize.product.cluster.open_pool import open_pool  # noqa: E402
from gluonize.decide.layouts.size_range import RoomBound  # noqa: E402
from gluonize.judge.lower.compile import Lowered  # noqa: E402
from gluonize.request import TranslateRequest  # noqa: E402
from gluonize.output.merging.kernel_family import KernelVersion  # noqa: E402
from gluonize.read.spec.launch import LaunchSpec, read_launches  # noqa: E402
from gluonize.translation import tools_of, translate_kernel  # noqa: E402

MOST_LANES = 1024  # of a workgroup


@dataclass(frozen=True)
class Held:
    """Whether a kernel holds for its neighbourhood: `held`, `narrower`, `given` (for its launch alone), `refused` or `slow`, and why not;
    `wrong` or `failed` at sizes that were tried. seconds: of processor time. texts: how many the kernel has. tried: sizes at which it
    is right."""

    id: str
    status: str
    why: str = ""
    seconds: float = 0.0
    texts: int = 0
    tried: int = 0


def neighbourhood(own: dict[str, int], lanes: int) -> list[dict[str, int]]:
    """All combinations of half, once and twice each size."""
    limits = {name: MOST_LANES // lanes if name == WARPS else 1 << 20 for name in own}
    steps = [[v for v in (value // 2, value, value * 2) if 1 <= v <= limits[name]] for name, value in own.items()]
    return [dict(zip(own, point)) for point in itertools.product(*steps)]


def holds(version: KernelVersion, own: dict[str, int], sizes: dict[str, int]) -> bool:
    """Whether a text of a general kernel takes a launch with other sizes; True for one without room in LDS."""
    ranges = {size.name: size for size in version.holds_for}
    if any(value not in ranges[name] if name in ranges else value != own[name] for name, value in sizes.items()):
        return False
    return all(bound.holds(own | sizes) for bound in version.bounds if not isinstance(bound, RoomBound))


def one(path: str, folder: str, target: str, number: int, tried: int = 0) -> Held:
    """The launch with this number; tried: at how many sizes it is compiled and validated."""
    spec = read_launches(path)[number]
    request = TranslateRequest(
        spec.source, target, launches=(spec,), search_path=(folder,), general=True, standalone=True
    )
    made: list[KernelVersion] = []

    def noted(*arguments):
        versions, notes = general_versions(*arguments)
        made.extend(versions)
        return versions, notes

    with mock.patch("gluonize.translation.general_versions", noted):
        result = translate_kernel(request)
    seconds = round(time.process_time(), 1)
    if not made:
        diagnostics = [d for outcome in result.outcomes for d in outcome.diagnostics]
        return Held(spec.id, "refused", diagnostics[0].message if diagnostics else "", seconds)
    version, texts = made[0], [made[0], *(v for v in made if v.apart)]
    if not version.holds_for:
        return Held(spec.id, "given", next(note for note in result.notes if "holds for" in note), seconds)
    own = {name: spec.constexprs[name] for name in tile_sizes([version])} | {WARPS: version.num_warps}
    tools = tools_of(request)
    around = neighbourhood(own, target_row(target).warp_size)
    for sizes in around:
        if (
            not any(holds(text, own, sizes) for text in texts)
            and tools.trace(with_sizes(version.spec, sizes)) is not None
        ):
            ranges = "; or ".join(", ".join(map(str, (*text.holds_for, *text.bounds))) for text in texts)
            return Held(spec.id, "narrower", f"not for {sizes}: {ranges}", seconds, len(texts))
    # A helper that differs from type to type has no name of its own in a file of its own.
    text = result.text or translate_kernel(replace(request, standalone=False)).text or ""
    outcomes = outcomes_at(spec, text, [sizes for sizes in around if sizes != own], target, folder, tried)
    wrong = next((o for o in outcomes if o.status != "right"), None)
    if wrong is not None:
        return Held(spec.id, wrong.status, f"{wrong.sizes}: {wrong.why}", seconds, len(texts))
    return Held(spec.id, "held", "", seconds, len(texts), len(outcomes))


def outcomes_at(
    spec: LaunchSpec, text: str, around: list[dict[str, int]], target: str, folder: str, count: int
) -> list[Outcome]:
    """What a general kernel does at some of the sizes, drawn at random from those at which Triton compiles the source, LDS has room, and the
    source is right on the captured values: tensors may be too small for greater tiles."""
    drawn, out, folders = random.Random(0).sample(around, len(around))[: 4 * count], [], (folder,)
    with tempfile.TemporaryDirectory() as made_in, open_pool(1, 1200.0, cached=False) as pool:
        general = Path(made_in) / "general.py"
        general.write_text(text, encoding="utf-8")
        for sizes in drawn:
            if len(out) == count:
                break
            launch = at_sizes(spec, sizes)
            if isinstance(lowered(pool, spec.source, launch, target, folders), Lowered):
                outcome = judged(pool, spec.source, general, launch, target, sizes, folders)
                out += [outcome] if outcome.status != "not validated" or "the source itself" not in outcome.why else []
    return out


def at_sizes(spec: LaunchSpec, sizes: dict[str, int]) -> LaunchSpec:
    """The launch with other sizes and its own values."""
    named = {name: value for name, value in sizes.items() if name in spec.values}
    return replace(with_sizes(spec, sizes), values=spec.values | named)


def in_child(words: list[str], id: str, seconds: float) -> Held:
    """`one` in a process of its own: some modules abort it. It ends after `seconds` of processor time."""
    limit = int(seconds)
    command = [sys.executable, __file__, *words]
    done = subprocess.run(
        command,
        capture_output=True,
        text=True,
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_CPU, (limit, limit)),
    )
    if done.returncode in (-signal.SIGXCPU, -signal.SIGKILL):
        return Held(id, "slow", seconds=seconds)
    lines = [line for line in done.stdout.splitlines() if line.startswith("{")]
    errors = [line for line in done.stderr.splitlines() if "Error" in line] or ["the process died"]
    return Held(**json.loads(lines[-1])) if lines else Held(id, "failed", errors[-1])


def kept(path: Path, found: list[Held]) -> list[Held]:
    """The rows of a file, those found now in their place."""
    known = {row["id"]: Held(**row) for row in (json.loads(path.read_text()) if path.exists() else [])}
    return list((known | {held.id: held for held in found}).values())


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("launches")
    parser.add_argument("folder")
    parser.add_argument("--target", default="gfx950")
    parser.add_argument("--every", type=int, default=1)
    parser.add_argument("--only", default="", help="launches whose id has this")
    parser.add_argument("--offset", type=int, default=0)
    parser.add_argument("--seconds", type=float, default=300.0)
    parser.add_argument("--tried", type=int, default=2)
    parser.add_argument("--json", type=Path)
    parser.add_argument("--one", type=int, help=argparse.SUPPRESS)
    asked = parser.parse_args()
    if asked.one is not None:
        print(json.dumps(asdict(one(asked.launches, asked.folder, asked.target, asked.one, asked.tried))))
        return 0
    found = []
    numbers = [i for i, spec in enumerate(read_launches(asked.launches)) if asked.only in spec.id]
    numbers = numbers[asked.offset :: asked.every]
    for number in numbers:
        id = read_launches(asked.launches)[number].id
        words = [
            asked.launches,
            asked.folder,
            "--target",
            asked.target,
            "--one",
            str(number),
            "--tried",
            str(asked.tried),
        ]
        found.append(in_child(words, id, asked.seconds))
        print(
            f"{found[-1].status:9} {id} {found[-1].seconds:.0f} s, {found[-1].texts} texts {found[-1].why}", flush=True
        )
        if asked.json:  # what is measured stays, whatever becomes of the rest
            rows = kept(asked.json, found[-1:])
            asked.json.write_text(json.dumps([asdict(held) for held in rows], indent=1) + "\n", encoding="utf-8")
    found = kept(asked.json, []) if asked.json else found
    counts = collections.Counter(held.status for held in found)
    share = 100 * counts["held"] / max(len(found), 1)
    print(
        f"{counts['held']} of {len(found)} ({share:.0f} %) hold within a factor of two on {asked.target}; {dict(counts)}"
    )
    return 0


if __name__ == "__main__":
    sys.exit(main())
