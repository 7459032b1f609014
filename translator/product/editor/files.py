"""Which generated files have to do with a file that is open."""

from __future__ import annotations

import os
from dataclasses import dataclass

from gluonize.diagnostics import TranslationError, shown
from gluonize.product.project.cache.translation import source_file
from gluonize.product.project.digests import file_digest, launches_digest
from gluonize.product.project.files.config import find_config, read_config
from gluonize.product.project.files.planned import ProjectFile, concerned, discover, from_config, from_provenance
from gluonize.product.project.output.provenance import read_generated
from gluonize.read.files.source_names import source_name

Stamp = tuple[tuple[str, str | None], ...]  # (path, digest) of what a generated file is made from


@dataclass(frozen=True)
class Family:
    """The generated files that a file is about. own: the file itself is the generated one; made: it is their source, or another of
    their inputs."""

    own: ProjectFile | None = None
    made: tuple[ProjectFile, ...] = ()

    @property
    def files(self) -> tuple[ProjectFile, ...]:
        return (self.own,) if self.own else self.made


def family_of(path: str, folder: str, target: str, search: tuple[str, ...] = ()) -> Family:
    """Look in the configuration and under `folder`. target: of a source of which nothing was made yet, "" for none of it.

    search: see `ProjectFile`.
    """
    path = shown(path)
    asked = _asked(path)
    for file in asked:
        if os.path.realpath(file.output) == os.path.realpath(path):
            return Family(own=file)
    if (generated := read_generated(path)) is not None:
        return Family(own=from_provenance(generated, search))
    known = {os.path.realpath(file.output) for file in asked}
    files = (*asked, *(file for file in discover(folder, search) if os.path.realpath(file.output) not in known))
    made = concerned(files, [path])
    if not made and target and path.endswith(".py"):
        output = os.path.join(os.path.dirname(path), f"{source_name(path)}_{target}.py")
        made = (ProjectFile(output, path, target, None),)
    return Family(made=made)


def _asked(path: str) -> tuple[ProjectFile, ...]:
    """What the configuration above a file asks for; nothing while that is half written."""
    try:
        config = find_config(os.path.dirname(path) or os.curdir)
        return from_config(read_config(config)) if config else ()
    except (TranslationError, OSError):
        return ()


def stamp_of(file: ProjectFile) -> Stamp:
    """The digests of everything that a file's explanation depends on."""
    paths = [source_path(file) or file.source]
    if generated := read_generated(file.output):
        paths += file.used(generated.provenance)
    found = [(path, file_digest(path)) for path in paths]
    try:
        found.append(("launches", launches_digest(file.specs())))
    except TranslationError as error:
        found.append(("launches", str(error)))
    return (*found, ("options", f"{file.target} {' '.join(file.options)}"))


def source_path(file: ProjectFile) -> str | None:
    """The path of the source, which may be named as a module."""
    return source_file(file.source, ())
