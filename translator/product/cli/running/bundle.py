"""`gluonize bundle`: one launch of a translation as a file that a machine with a GPU can run."""

from __future__ import annotations

from dataclasses import dataclass

from gluonize.diagnostics import Diagnostic, TranslationError, did_you_mean
from gluonize.product.cli import exit_status
from gluonize.product.cli.console import Verbosity, rich_console
from gluonize.product.project.output.file import check_destination, write_bytes
from gluonize.product.project.output.overwrite import check_result, is_bundle
from gluonize.read.files.source_names import check_source, is_path, source_folders
from gluonize.read.spec.selected import select_launches, source_of_launch
from gluonize.rules.targets import parse_targets


@dataclass(frozen=True)
class DeviceOptions:
    """Which launch of which translation is meant. out: its file. id: of the launch. source: None for what the launch
    names. timeout: seconds of CPU time for one compiler job."""

    out: str
    target: str
    launches: str
    kernels: tuple[str, ...] = ()
    id: str | None = None
    source: str | None = None
    timeout: float = 120.0
    import_hosts: bool = False


def chosen_specs(a: DeviceOptions, source: str) -> list:
    """The launches meant by the options, checked. Raises: TranslationError."""
    check_source(a.out)
    specs = [s for s in select_launches(a.launches, source, a.kernels) if not a.id or s.id == a.id]
    if not specs:
        known = [s.id for s in select_launches(a.launches, source, a.kernels)]
        help = did_you_mean(a.id or "", known, f"there are {', '.join(known)}")
        raise TranslationError(Diagnostic("spec-missing", f"no launch has the id {a.id}", a.launches, help=help))
    return specs


def source_of(spec, a: DeviceOptions) -> str:
    """The Triton source of a launch. Raises: TranslationError `spec-missing`."""
    source = a.source or source_of_launch(spec, a.launches)
    if not source:
        raise TranslationError(
            Diagnostic("spec-missing", f"{spec.id} names no source", a.launches, help="give --source FILE")
        )
    if is_path(source):
        check_source(source)
    return source


def run_bundle_command(a: DeviceOptions, output: str, device: str, planted: bool, verbosity: Verbosity) -> int:
    """Write the bundle to `output`; says what could not go in. device: both, hip or cuda."""
    rows = parse_targets(a.target)
    if len(rows) != 1:
        raise TranslationError(Diagnostic("usage", "a bundle is for one target"))
    check_destination(output)
    check_result(output, (a.out, a.source, a.launches), is_bundle)
    specs = chosen_specs(a, a.source or a.out)
    if len(specs) != 1:
        listed = ", ".join(spec.id for spec in specs)
        raise TranslationError(
            Diagnostic("usage", "a bundle holds one launch", why=f"these are meant: {listed}", help="give --id")
        )
    built = build(specs[0], a, rows[0].name, device, planted)
    write_bytes(output, built.content)
    if not verbosity.quiet:
        console = rich_console(verbosity)
        console.print(f"{output}: {len(built.content)} bytes, {', '.join(built.codes)}", markup=False)
        for note in built.notes:
            console.print(f"  not in it: {note}", markup=False)
    return exit_status.DONE


def build(spec, a: DeviceOptions, target: str, device: str, planted: bool = False):
    """The bundle of one launch. Raises: TranslationError."""
    from gluonize.judge.device.bundles.build import BundleRequest, build_bundle
    from gluonize.judge.lower.children.worker import WorkerPool

    source = source_of(spec, a)
    folders = source_folders(source)
    with WorkerPool(1, timeout=a.timeout) as pool:
        return build_bundle(pool, BundleRequest(source, a.out, spec, target, device, planted, folders, a.import_hosts))
