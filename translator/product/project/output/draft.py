"""Where an output is checked before it is written: a temporary folder in which its relative imports mean what they will."""

from __future__ import annotations

import os

from gluonize.read.files.modules import find_module, full_search_path


def draft_path(folder: str, source: str, name: str, search_path: tuple[str, ...] = ()) -> str:
    """The path in `folder` for a draft called `name` of the translation of `source`, a file or the name of a module.

    A source inside a package gets a copy of its packages around it, made of links, so that `from .constants import N`
    finds what it finds beside the source.
    """
    if not os.path.isfile(source):
        module = find_module(source, full_search_path(search_path))
        source = module.path if module is not None else ""
    if not source:
        return os.path.join(folder, name)
    here = os.path.dirname(os.path.abspath(source))
    packages = []
    while os.path.isfile(os.path.join(here, "__init__.py")):
        packages.append(here)
        here = os.path.dirname(here)
    for package, inner in zip(reversed(packages), [*reversed(packages[:-1]), ""]):
        folder = os.path.join(folder, os.path.basename(package))
        os.mkdir(folder)
        for entry in sorted(os.listdir(package)):
            if os.path.join(package, entry) != inner and entry != name:
                os.symlink(os.path.join(package, entry), os.path.join(folder, entry))
    return os.path.join(folder, name)
