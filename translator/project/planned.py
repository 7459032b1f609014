"""The generated files of a project: those the configuration asks for, or those that are there."""

from __future__ import annotations

import glob
import os
import subprocess
from collections.abc import Iterable
from dataclasses import dataclass, replace

from translator.diagnostics import Diagnostic, TranslationError
from translator.project.config import Config, Entry
from translator.project.provenance import DERIVED, MARK, GeneratedFile, Provenance, located, read_generated, relative
from translator.project.translation import with_options
from translator.request import TranslateRequest
from translator.source.code_style import CodeStyle, style_of
from translator.source.launch_spec import LaunchSpec, read_launches
from translator.source.selected_launches import select_launches
from translator.source.source_names import is_path, source_folders, source_name


@dataclass(frozen=True)
class ProjectFile:
    """One output and how it is made. Paths can be opened from the working folder.

    source: path or module. launches: path of the launch file, None when they are derived. launch: id of the one launch
    of a batch output. options: arguments of `gluonize translate` as a provenance line has them (paths relative to the
    output). edits: whether hand edits are `allow`ed or `refuse`d. asked: by a configuration.
    """

    output: str
    source: str
    target: str
    launches: str | None
    launch: str = ""
    options: tuple[str, ...] = ()
    edits: str = "refuse"
    asked: bool = False

    def specs(self) -> tuple[LaunchSpec, ...]:
        """Its launches. Raises: TranslationError when the file has none for this source."""
        if self.launches is None:
            return ()
        if self.launch:
            found = tuple(spec for spec in read_launches(self.launches) if spec.id == self.launch)
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
            request = with_options(request, self.options, self.output)
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
        return relative(self.source, self.output) if is_path(self.source) else self.source

    def launches_label(self) -> str:
        return relative(self.launches, self.output) if self.launches else DERIVED


def from_provenance(file: GeneratedFile) -> ProjectFile:
    """How a generated file says that it was made."""
    found: Provenance = file.provenance
    source = located(found.source, file.path) if found.source.endswith(".py") or "/" in found.source else found.source
    launches = None if found.launches == DERIVED else located(found.launches, file.path)
    return ProjectFile(file.path, source, found.target, launches, found.launch, found.options)


def from_config(config: Config) -> tuple[ProjectFile, ...]:
    """Every output that a configuration asks for. Raises: TranslationError for sources that do not exist, and clashes."""
    out: dict[str, ProjectFile] = {}
    for entry in config.entries:
        for source in _sources(config, entry):
            for target in entry.targets:
                file = _configured(config, entry, source, target)
                if file.output in out:
                    message = f"two entries make {file.output}"
                    raise TranslationError(Diagnostic("config-field", message, _shown(config.path), entry.line))
                out[file.output] = file
    return tuple(out.values())


def _configured(config: Config, entry: Entry, source: str, target: str) -> ProjectFile:
    folder = os.path.dirname(os.path.join(config.folder, source)) if is_path(source) else config.folder
    fields = {"folder": os.path.relpath(folder, config.folder), "name": source_name(source)}

    def path(pattern: str, **more: str) -> str:
        return _shown(os.path.join(config.folder, pattern.format(**fields, **more)))

    output = path(entry.output, target=target)
    source = _shown(os.path.join(config.folder, source)) if source.endswith(".py") else source
    options = [word for name in entry.kernels for word in ("-k", name)]
    for before, word in zip(("", *entry.options), entry.options):
        is_folder = before == "--rules"
        options.append(relative(os.path.join(config.folder, word), output) if is_folder else word)
    launches = path(entry.launches) if entry.launches else None
    return ProjectFile(output, source, target, launches, "", tuple(options), entry.edits, True)


def _sources(config: Config, entry: Entry) -> list[str]:
    """The sources of an entry, relative to the configuration; what gluonize generated itself is no source."""
    excluded = {
        path for pattern in entry.exclude for path in glob.glob(pattern, root_dir=config.folder, recursive=True)
    }
    found: dict[str, None] = {}
    for pattern in entry.sources:
        if not pattern.endswith(".py") and not glob.has_magic(pattern):  # a module
            found[pattern] = None
            continue
        paths = sorted(glob.glob(pattern, root_dir=config.folder, recursive=True))
        paths = [p for p in paths if p not in excluded and p.endswith(".py")]
        paths = [p for p in paths if not glob.has_magic(pattern) or not _is_generated(os.path.join(config.folder, p))]
        if not paths:
            message = f"sources: nothing matches {pattern!r}"
            raise TranslationError(Diagnostic("config-field", message, _shown(config.path), entry.line))
        found |= dict.fromkeys(paths)
    return list(found)


def _is_generated(path: str) -> bool:
    with open(path, "rb") as file:
        return b"\n# Generated by gluonize " in b"\n" + file.read()


def discover(folder: str = os.curdir) -> tuple[ProjectFile, ...]:
    """The files under `folder` that say they were generated: those git knows or would add, else all."""
    paths = _with_git(folder)
    if paths is None:
        paths = [
            os.path.join(root, name) for root, _, names in os.walk(folder) for name in names if name.endswith(".py")
        ]
    paths = [path for path in sorted(paths) if not path.endswith(".rejected.py")]  # what did not pass its checks
    files = [file for path in paths if (file := _generated(os.path.normpath(path)))]
    return tuple(map(from_provenance, files))


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
            inputs |= {os.path.realpath(located(path, file.output)) for path, _ in generated.provenance.uses}
        if inputs & given:
            out.append(file)
    return tuple(out)


def _shown(path: str) -> str:
    """A path as messages show it: relative when it is below the working folder."""
    path = os.path.normpath(path)
    inside = os.path.relpath(path)
    return path if inside.startswith(os.pardir) else inside
