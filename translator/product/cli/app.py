"""All commands, in the order of `--help`, and the options of the program itself.

The commands and their options are in the `*_app` modules; bodies import what they need when they run, so that `--help`
stays fast.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Optional

import typer

from gluonize import __version__
from gluonize.product.cli.apps.cache import cache
from gluonize.product.cli.apps.compile import compile_, cycles, parity, tune
from gluonize.product.cli.apps.device import bench, bundle, capture, prove, run_bundle, validate
from gluonize.product.cli.apps.doctor import doctor
from gluonize.product.cli.apps.editor import lsp
from gluonize.product.cli.apps.project import check, update, watch
from gluonize.product.cli.apps.raised import raise_
from gluonize.product.cli.apps.review import diff, explain, layout, report, targets
from gluonize.product.cli.apps.translate import translate
from gluonize.product.cli.console import Verbosity
from gluonize.product.cli.options import complete_word

_program = dict(
    help="Translate Triton kernels into explicit Gluon for one AMD architecture, compile them and compare them.",
    epilog="Exit status: 0 done, 1 a check failed, 2 refused or bad input, 3 a bug in gluonize, 130 interrupted.",
    rich_markup_mode="rich",
    pretty_exceptions_enable=False,
    no_args_is_help=True,
    context_settings={"help_option_names": ["-h", "--help"]},
)


def _print_version(wanted: bool) -> None:
    if wanted:
        from gluonize.versions import triton_version

        print(f"gluonize {__version__} (Triton {triton_version()})")
        raise typer.Exit()


def _elsewhere(python: Optional[str]) -> None:
    if python is not None:
        import sys

        from gluonize.product.cli.other_triton import run_elsewhere

        run_elsewhere(python, sys.argv[1:])


def global_options(
    context: typer.Context,
    verbose: Annotated[bool, typer.Option("-v", "--verbose", help="Print every choice and full tables.")] = False,
    quiet: Annotated[bool, typer.Option("-q", "--quiet", help="Print diagnostics only.")] = False,
    color: Annotated[
        str,
        typer.Option(
            "--color",
            metavar="WHEN",
            help="auto, always or never.",
            autocompletion=complete_word("auto", "always", "never"),
        ),
    ] = "auto",
    memory_limit: Annotated[
        Optional[str],
        typer.Option(
            "--memory-limit",
            metavar="SIZE",
            help="Memory of each child process, such as 4GB, on workers too; else GLUONIZE_MEMORY_LIMIT, else no limit.",
        ),
    ] = None,
    for_triton: Annotated[
        Optional[str],
        typer.Option(
            "--for-triton",
            metavar="VERSION",
            help="The Triton that outputs are for, such as 3.8; else the installed one.",
        ),
    ] = None,
    triton_python: Annotated[
        Optional[str],
        typer.Option(
            "--triton-python",
            metavar="PYTHON",
            help="Run with the Triton that this Python has, and check with it.",
            is_eager=True,
            callback=_elsewhere,
        ),
    ] = None,
    version: Annotated[
        bool, typer.Option("--version", help="Print version numbers and leave.", is_eager=True, callback=_print_version)
    ] = False,
) -> None:
    if color not in ("auto", "always", "never"):
        raise typer.BadParameter("auto, always or never", param_hint="--color")
    if memory_limit is not None:
        from gluonize.judge.lower.children.memory_limit import limit_children

        limit_children(memory_limit)
    if for_triton is not None:
        from gluonize.product.cli.other_triton import check_release

        check_release(for_triton)
    context.obj = Verbosity(verbose, quiet, color)
    if verbose:
        from gluonize.product.cli.logs import log_to_stderr

        log_to_stderr()


# The parts of `gluonize --help`, with their commands in order.
_PANELS = {
    "Translate": (translate, raise_, capture),
    "Keep files current": (check, update, watch),
    "Look at a translation": (diff, report, explain, layout, lsp),
    "Judge a translation": (validate, prove, parity, compile_, cycles, tune),
    "On a machine with the GPU": (bundle, run_bundle, bench),
    "What there is": (targets, doctor, cache),
}
_COMMANDS = {
    command.__name__.strip("_").replace("_", "-"): (command, panel)
    for panel, commands in _PANELS.items()
    for command in commands
}


def app_for(argv: Sequence[str]) -> typer.Typer:
    """The command line. Where `argv` starts with the name of a command it has no other: to make them all takes longer than what a
    quick one does."""
    app = typer.Typer(**_program)
    app.callback()(global_options)
    asked = argv[0] if argv else ""
    for name, (command, panel) in _COMMANDS.items():
        if name == asked or asked not in _COMMANDS:
            app.command(name, rich_help_panel=panel)(command)
    return app
