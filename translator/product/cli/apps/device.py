"""The commands that run kernels: in the user's program, on the reference machine, on the GPU of this machine or another."""

from __future__ import annotations

from typing import Annotated, Optional

import typer

from gluonize.product.cli.apps.cache import CacheUrl, NoCache, use_cache
from gluonize.product.cli.options import (
    CapturedFrom,
    Cluster,
    Format,
    GivenLaunches,
    Import,
    Jobs,
    Json,
    Kernels,
    OneTarget,
    Source,
    Targets,
    Timeout,
    complete_word,
    given_targets,
)

Translation = Annotated[str, typer.Argument(help="Python file with the translation.")]
GivenSource = Annotated[
    Optional[str], typer.Option("--source", metavar="FILE", help="The Triton source; else what the launch names.")
]
LaunchId = Annotated[
    Optional[str], typer.Option("--id", metavar="ID", help="Only this launch, where a kernel has several.")
]


def _device(words: tuple[str, ...], help: str) -> object:
    listed = f"{', '.join(words[:-1])} or {words[-1]}"
    complete = complete_word(*words)
    return typer.Option("--device", metavar="DEVICE", help=f"{help}: {listed}.", autocompletion=complete)


VALIDATE_DEVICES = ("auto", "hip", "cuda", "cpu")
BUNDLE_DEVICES = ("both", "hip", "cuda")
RUN_DEVICES = ("auto", "hip", "cuda")


def _one_of(given: str, words: tuple[str, ...]) -> str:
    if given not in words:
        raise typer.BadParameter(f"{given!r} is none of {', '.join(words)}", param_hint="--device")
    return given


def capture(
    context: typer.Context,
    program: Annotated[
        str, typer.Argument(help="What to run: a script, a notebook, a command such as pytest; a module with --module.")
    ],
    arguments: Annotated[
        Optional[list[str]], typer.Argument(metavar="[-- ARGS]...", help="Arguments of the program.")
    ] = None,
    out: Annotated[str, typer.Option("-o", "--out", metavar="FILE", help="Launch file to write.")] = "launches.json",
    module: Annotated[bool, typer.Option("-m", "--module", help="PROGRAM is a module, as in python -m.")] = False,
    kernel: Kernels = None,
    run: Annotated[
        str,
        typer.Option(
            "--run",
            metavar="HOW",
            help="Run the kernels: gpu (where there is one), interpret (in Triton's interpreter) or none.",
        ),
    ] = "gpu",
    no_launch: Annotated[bool, typer.Option("--no-launch", help="The same as --run none.")] = False,
    pretend: Annotated[
        bool, typer.Option("--pretend/--no-pretend", help="Without a GPU, let torch programs believe there is one.")
    ] = True,
    append: Annotated[bool, typer.Option("--append", help="Add to a launch file that is there.")] = False,
    overwrite: Annotated[
        bool, typer.Option("--overwrite", "--force", help="Replace a launch file that is there.")
    ] = False,
    written_for: CapturedFrom = None,
) -> int:
    """Run a program and record what its Triton and Gluon kernels are launched with: capture -- pytest tests/test_x.py."""
    from gluonize.product.cli.running.capture import run_capture

    words, names = (program, *(arguments or ())), tuple(kernel or ())
    how = "none" if no_launch else run
    return run_capture(words, out, module, names, how, pretend, append, overwrite, context.obj, written_for or "")


def prove(
    context: typer.Context,
    source: Source,
    out: Translation,
    launches: GivenLaunches,
    target: Targets = None,
    kernel: Kernels = None,
    json: Json = None,
    format: Format = "text",
    timeout: Timeout = 60.0,
    jobs: Jobs = 0,
    import_: Import = False,
    no_cache: NoCache = False,
    cache: CacheUrl = None,
    cluster: Cluster = None,
) -> None:
    """Prove that a Gluon kernel, edited or written by hand, computes what its source computes: for every launch that its header admits."""
    from gluonize.product.cli.running.prove import ProveOptions, run_prove

    options = ProveOptions(
        source, out, given_targets(target), launches, tuple(kernel or ()), json, jobs, timeout, import_, format,
        use_cache(cache, no_cache), cluster,
    )  # fmt: skip
    return run_prove(options, context.obj)


def validate(
    context: typer.Context,
    source: Source,
    out: Translation,
    target: Targets,
    launches: GivenLaunches,
    kernel: Kernels = None,
    inputs: Annotated[
        Optional[str],
        typer.Option(
            "--inputs", metavar="FILE", help="Python file with make_inputs(launch) -> {name: array or number}."
        ),
    ] = None,
    device: Annotated[str, _device(VALIDATE_DEVICES, "A GPU if there is one, or the CPU")] = "cpu",
    variants: Annotated[
        bool, typer.Option("--variants/--no-variants", help="Also sizes and values beside those of the launch.")
    ] = True,
    emulator: Annotated[
        bool, typer.Option("--emulator", help="Machine code too, in the emulator that GLUONIZE_EMULATOR names.")
    ] = False,
    json: Json = None,
    import_hosts: Import = False,
    jobs: Jobs = 0,
    timeout: Timeout = 120.0,
    format: Format = "text",
    cache: CacheUrl = None,
    no_cache: NoCache = False,
    cluster: Cluster = None,
) -> int:
    """Run source and translation on the CPU reference machine, or on a GPU, and compare."""
    from gluonize.product.cli.running.validate import run_validate
    from gluonize.product.cli.running.validate_options import ValidateOptions

    _one_of(device, VALIDATE_DEVICES)
    options = ValidateOptions(
        source, out, given_targets(target), launches, tuple(kernel or ()), inputs, json, device, variants, jobs, timeout,
        import_hosts, format, use_cache(cache, no_cache), emulator, cluster,
    )  # fmt: skip
    return run_validate(options, context.obj)


def bundle(
    context: typer.Context,
    out: Translation,
    target: OneTarget,
    launches: GivenLaunches,
    output: Annotated[str, typer.Option("-o", "--output", metavar="FILE", help="The bundle (*.zip).")],
    kernel: Kernels = None,
    id: LaunchId = None,
    source: GivenSource = None,
    device: Annotated[str, _device(BUNDLE_DEVICES, "Which code objects go in")] = "both",
    planted: Annotated[
        bool, typer.Option("--planted", help="Also copies with planted synchronisation bugs (CUDA).")
    ] = False,
    import_hosts: Import = False,
    timeout: Timeout = 120.0,
) -> int:
    """Pack one launch of a translation for a machine with a GPU."""
    from gluonize.product.cli.running.bundle import DeviceOptions, run_bundle_command

    _one_of(device, BUNDLE_DEVICES)
    options = DeviceOptions(out, target, launches, tuple(kernel or ()), id, source, timeout, import_hosts)
    return run_bundle_command(options, output, device, planted, context.obj)


def run_bundle(
    context: typer.Context,
    bundle: Annotated[str, typer.Argument(help="The bundle (*.zip).")],
    device: Annotated[str, _device(RUN_DEVICES, "The GPU to run on")] = "auto",
    planted: Annotated[bool, typer.Option("--planted", help="Also the copies with a planted bug.")] = False,
    runs: Annotated[int, typer.Option("--runs", min=1, metavar="N", help="Runs that are compared.")] = 3,
    timed: Annotated[int, typer.Option("--timed", min=0, metavar="N", help="Further runs that are timed.")] = 20,
    json: Json = None,
    timeout: Annotated[
        float, typer.Option("--timeout", metavar="SECONDS", help="Limit for one code object, by the clock.")
    ] = 60.0,
) -> int:
    """Run a bundle on the GPU of this machine, as `python BUNDLE` does where only numpy is installed."""
    from gluonize.product.cli.running.run_bundle import run_run_bundle

    return run_run_bundle(bundle, _one_of(device, RUN_DEVICES), planted, runs, timed, json, timeout)


def bench(
    context: typer.Context,
    out: Annotated[str, typer.Argument(help="Python file with the translation, or a folder of `tune -o`.")],
    target: Targets,
    launches: GivenLaunches,
    kernel: Kernels = None,
    id: LaunchId = None,
    source: GivenSource = None,
    samples: Annotated[int, typer.Option("--samples", min=1, metavar="N", help="Timed launches of each kernel.")] = 100,
    json: Json = None,
    import_hosts: Import = False,
    timeout: Timeout = 120.0,
) -> int:
    """Time source and translation on the AMD GPU of this machine."""
    from gluonize.product.cli.running.bench import run_bench
    from gluonize.product.cli.running.bundle import DeviceOptions

    options = DeviceOptions(
        out, given_targets(target), launches, tuple(kernel or ()), id, source, timeout, import_hosts
    )
    return run_bench(options, samples, json, context.obj)
