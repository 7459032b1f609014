"""The generated files of a project: those the configuration asks for, or those that are there."""

from __future__ import annotations

import glob
import os
import subprocess
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace

from gluonize.diagnostics import Diagnostic, TranslationError, shown
from gluonize.product.project.cache.translation import with_options
from gluonize.product.project.digests import file_digest, launches_digest
from gluonize.product.project.files.config import Config, Entry
from gluonize.product.project.files.sources import may_have_kernels, refuse_without_kernels
from gluonize.product.project.output.paths import is_located, located, named, not_located
from gluonize.product.project.output.provenance import DERIVED, MARK, GeneratedFile, Provenance, read_generated
from gluonize.read.files.generated import is_generated
from gluonize.read.files.near import near_file
from gluonize.read.files.source_names import is_path, source_folders, source_name
from gluonize.read.spec.launch import LaunchSpec, RefusedLaunch, read_launches
from gluonize.read.spec.selected import select_launches
from gluonize.read.text.style import CodeStyle, style_of
from gluonize.request import TranslateRequest


@dataclass(frozen=True)
class ProjectFile:
    """One output and how it is made. Paths can be opened from the working folder.

    source: path or module. launches: path of the launch file, None when they are derived. launch: id of the one launch
    of a batch output. options: arguments of `gluonize translate` as a provenance line has them. edits: whether
    hand edits are `allow`ed or `refuse`d. asked: by a configuration. search: folders in which files that the output names are looked
    for first. A source or launch file that was not found has the name that the output gives it.
    """

    output: str
    source: str
    target: str
    launches: str | None
    launch: str = ""
    options: tuple[str, ...] = ()
    edits: str = "refuse"
    asked: bool = False
    search: tuple[str, ...] = ()

    def specs(self) -> tuple[LaunchSpec, ...]:
        """Its launches. Raises: TranslationError when the file has none for this source, or something is wrong with one."""
        if self.launches is None:
            return ()
        if not is_located(self.launches):
            raise TranslationError(not_located(self.launches, self.output))
        if self.launch:
            found = tuple(spec for spec in read_launches(self.launches, each=True) if spec.id == self.launch)
            if wrong := [problem for spec in found if isinstance(spec, RefusedLaunch) for problem in spec.problems]:
                raise TranslationError(*wrong)
            if not found:
                raise TranslationError(Diagnostic("spec-missing", f"no launch {self.launch}", self.launches))
            return found
        kernels = tuple(value for word, value in zip(self.options, self.options[1:]) if word == "-k")
        return select_launches(self.launches, self.source, kernels)

    def request(self) -> TranslateRequest:
        """What `gluonize translate` would be asked. Raises: TranslationError for launches, options that are wrong."""
        specs = tuple(replace(spec, source=self.source) for spec in self.specs())
        request = TranslateRequest(
            self.source,
            self.target,
            launches=specs,
            search_path=source_folders(self.source),
            style=self.style,
        )
        try:
            request = with_options(request, self.options, self.output, self.search)
        except ValueError as error:
            found = Diagnostic("provenance", f"options that this gluonize does not know: {error}", self.output)
            raise TranslationError(found) from None
        if self.launch:
            request = replace(request, kernels=(specs[0].kernel,), standalone=True)
        return request

    @property
    def style(self) -> CodeStyle:
        """How its text is laid out."""
        return style_of(self.source, self.output)

    def source_label(self) -> str:
        """The source as a provenance line names it."""
        return self._label(self.source) if is_path(self.source) else self.source

    def launches_label(self) -> str:
        """Its launches as a provenance line names them."""
        return self._label(self.launches) if self.launches else DERIVED

    def used(self, was: Provenance) -> tuple[str, ...]:
        """The further files that a provenance names, in its order."""
        return tuple(located(name, self.output, self.search, _has_digest(digest)) for name, digest in was.uses)

    def _label(self, path: str) -> str:
        return named(path, self.output) if is_located(path) else path

    def is_source(self, was: Provenance) -> bool:
        """Whether its source is the one that a provenance names."""
        return was.source == self.source_label() or self._is_same(
            self.source, was.source, _has_digest(was.source_digest)
        )

    def is_launches(self, was: Provenance) -> bool:
        """Whether its launches are from the file that a provenance names."""
        label = self.launches_label()
        return (
            was.launches == label or DERIVED not in (label, was.launches) and self._is_same(self.launches, was.launches)
        )

    def _is_same(self, path: str, name: str, is_it: Callable[[str], bool] | None = None) -> bool:
        return os.path.realpath(located(name, self.output, self.search, is_it)) == os.path.realpath(path)


def from_provenance(file: GeneratedFile, search: tuple[str, ...] = ()) -> ProjectFile:
    """How a generated file says that it was made. search: see `ProjectFile`."""
    was: Provenance = file.provenance
    source = was.source
    if source.endswith(".py") or "/" in source:
        source = located(source, file.path, search, _has_digest(was.source_digest))
    made = ProjectFile(file.path, source, was.target, None, was.launch, was.options, search=search)
    if was.launches == DERIVED:
        return made

    def has_launches(path: str) -> bool:
        try:
            return launches_digest(replace(made, launches=path).specs()) == was.launches_digest
        except TranslationError:
            return False

    return replace(made, launches=located(was.launches, file.path, search, has_launches))


def _has_digest(digest: str) -> Callable[[str], bool]:
    return lambda path: file_digest(path) == digest


def from_config(config: Config) -> tuple[ProjectFile, ...]:
    """Every output that a configuration asks for. Raises: TranslationError for sources that do not exist, and clashes."""
    out: dict[str, ProjectFile] = {}
    for entry in config.entries:
        sources, globbed = _sources(config, entry)
        for source in sources:
            for target in entry.targets:
                file = _configured(config, entry, source, target)
                if source in globbed and not os.path.exists(file.output) and not _has_kernels(file):
                    continue
                if file.output in out:
                    message = f"two entries make {file.output}"
                    raise TranslationError(Diagnostic("config-field", message, shown(config.path), entry.line))
                out[file.output] = file
    return tuple(out.values())


def _configured(config: Config, entry: Entry, source: str, target: str) -> ProjectFile:
    folder = os.path.dirname(os.path.join(config.folder, source)) if is_path(source) else config.folder
    fields = {"folder": os.path.relpath(folder, config.folder), "name": source_name(source)}

    def path(pattern: str, **more: str) -> str:
        return shown(os.path.join(config.folder, pattern.format(**fields, **more)))

    output = path(entry.output, target=target)
    source = shown(os.path.join(config.folder, source)) if source.endswith(".py") else source
    options, search = [word for name in entry.kernels for word in ("-k", name)], []
    for before, word in zip(("", *entry.options), entry.options):
        if before == "--rules":
            rules = os.path.join(config.folder, word)
            search.append(os.path.dirname(os.path.abspath(rules)))
            word = named(rules, output)
        options.append(word)
    launches = path(entry.launches) if entry.launches else None
    return ProjectFile(output, source, target, launches, "", tuple(options), entry.edits, True, tuple(search))


def _has_kernels(file: ProjectFile) -> bool:
    """Whether a source that a pattern found has kernels to launch. One that cannot be read is refused later, with the reason."""
    if not may_have_kernels(file.source):
        return False
    try:
        refuse_without_kernels(file.source)
        if file.launches is None:
            from gluonize.read.launches.derivation import (
                launchable_kernels,
            )  # with Triton, which files that are there do not need

            launchable_kernels(file.source, source_folders(file.source))
    except TranslationError as error:
        return any(found.code != "source-no-kernels" for found in error.diagnostics)
    return True


def _sources(config: Config, entry: Entry) -> tuple[list[str], frozenset[str]]:
    """The sources of an entry, relative to the configuration, and those that a pattern found; what gluonize generated is no source."""
    excluded = {
        path for pattern in entry.exclude for path in glob.glob(pattern, root_dir=config.folder, recursive=True)
    }
    found: dict[str, None] = {}
    globbed: set[str] = set()
    for pattern in entry.sources:
        if not pattern.endswith(".py") and not glob.has_magic(pattern):  # a module
            found[pattern] = None
            continue
        paths = sorted(glob.glob(pattern, root_dir=config.folder, recursive=True))
        paths = [p for p in paths if p not in excluded and p.endswith(".py")]
        paths = [p for p in paths if not glob.has_magic(pattern) or not _is_generated(os.path.join(config.folder, p))]
        if not paths:
            message = f"sources: nothing matches {pattern!r}"
            where = shown(config.path)
            why, help = f"paths start at {shown(config.folder) or os.curdir}", near_file(
                os.path.join(config.folder, pattern)
            )
            raise TranslationError(Diagnostic("config-field", message, where, entry.line, why=why, help=help))
        found |= dict.fromkeys(paths)
        globbed |= set(paths) if glob.has_magic(pattern) else set()
    return list(found), frozenset(globbed)


def _is_generated(path: str) -> bool:
    with open(path, "rb") as file:
        return is_generated(file.read())


def discover(folder: str = os.curdir, search: tuple[str, ...] = ()) -> tuple[ProjectFile, ...]:
    """The files under `folder` that say they were generated: those git knows or would add, else all. search: see `ProjectFile`."""
    paths = _with_git(folder)
    if paths is None:
        paths = [
            os.path.join(root, name) for root, _, names in os.walk(folder) for name in names if name.endswith(".py")
        ]
    paths = [path for path in sorted(paths) if not path.endswith(".rejected.py")]  # what did not pass its checks
    files = [file for path in paths if (file := _generated(os.path.normpath(path)))]
    return tuple(from_provenance(file, search) for file in files)


def _generated(path: str) -> GeneratedFile | None:
    try:
        with open(path, "rb") as file:
            if MARK.encode() not in file.read():
                return None
    except OSError:
        return None
    return read_generated(path)


def _with_git(folder: str) -> list[str] | None:
    command = ["git", "-C", folder, "grep", "-lzI", "--untracked", f"^{MARK}'*source=", "--", "*.py"]
    try:
        done = subprocess.run(command, capture_output=True, check=False, timeout=60)
    except (OSError, subprocess.TimeoutExpired):
        return None
    if done.returncode > 1:
        return None
    return [os.path.join(folder, os.fsdecode(name)) for name in done.stdout.split(b"\0") if name]


def concerned(files: Iterable[ProjectFile], paths: Iterable[str]) -> tuple[ProjectFile, ...]:
    """The files that are among `paths`, or that are made from one of them (sources, launches, helpers)."""
    given = {os.path.realpath(path) for path in paths}
    out = []
    for file in files:
        inputs = {os.path.realpath(path) for path in (file.output, file.source, file.launches) if path}
        if generated := read_generated(file.output):
            inputs |= {os.path.realpath(path) for path in file.used(generated.provenance)}
        if inputs & given:
            out.append(file)
    return tuple(out)
