"""The generated text that hand edits started from: in the cache, in git, or made again from the old source."""

from __future__ import annotations

import os
import subprocess
import tempfile
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace

from gluonize.diagnostics import TranslationError
from gluonize.product.project.cache.results import ContentCache
from gluonize.product.project.cache.translation import base_key
from gluonize.product.project.digests import text_digest
from gluonize.product.project.files.planned import ProjectFile, from_provenance
from gluonize.product.project.output.provenance import GeneratedFile, is_code, without_line
from gluonize.read.files.modules import decode_source_bytes

MAX_COMMITS = 500  # how far back a file's history is searched


@dataclass(frozen=True)
class Base:
    """The text without its provenance line. origin: where it was found. exact: whether it is the very text, by digest."""

    text: str
    origin: str
    exact: bool = True


def find_base(
    generated: GeneratedFile,
    cache: ContentCache,
    regenerate: Callable[[ProjectFile], str],
    search: tuple[str, ...] = (),
) -> Base | None:
    """The text that `generated` was before it was edited; None when it is nowhere. search: see `ProjectFile`."""
    wanted = generated.provenance.output
    if not generated.edited:
        return Base(generated.bare, "the file itself")
    if (kept := cache.get(base_key(wanted))) is not None and text_digest(kept) == wanted:
        return Base(kept, "the cache")
    for commit, text in _versions(generated.path):
        bare = without_line(text)
        if text_digest(bare) == wanted or is_code(bare, generated.provenance):
            return Base(bare, f"commit {commit[:12]}")
    return _from_old_source(generated, from_provenance(generated, search), regenerate)


def _from_old_source(
    generated: GeneratedFile, file: ProjectFile, regenerate: Callable[[ProjectFile], str]
) -> Base | None:
    """Translate the source again as it was, with the files beside it of the same commit."""
    was = generated.provenance
    if not file.source.endswith(".py"):
        return None
    for commit, text in _versions(file.source):
        if text_digest(text) != was.source_digest:
            continue
        with tempfile.TemporaryDirectory(prefix="gluonize-base-") as folder:
            old = _checked_out(file, file.used(was), commit, folder)
            if old is None:
                continue
            try:
                text = regenerate(old)
            except TranslationError:
                continue
            return Base(text, f"{file.source} of commit {commit[:12]}", text_digest(text) == was.output)
    return None


def _checked_out(file: ProjectFile, uses: Iterable[str], commit: str, folder: str) -> ProjectFile | None:
    """The inputs of `file` as they were in a commit, in `folder`; None when one of them was not there."""
    root = _root(file.source)

    def inside(path: str) -> str:
        return os.path.relpath(os.path.realpath(path), root)

    for path in (file.source, *filter(None, [file.launches]), *uses):
        content = _show(root, commit, inside(path))
        if content is None:
            return None
        target = os.path.join(folder, inside(path))
        os.makedirs(os.path.dirname(target), exist_ok=True)
        with open(target, "wb") as out:
            out.write(content)
    source, output = (os.path.join(folder, inside(path)) for path in (file.source, file.output))
    launches = os.path.join(folder, inside(file.launches)) if file.launches else None
    return replace(file, source=source, launches=launches, output=output)


def _versions(path: str) -> Iterator[tuple[str, str]]:
    """(commit, text) of a file's history, the newest first; nothing outside of a git repository."""
    root = _root(path)
    if root is None:
        return
    inside = os.path.relpath(os.path.realpath(path), root)
    listed = _git(root, "log", "--all", f"-{MAX_COMMITS}", "--format=%H", "--", inside)
    for commit in (listed or b"").decode().split():
        content = _show(root, commit, inside)
        if content is None:
            continue
        try:
            yield commit, decode_source_bytes(content)
        except (SyntaxError, UnicodeDecodeError, LookupError):
            continue


def _root(path: str) -> str | None:
    found = _git(os.path.dirname(os.path.realpath(path)), "rev-parse", "--show-toplevel")
    return os.path.realpath(os.fsdecode(found.rstrip(b"\n"))) if found else None


def _show(root: str, commit: str, path: str) -> bytes | None:
    return _git(root, "show", f"{commit}:{path.replace(os.sep, '/')}")


def _git(folder: str, *arguments: str) -> bytes | None:
    try:
        done = subprocess.run(["git", "-C", folder, *arguments], capture_output=True, check=False, timeout=60)
    except (OSError, subprocess.TimeoutExpired):
        return None
    return done.stdout if done.returncode == 0 else None
