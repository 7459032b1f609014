"""What one `gluonize translate` has to do: its requests, and where each output goes."""

from __future__ import annotations

import os
import re
from collections.abc import Sequence
from dataclasses import dataclass, replace

from gluonize.decide.choices.chosen import Choices, parse_choices
from gluonize.diagnostics import Diagnostic, TranslationError, did_you_mean
from gluonize.loops.plan.strategies import STRATEGIES
from gluonize.product.project.files.sources import find_sources
from gluonize.product.project.output.file import check_destination, launch_stems, make_folder
from gluonize.product.project.output.overwrite import check_json, check_new, check_translation
from gluonize.product.project.output.swapped import check_not_swapped
from gluonize.read.files.modules import parse_file
from gluonize.read.files.source_names import check_source, is_path, source_folders, source_name
from gluonize.read.kernels.gluon_kernels import check_source_target
from gluonize.read.spec.launch import LaunchSpec, RefusedLaunch, read_launches
from gluonize.read.spec.selected import select_launches, source_of_launch
from gluonize.read.text.style import style_of
from gluonize.request import BUDGET, LIFTED, TranslateRequest
from gluonize.rules.choices import CHOICES
from gluonize.rules.targets import Target, parse_targets

RAISE = "raise"  # the fallback: what is refused is raised from what Triton compiles


@dataclass(frozen=True)
class TranslateOptions:
    """The options of `gluonize translate`, as given. sources: folders, patterns or files in the place of one source.

    search: of `gluonize update`, see `ProjectFile`.
    """

    source: str | None
    target: str
    kernels: tuple[str, ...] = ()
    launches: str | None = None
    out: str | None = None
    out_dir: str | None = None
    json: str | None = None
    keep_going: bool = False
    jobs: int = 0
    timeout: float = 60.0
    import_hosts: bool = False
    assignments: tuple[str, ...] = ()
    fallback: str | None = None
    num_buffers: int | None = None
    strategy: str | None = None
    choose: tuple[str, ...] = ()
    optimize: str = "parity"
    budget: int = BUDGET
    grid: int = 0
    rules: tuple[str, ...] = ()
    validate: bool = True
    parity: bool = True
    compile: bool = True
    cache: bool = True
    strict: bool = False
    write_launches: str | None = None
    retile: str | None = None
    sources: tuple[str, ...] = ()
    all_configs: bool = False
    general: bool = False
    force: bool = False
    written_for: str | None = None
    emit: str | None = None
    keep_structure: bool = False
    format: str = "text"
    search: tuple[str, ...] = ()
    cluster: str | None = None


@dataclass(frozen=True)
class PlannedFile:
    """One output file: the request that makes its text, and its path. id: what a result without launches is called.
    several: it was found in a folder or by a pattern, beside others. output: "" for a launch with something wrong in it.
    """

    request: TranslateRequest
    output: str
    id: str
    several: bool = False

    @property
    def problems(self) -> tuple[Diagnostic, ...]:
        """What is wrong with the launch that it is for, before anything is read."""
        return (
            ()
            if self.output
            else tuple(d for s in self.request.launches if isinstance(s, RefusedLaunch) for d in s.problems)
        )


def plan_translation(options: TranslateOptions) -> tuple[PlannedFile, ...]:
    """The output files to make, in input order: sources, then launches, then targets.

    Raises: TranslationError for options that contradict each other, launch files and sources that cannot be read, and
    outputs that cannot be written; nothing has been started then.
    """
    targets = parse_targets(options.target)
    _check_choices(options, targets)
    if options.emit not in (None, LIFTED):
        raise _usage(f"--emit {options.emit}: no such stage", f"--emit {LIFTED}")
    if options.written_for:
        check_source_target(options.written_for)
    check_json(options.json)
    if options.retile and (
        options.optimize != "search" or not (options.source and options.launches) or len(targets) > 1
    ):
        help = "gluonize translate SOURCE -t TARGET -l FILE --optimize search --retile NEW_FILE"
        raise _usage("--retile searches tiles for the launches of one source on one target", help)
    for written in filter(None, (options.write_launches, options.retile)):
        check_destination(written)
        if not options.force:
            check_new(written)
    if options.sources:
        return _plan_files(options, targets)
    if options.source is None:
        return _plan_batch(options, targets)
    check_source(options.source)
    if not options.launches:  # with them a translation may be a source, for another target
        check_not_swapped(options.source, None, "gluonize translate")
    launches = ()
    if options.launches:
        launches = select_launches(options.launches, options.source, options.kernels, refused=options.keep_going)
    paths = _output_paths(options, targets)
    return tuple(
        PlannedFile(
            _request(options, options.source, row, options.kernels, launches, paths[row.name]),
            paths[row.name],
            source_name(options.source),
        )
        for row in targets
    )


def _plan_files(options: TranslateOptions, targets: tuple[Target, ...]) -> tuple[PlannedFile, ...]:
    """One output per file and target, in the folders that the sources are in, or the same folders in `--out-dir`."""
    if options.out:
        raise _usage("-o names one file, but there may be many sources", "give --out-dir instead")
    files, without = find_sources(options.sources)
    if not files:
        message = f"none of {without} Python files has a kernel"
        raise TranslationError(Diagnostic("source-no-kernels", message, " ".join(options.sources)))
    every = read_launches(options.launches, each=True) if options.launches else []
    homeless = [spec for spec in every if not spec.source and isinstance(spec, RefusedLaunch)]
    out = [_refused(options, spec, row) for spec in homeless for row in targets]
    for file in files:
        text = parse_file(file.path).text if file.path in options.sources else _text_of(file.path)
        kernels = tuple(name for name in options.kernels if _binds(text, name.rpartition(".")[2]))
        if options.kernels and not kernels:
            continue
        # What is set is for kernels and arguments that other files may have.
        own_words = [
            a for a in options.assignments if all(part in text for part in a.partition("=")[0].strip().split("."))
        ]
        mine = replace(options, assignments=tuple(own_words))
        own = os.path.join(options.out_dir, file.inside) if options.out_dir is not None else os.path.dirname(file.path)
        folder = os.path.normpath(own or os.curdir)
        make_folder(folder)
        launches = tuple(
            spec
            for spec in every
            if source_of_launch(spec, options.launches or "") == os.path.abspath(file.path)
            and (not options.kernels or spec.kernel in options.kernels)
        )
        for row in targets:
            path = os.path.join(folder, f"{source_name(file.path)}_{row.name}.py")
            check_destination(path)
            request = _request(mine, file.path, row, kernels, launches, path)
            out.append(PlannedFile(request, path, os.path.normpath(file.path), several=True))
    if len(out) == len(homeless) * len(targets):
        message = f"none of the files has a kernel named {' or '.join(options.kernels)}"
        names = re.findall(r"^\s*def (\w+)", "".join(_text_of(file.path) for file in files), re.MULTILINE)
        help = did_you_mean(options.kernels[0].rpartition(".")[2], names)
        raise TranslationError(Diagnostic("kernel-missing", message, " ".join(options.sources), help=help))
    _check_apart(out)
    return tuple(out)


def _binds(text: str, name: str) -> bool:
    """Whether a file defines a function of this name, or gives it a value; that it mentions it is not enough."""
    return bool(re.search(rf"\bdef {re.escape(name)}\b|\b{re.escape(name)}\s*=(?!=)", text))


def _check_apart(planned: Sequence[PlannedFile]) -> None:
    """Raises: TranslationError where two sources would be written to one file."""
    sources: dict[str, str] = {}
    for file in planned:
        other = sources.setdefault(file.output, file.request.source)
        if file.output and other != file.request.source:
            message = f"{other} and {file.request.source} would both be written to {file.output}"
            raise _usage(message, "give the folder that both are in, whose subfolders --out-dir then has too")


def _text_of(path: str) -> str:
    """A file found in a folder; one that is no text is refused when it is translated."""
    with open(path, encoding="utf-8", errors="replace") as file:
        return file.read()


def _plan_batch(options: TranslateOptions, targets: tuple[Target, ...]) -> tuple[PlannedFile, ...]:
    if not options.launches:
        raise _usage("no SOURCE given", "name a file or a module, or give --launches whose launches name their source")
    if options.out:
        raise _usage("-o names one file, batch mode writes many", "give --out-dir instead")
    if not options.out_dir:
        raise _usage("batch mode needs a folder for its outputs", "give --out-dir DIR")
    chosen = _batch_launches(options, options.launches)
    make_folder(options.out_dir)
    stems = launch_stems(spec.id for spec in chosen)
    plan = []
    for spec in chosen:
        if isinstance(spec, RefusedLaunch):
            plan += [_refused(options, spec, row) for row in targets]
            continue
        source = source_of_launch(spec, options.launches)
        for row in targets:
            path = os.path.join(options.out_dir, f"{stems[spec.id]}_{row.name}.py")
            if not options.force:
                check_translation(path, source)
            request = _request(options, source, row, (spec.kernel,), (spec,), path)
            plan.append(PlannedFile(replace(request, standalone=True), path, spec.id))
    return tuple(plan)


def _batch_launches(options: TranslateOptions, file: str) -> list[LaunchSpec]:
    """The launches of batch mode: refused ones too, unless none is left. Raises: TranslationError when there are none."""
    every = read_launches(file, each=True)
    chosen = [s for s in every if not options.kernels or not s.kernel or s.kernel in options.kernels]
    if not chosen:
        raise TranslationError(Diagnostic("spec-missing", f"no launch for {', '.join(options.kernels)}", file))
    if not any(spec.source for spec in chosen if not isinstance(spec, RefusedLaunch)):
        if wrong := [problem for spec in chosen if isinstance(spec, RefusedLaunch) for problem in spec.problems]:
            raise TranslationError(*wrong)
        why = "without SOURCE every launch has to name its own, and none does"
        raise TranslationError(Diagnostic("spec-missing", "launches without a source", file, why=why))
    return [_with_home(spec, file) for spec in chosen]


def _with_home(spec: LaunchSpec, file: str) -> LaunchSpec:
    """A launch of batch mode: refused when it does not name its source."""
    if spec.source or isinstance(spec, RefusedLaunch):
        return spec
    why = "without SOURCE every launch has to name its own"
    problem = Diagnostic("spec-missing", f"launch {spec.id}: it names no source", file, why=why)
    return RefusedLaunch(spec.id, spec.kernel, problems=(problem,))


def _refused(options: TranslateOptions, spec: RefusedLaunch, row: Target) -> PlannedFile:
    """What stands for a launch that cannot be translated, so that it is reported beside the others."""
    source = source_of_launch(spec, options.launches or "")
    return PlannedFile(TranslateRequest(source, row.name, (spec.kernel,), launches=(spec,)), "", spec.id)


def _request(
    options: TranslateOptions, source: str, row: Target, kernels: tuple, launches: tuple, output: str
) -> TranslateRequest:
    return TranslateRequest(
        source=source,
        target=row.name,
        kernels=kernels,
        # A relative name in a launch would be looked up again, in the working folder first.
        launches=tuple(replace(spec, source=source) for spec in launches),
        search_path=source_folders(source),
        assignments=assignments_of(options.assignments),
        import_hosts=options.import_hosts,
        fallback=None if options.fallback == RAISE else options.fallback,
        num_buffers=options.num_buffers,
        strategy=options.strategy,
        choices=choices_asked(options),
        optimize=options.optimize,
        budget=options.budget,
        grid=options.grid,
        keep_going=options.keep_going,
        rules=options.rules,
        strict=options.strict,
        all_configs=options.all_configs,
        general=options.general,
        style=style_of(source, output),
        written_for=options.written_for,
        emit=options.emit,
        keep_structure=options.keep_structure,
    )


def _output_paths(options: TranslateOptions, targets: tuple[Target, ...]) -> dict[str, str]:
    source = options.source or ""
    if options.out and options.out_dir is not None:
        raise _usage("both -o and --out-dir are given", "give one of them")
    if options.out and len(targets) > 1:
        names = ", ".join(row.name for row in targets)
        raise _usage(f"-o names one file, but there are {len(targets)} targets ({names})", "give --out-dir instead")
    # A module may lie in site-packages, which is no place for outputs.
    beside = os.path.dirname(source) if is_path(source) else ""
    folder = options.out_dir if options.out_dir is not None else os.path.dirname(options.out) if options.out else beside
    make_folder(folder or os.curdir)
    paths = {row.name: options.out or os.path.join(folder, f"{source_name(source)}_{row.name}.py") for row in targets}
    for path in paths.values():
        if is_path(source) and os.path.realpath(path) == os.path.realpath(source):
            raise _usage(f"the output {path} is the source itself", "choose another name with -o")
        check_destination(path)
        if not options.force:
            check_translation(path, source)
    return paths


def assignments_of(given: tuple[str, ...]) -> tuple[tuple[str, str], ...]:
    pairs = [text.partition("=") for text in given]
    for text, (name, equals, _) in zip(given, pairs):
        if not equals or not name.strip():
            raise _usage(f"--set {text}: expected NAME=VALUE", "for example --set BLOCK_SIZE=1024 or --set x_ptr=*fp16")
    return tuple((name.strip(), value.strip()) for name, _, value in pairs)


def choices_asked(options: TranslateOptions) -> Choices:
    """What `--choose` asks for. Raises: TranslationError for names and values that there are not."""
    try:
        asked = parse_choices(options.choose)
        given = dict(asked.overrides)
        if options.strategy == "ping-pong" and "warp-groups" in given:
            raise ValueError("warp-groups is what --strategy ping-pong decides")
        if options.num_buffers is not None and "depth" in given:
            raise ValueError("depth is what --num-buffers decides")
        if options.strategy == "ping-pong":
            asked.replacing(warp_groups="alternating")
    except ValueError as error:
        name = next((word for word in options.choose if "=" not in word), "")
        values = next((list(c.values) for c in CHOICES if c.name == name), [])
        such = f"--choose {name}={values[-1]}, or another of {', '.join(values)}; " if values else ""
        help = f"{such}see docs/reference/choices.md, or leave it out"
        raise _usage(f"--choose {error}", help) from None
    return asked


def _check_choices(options: TranslateOptions, targets: tuple[Target, ...]) -> None:
    choices_asked(options)
    if options.optimize not in ("parity", "rules", "aggressive", "search"):
        raise _usage(f"--optimize {options.optimize}: no such level", "parity, rules, aggressive or search")
    if options.strategy is not None:
        if options.strategy not in STRATEGIES:
            raise _usage(f"--strategy {options.strategy}: no such strategy", " or ".join(STRATEGIES))
        strategy = STRATEGIES[options.strategy]
        for target in targets:
            if not strategy.serves(target):
                help = f"leave it out for {target.name}: its loops are pipelined"
                raise _usage(f"--strategy {strategy.name} needs {strategy.needs}, which {target.name} lacks", help)
    if options.num_buffers is not None and not 1 <= options.num_buffers <= 16:
        raise _usage(f"--num-buffers {options.num_buffers}: out of range", "a number of LDS buffers from 1 to 16")
    _check_kept(options)
    if options.fallback not in (None, "general", RAISE):
        raise _usage(f"--fallback {options.fallback}: no such fallback", f"there are general and {RAISE}")


def _check_kept(options: TranslateOptions) -> None:
    """Raises: TranslationError where something else is asked for than the structure that is to be kept."""
    if not options.keep_structure:
        return
    lifted = options.general or options.fallback or options.emit or options.strategy or options.num_buffers
    if lifted or options.optimize not in ("parity", "rules") or options.choose:
        message = "--keep-structure: nothing is lifted, and what is pipelined and how is the author's"
        raise _usage(message, "leave the other options out, or --keep-structure")


def _usage(message: str, help: str) -> TranslationError:
    return TranslationError(Diagnostic("usage", message, help=help))
