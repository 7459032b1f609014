"""Options and arguments that several commands share, with what completes them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Annotated, Optional

import typer
from gluonize.product.cli.formats import DESCRIBED, FORMATS

# The parts of `translate --help`; other commands have the same options under the same names.
_RESULTS = "Results"
_LAUNCHES = "Launches"
_WRITING = "How it is written"
_CHECKS = "Checks"
_GLUON = "Kernels that are Gluon already"
_RUNNING = "How it runs"

TARGET_HELP = "Architecture such as gfx950; several separated by commas, or all; may be repeated."


def complete_target(incomplete: str) -> list[str]:
    """Names for `-t` while it is typed: the last of several that are separated by commas."""
    from gluonize.rules.targets import TARGETS

    before, comma, last = incomplete.rpartition(",")
    names = [*TARGETS, *(() if comma else ("all",))]
    return [f"{before}{comma}{name}" for name in names if name.startswith(last) and name not in before.split(",")]


def complete_word(*words: str) -> Callable[[str], list[str]]:
    """What completes an option that takes one of `words`."""
    return lambda incomplete: [word for word in words if word.startswith(incomplete)]


def complete_one_target(incomplete: str) -> list[str]:
    """Names for a `-t` that takes one."""
    return [name for name in complete_target(incomplete) if name != "all" and "," not in name]


def complete_strategy(incomplete: str) -> list[str]:
    """Names for `--strategy`."""
    from gluonize.loops.plan.strategies import STRATEGIES

    return [name for name in STRATEGIES if name.startswith(incomplete)]


_SEVERAL_TARGETS = typer.Option("-t", "--target", metavar="TARGET", help=TARGET_HELP, autocompletion=complete_target)
Targets = Annotated[list[str], _SEVERAL_TARGETS]
TargetsOrNone = Annotated[Optional[list[str]], _SEVERAL_TARGETS]
Kernels = Annotated[
    Optional[list[str]],
    typer.Option(
        "-k", "--kernel", metavar="NAME", help="Only this kernel; may be repeated.", rich_help_panel=_LAUNCHES
    ),
]
Launches = Annotated[
    Optional[str],
    typer.Option(
        "-l",
        "--launches",
        metavar="FILE",
        help="Launch specs (JSON); derived from the source when left out.",
        rich_help_panel=_LAUNCHES,
    ),
]
Json = Annotated[
    Optional[str],
    typer.Option(
        "--json",
        metavar="[FILE]",
        help="Write results as JSON; to standard output without a FILE (*.json).",
        rich_help_panel=_RESULTS,
    ),
]
Jobs = Annotated[
    int,
    typer.Option(
        "-j",
        "--jobs",
        min=0,
        metavar="N",
        help="Child processes; 0 means one per available core.",
        rich_help_panel=_RUNNING,
    ),
]
Cluster = Annotated[
    Optional[str],
    typer.Option(
        "--cluster",
        metavar="ADDRESS",
        help="Run jobs on the workers of a Dask scheduler, tcp://HOST:8786, or of local:N workers started for this command.",
        rich_help_panel=_RUNNING,
    ),
]
Format = Annotated[
    str,
    typer.Option(
        "--format",
        metavar="FORMAT",
        help=f"{', '.join(DESCRIBED[:-1])} or {DESCRIBED[-1]}; what is not text goes to standard output.",
        autocompletion=complete_word(*FORMATS),
        rich_help_panel=_RESULTS,
    ),
]
GivenLaunches = Annotated[
    str,
    typer.Option(
        "-l", "--launches", metavar="FILE", help="Launch specs (JSON); translate --write-launches FILE writes them."
    ),
]
Source = Annotated[str, typer.Argument(help="The Triton source: a file or a module.")]
ReviewedFile = Annotated[
    Optional[str],
    typer.Argument(help="Its translation; left out: NAME_TARGET.py beside the source, or translated on the spot."),
]
_ONE_TARGET = typer.Option(
    "-t", "--target", metavar="TARGET", help="Architecture such as gfx950.", autocompletion=complete_one_target
)
OneTarget = Annotated[str, _ONE_TARGET]
OneTargetOrNone = Annotated[Optional[str], _ONE_TARGET]
GeneratedFiles = Annotated[
    Optional[list[str]],
    typer.Argument(help="Generated files, or files they are made from; all of the project when left out."),
]
Validate = Annotated[
    bool,
    typer.Option(
        "--validate/--no-validate", help="Run source and translation on the CPU and compare.", rich_help_panel=_CHECKS
    ),
]
Compile = Annotated[
    bool,
    typer.Option(
        "--compile/--no-compile",
        help="Compile what was written (what rules propose is confirmed by compiles all the same).",
        rich_help_panel=_CHECKS,
    ),
]
Timeout = Annotated[
    float,
    typer.Option(
        "--timeout", metavar="SECONDS", help="Limit for one compiler job, in CPU time.", rich_help_panel=_CHECKS
    ),
]
Import = Annotated[
    bool,
    typer.Option(
        "--import",
        help="Really import modules whose constants cannot be evaluated statically.",
        rich_help_panel=_LAUNCHES,
    ),
]
Assignments = Annotated[
    Optional[list[str]],
    typer.Option(
        "--set",
        metavar="NAME=VALUE",
        help="A type or value for launches that are guessed; KERNEL.NAME=VALUE for one kernel; repeatable.",
        rich_help_panel=_LAUNCHES,
    ),
]
Strict = Annotated[
    bool,
    typer.Option(
        "--strict",
        help="Guess no launches: ask for every value that the source does not say.",
        rich_help_panel=_LAUNCHES,
    ),
]
AllConfigs = Annotated[
    bool,
    typer.Option("--all-configs", help="Of a large autotune list too, every configuration.", rich_help_panel=_LAUNCHES),
]
CompareWithTriton = Annotated[
    bool,
    typer.Option(
        "--parity/--no-parity", help="Compare with Triton's own compile of the source.", rich_help_panel=_CHECKS
    ),
]
WrittenFor = Annotated[
    Optional[str],
    typer.Option(
        "--from",
        metavar="GPU",
        help="What kernels that are Gluon already are written for: sm_90, sm_100, gfx950, ...",
        rich_help_panel=_GLUON,
    ),
]
CapturedFrom = Annotated[
    Optional[str],
    typer.Option(
        "--from",
        metavar="GPU",
        help="What Gluon kernels are written for, and the GPU that the program is told of without one: sm_90, gfx950, ...",
    ),
]
KeepStructure = Annotated[
    bool,
    typer.Option(
        "--keep-structure",
        help="Of kernels for NVIDIA GPUs, op by op: copies, barriers and partitions stay, where the target has them.",
        rich_help_panel=_GLUON,
    ),
]
EmitStage = Annotated[
    Optional[str],
    typer.Option(
        "--emit",
        metavar="STAGE",
        help="lifted: write the Triton kernel that a kernel which is Gluon already computes.",
        rich_help_panel=_GLUON,
    ),
]
General = Annotated[
    bool,
    typer.Option(
        "--general/--exact",
        help="Write layouts as formulas, for other tile sizes and numbers of warps than those of the launches; or, as without either,"
        " for these alone, with the numbers written out.",
        rich_help_panel=_WRITING,
    ),
]
WriteLaunches = Annotated[
    Optional[str],
    typer.Option(
        "--write-launches",
        metavar="FILE",
        help="Write the launches that were guessed there, to be edited.",
        rich_help_panel=_RESULTS,
    ),
]
Force = Annotated[
    bool,
    typer.Option(
        "--force",
        help="Replace output files that gluonize did not write, or that were edited by hand.",
        rich_help_panel=_RESULTS,
    ),
]
Out = Annotated[
    Optional[str],
    typer.Option("-o", "--out", metavar="FILE", help="Output file (one target).", rich_help_panel=_RESULTS),
]
OutDir = Annotated[
    Optional[str],
    typer.Option(
        "--out-dir", metavar="DIR", help="Folder for outputs; beside the source if left out.", rich_help_panel=_RESULTS
    ),
]
KeepGoing = Annotated[
    bool,
    typer.Option(
        "--keep-going", help="Translate the other kernels and targets when one is refused.", rich_help_panel=_RUNNING
    ),
]
Fallback = Annotated[
    Optional[str],
    typer.Option(
        "--fallback",
        metavar="general|raise",
        help="general: also emit an assumption-free kernel and a launcher that picks. raise: what is refused is raised from Triton's compile.",
        rich_help_panel=_WRITING,
    ),
]
NumBuffers = Annotated[
    Optional[int],
    typer.Option(
        "--num-buffers", min=1, metavar="N", help="LDS buffers of a pipelined loop.", rich_help_panel=_WRITING
    ),
]
Strategy = Annotated[
    Optional[str],
    typer.Option(
        "--strategy",
        metavar="NAME",
        help="How to pipeline; chosen when left out.",
        autocompletion=complete_strategy,
        rich_help_panel=_WRITING,
    ),
]
Optimize = Annotated[
    str,
    typer.Option(
        "--optimize",
        metavar="LEVEL",
        help="parity (rules, and what a compile confirms), rules (alone), aggressive or search.",
        autocompletion=complete_word("parity", "rules", "aggressive", "search"),
        rich_help_panel=_WRITING,
    ),
]
Choose = Annotated[
    Optional[list[str]],
    typer.Option(
        "--choose",
        metavar="NAME=VALUE",
        help="Decide what is otherwise left to a default, such as depth=3; repeatable.",
        rich_help_panel=_WRITING,
    ),
]
NumCtas = Annotated[
    Optional[int],
    typer.Option(
        "--num-ctas",
        metavar="N",
        help="Workgroups of each program: a cluster, where the launch says nothing of it.",
        rich_help_panel=_WRITING,
    ),
]
Budget = Annotated[
    int,
    typer.Option(
        "--budget",
        min=1,
        metavar="TRIALS",
        help="Ways to write a kernel that --optimize search tries.",
        rich_help_panel=_WRITING,
    ),
]
Grid = Annotated[
    int,
    typer.Option(
        "--grid",
        min=0,
        metavar="PROGRAMS",
        help="Programs that --optimize has in mind; 0: as many as fill the GPU.",
        rich_help_panel=_WRITING,
    ),
]
Retile = Annotated[
    Optional[str],
    typer.Option(
        "--retile",
        metavar="FILE",
        help="Search tile sizes and warps of the launches too, and write the launches found there.",
        rich_help_panel=_LAUNCHES,
    ),
]
Rules = Annotated[
    Optional[list[str]],
    typer.Option(
        "--rules",
        metavar="PATH",
        help="TOML file, or folder of them, with more rewrite rows; repeatable.",
        rich_help_panel=_WRITING,
    ),
]


def given_targets(targets: list[str] | None) -> str:
    """What `-t a,b -t c` names, separated by commas. Raises: TranslationError `unknown-target` where there is none."""
    return ",".join(targets or ())
