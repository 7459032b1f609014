"""`gluonize bundle`: one launch of a translation as a file that a machine with a GPU can run."""

from __future__ import annotations

import argparse

from rules.targets import parse_targets
from translator.cli import exit_status
from translator.cli.console import Verbosity, rich_console
from translator.cli.inputs import check_source, is_path, resolve_source, select_launches, source_folders
from translator.cli.output_file import check_destination, write_bytes
from translator.diagnostics import Diagnostic, TranslationError


class DeviceParser(argparse.ArgumentParser):
    """Refuses a bad command line like every other bad input."""

    def error(self, message: str):
        raise TranslationError(Diagnostic("usage", f"{self.prog}: {message}", help=self.format_usage().strip()))


def device_parser(name: str, what: str) -> DeviceParser:
    """The options that say which launch of which translation is meant."""
    parser = DeviceParser(prog=f"gluonize {name}", description=what)
    parser.add_argument("out", help="Python file with the translation")
    parser.add_argument("-t", "--target", required=True, help="architecture such as gfx950")
    parser.add_argument("-l", "--launches", required=True, metavar="FILE", help="launch specs (JSON) with values")
    parser.add_argument("-k", "--kernel", action="append", default=[], metavar="NAME", help="the kernel")
    parser.add_argument("--id", help="the launch, where a kernel has several")
    parser.add_argument("--source", metavar="FILE", help="the Triton source; else what the launch names")
    parser.add_argument("--timeout", type=float, default=120.0, metavar="SECONDS", help="limit for one compiler job")
    parser.add_argument("--import", dest="import_hosts", action="store_true", help="really import the source's modules")
    return parser


def chosen_specs(a: argparse.Namespace, source: str) -> list:
    """The launches meant by the options, checked. Raises: TranslationError."""
    check_source(a.out)
    specs = [s for s in select_launches(a.launches, source, tuple(a.kernel)) if not a.id or s.id == a.id]
    if not specs:
        raise TranslationError(Diagnostic("spec-missing", f"no launch has the id {a.id}", a.launches))
    return specs


def source_of(spec, a: argparse.Namespace) -> str:
    """The Triton source of a launch. Raises: TranslationError `spec-missing`."""
    source = a.source or resolve_source(spec, a.launches)
    if not source:
        raise TranslationError(
            Diagnostic("spec-missing", f"{spec.id} names no source", a.launches, help="give --source FILE")
        )
    if is_path(source):
        check_source(source)
    return source


def run_bundle_command(arguments: list[str], verbosity: Verbosity) -> int:
    """Write the bundle; says what could not go in."""
    parser = device_parser("bundle", __doc__)
    parser.add_argument("-o", "--output", required=True, metavar="FILE", help="the bundle (*.zip)")
    parser.add_argument("--device", choices=("both", "hip", "cuda"), default="both", help="which code objects go in")
    parser.add_argument("--planted", action="store_true", help="also copies with planted synchronisation bugs (CUDA)")
    a = parser.parse_args(arguments)
    rows = parse_targets(a.target)
    if len(rows) != 1:
        raise TranslationError(Diagnostic("usage", "a bundle is for one target"))
    check_destination(a.output)
    specs = chosen_specs(a, a.source or a.out)
    if len(specs) != 1:
        listed = ", ".join(spec.id for spec in specs)
        raise TranslationError(
            Diagnostic("usage", "a bundle holds one launch", why=f"these are meant: {listed}", help="give --id")
        )
    built = build(specs[0], a, rows[0].name, a.device, a.planted)
    write_bytes(a.output, built.content)
    if not verbosity.quiet:
        console = rich_console(verbosity)
        console.print(f"{a.output}: {len(built.content)} bytes, {', '.join(built.codes)}", markup=False)
        for note in built.notes:
            console.print(f"  not in it: {note}", markup=False)
    return exit_status.DONE


def build(spec, a: argparse.Namespace, target: str, device: str, planted: bool = False):
    """The bundle of one launch. Raises: TranslationError."""
    from translator.device.build import BundleRequest, build_bundle
    from translator.lowering.worker import WorkerPool

    source = source_of(spec, a)
    folders = source_folders(source)
    with WorkerPool(1, timeout=a.timeout) as pool:
        return build_bundle(pool, BundleRequest(source, a.out, spec, target, device, planted, folders, a.import_hosts))
