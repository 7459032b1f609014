"""The child's side of a job from another machine: the files that it was sent, and nothing else, at the paths that it knows.

Everything that reading a source asks of the file system (`read/files/modules.py`) is answered from the job's `World`; a question
that it has no answer to ends the attempt, and goes back to the machine that asked.
"""

from __future__ import annotations

import contextlib
import hashlib
import logging
import os
import shutil
import stat
import tempfile
import traceback
import zlib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from gluonize.diagnostics import TranslationError
from gluonize.judge.lower.children.memory_limit import is_starved
from gluonize.judge.lower.children.worker_process import resolve, worker_id
from gluonize.product.cluster.sent_job import Answer, Found, Job, Lookup, Needs, World
from gluonize.product.project.cache.mapped import mapped
from gluonize.read.files import modules, package
from gluonize.read.files.modules import ModuleFile
from gluonize.store.folder import FolderStore
from gluonize.store.shelf import Shelf

CONTENT_BYTES = 1 << 30  # of files that a worker keeps
MAX_TREES = 100
# Variables that a job sees of the worker's own: what finding programs, libraries and folders takes, and reaching the shared cache,
# whose credentials are never sent.
_OWN = (
    "PATH",
    "HOME",
    "USER",
    "LANG",
    "LC_",
    "TMPDIR",
    "LD_",
    "DYLD_",
    "PYTHON",
    "XDG_",
    "OPENBLAS_",
    "OMP_",
    "VIRTUAL_ENV",
    "CONDA",
    "FSSPEC_",
    "AWS_",
    "S3_",
    "GOOGLE_",
    "GCSFS_",
    "AZURE_",
    "SSL_",
    "REQUESTS_CA_BUNDLE",
    "HTTP_PROXY",
    "HTTPS_PROXY",
    "NO_PROXY",
)
_OWN_CACHE = ("TRITON_CACHE_DIR", "TRITON_CACHE_MANAGER", "TRITON_HOME")


class _Missing(BaseException):
    """The job was not sent something; no `except Exception` of a compiler may take it for an error of the code."""

    def __init__(self, needs: Needs):
        super().__init__(needs)
        self.needs = needs


def run_in_sandbox(job: Job, base: str) -> Answer:
    """Run one job; base: a folder that the children of one worker share, and that goes away with it."""
    try:
        return _run(job, base)
    except OSError as error:  # none of the job's: what runs it turns those into answers
        return Answer("lost", f"the worker's folder cannot be used: {error}")


def _run(job: Job, base: str) -> Answer:
    os.makedirs(base, exist_ok=True)
    shelf = Shelf(FolderStore(Path(base, "contents"), mode=0o700), CONTENT_BYTES)
    for digest, content in job.contents.items():
        shelf.put(digest, content)
    root, missing = _tree(job.world, shelf, os.path.join(base, f"trees-{worker_id() or os.getpid()}"))
    if missing:
        return Answer("needs", Needs(contents=missing))
    inside = _Inside(job.world, root)
    with _said() as said, _environment(job), _working_folder(inside.there(job.world.cwd)), inside.answering():
        args, kwargs = inside.arguments(job.args), inside.arguments(job.kwargs)
        try:
            kind, payload = "value", resolve(job.function)(*args, **kwargs)
        except _Missing as error:
            return Answer("needs", error.needs)
        except Exception as error:
            if is_starved(error):
                raise  # `worker_process` answers, and the child ends
            if isinstance(error, TranslationError):
                kind, payload = "refused", error.diagnostics
            else:  # told to whoever asks as a bug in gluonize, as `worker_process` does
                kind, payload = "bug", traceback.format_exc()
        if not os.path.isdir(root):
            return Answer("lost", "the worker's folder went away while the job ran")
        if inside.missing != Needs():  # something took the question's failure for an answer
            return Answer("needs", inside.missing)
    return inside.answer(Answer(kind, payload, tuple(said)))


class _Inside:
    """Paths and questions of a job, in the folder that stands for the root of the other machine."""

    def __init__(self, world: World, root: str):
        self.world = world
        self.root = root
        self.lookups = dict(world.lookups)
        self.packages = dict(world.packages)
        self.files = {path for path, _ in world.files}
        self.missing = Needs()
        self.own_triton = _triton_folder()

    def there(self, path: str) -> str:
        """Where a path of the other machine is here."""
        return self.root + path

    def back(self, text: str) -> str:
        """A text with the paths of the other machine."""
        return text.replace(self.root, "").replace(self.own_triton, self.world.triton)

    def arguments(self, value: Any) -> Any:
        return mapped(value, lambda text: self.there(text) if text in self.world.paths else text)

    def answer(self, answer: Answer) -> Answer:
        return mapped(answer, self.back)

    @contextlib.contextmanager
    def answering(self) -> Iterator[None]:
        """Put the world's answers in the place of the file system's."""
        places: tuple[tuple[Any, str, Callable], ...] = (
            (modules, "_stat", self._stat),
            (modules, "_find_in", self._find_in),
            (modules, "_python_path", lambda: [self.there(path) for path in self.world.python_path]),
            (package, "_files_below", self._files_below),
        )
        saved = [getattr(module, name) for module, name, _ in places]
        for module, name, function in places:
            setattr(module, name, function)
        try:
            yield
        finally:
            for (module, name, _), function in zip(places, saved):
                setattr(module, name, function)

    def _ask(self, needs: Needs) -> _Missing:
        self.missing |= needs
        return _Missing(needs)

    def _stat(self, path: str) -> os.stat_result:
        path = os.path.abspath(path)
        if not path.startswith(self.root):  # Triton's own files, which both machines have
            return os.stat(path)
        asked = path[len(self.root) :]
        if asked in self.world.absent:
            raise FileNotFoundError(2, os.strerror(2), path)
        if asked not in self.files and not stat.S_ISDIR(_mode(path)):
            raise self._ask(Needs(files=frozenset((asked,))))
        return os.stat(path)

    def _find_in(self, name: str, part: str, folders: tuple[str, ...]) -> ModuleFile | None:
        lookup: Lookup = (name, part, tuple(map(self.back, folders)))
        if lookup not in self.lookups:
            raise self._ask(Needs(lookups=frozenset((lookup,))))
        found: Found = self.lookups[lookup]
        if found is None:
            return None
        path, below = found
        return ModuleFile(name, self.there(path) if path else "", tuple(map(self.there, below)))

    def _files_below(self, top: str) -> tuple[str, ...]:
        asked = self.back(top)
        if asked not in self.packages:
            raise self._ask(Needs(packages=frozenset((asked,))))
        return tuple(map(self.there, self.packages[asked]))


def _mode(path: str) -> int:
    try:
        return os.stat(path).st_mode
    except OSError:
        return 0


def _triton_folder() -> str:
    from gluonize.triton_api.package import triton

    return os.path.dirname(os.path.abspath(triton.__file__))


def _tree(world: World, shelf: Shelf, trees: str) -> tuple[str, frozenset[str]]:
    """The folder with the files of a world, made unless it is there; and digests of what the worker does not have."""
    identity = repr((world.cwd, world.files, sorted(path for path in world.paths)))
    root = os.path.join(trees, hashlib.sha256(identity.encode()).hexdigest()[:24])
    if os.path.isdir(root):
        os.utime(root)
        return root, frozenset()
    contents = {digest: shelf.get(digest) for _, digest in world.files}
    if missing := frozenset(digest for digest, content in contents.items() if content is None):
        return root, missing
    if not os.path.isdir(trees):
        _forget_others(os.path.dirname(trees))
        os.makedirs(trees)
    _prune(trees)
    half = tempfile.mkdtemp(dir=trees, prefix=".half-")
    for folder in (world.cwd, *world.paths):
        if folder not in dict(world.files):
            os.makedirs(half + folder, exist_ok=True)
    for path, digest in world.files:
        os.makedirs(os.path.dirname(half + path), exist_ok=True)
        with open(half + path, "wb") as file:
            file.write(zlib.decompress(contents[digest] or b""))
    os.rename(half, root)
    return root, frozenset()


def _prune(trees: str) -> None:
    found = sorted(os.scandir(trees), key=lambda entry: entry.stat().st_mtime)
    for entry in found[:-MAX_TREES]:
        shutil.rmtree(entry.path, ignore_errors=True)


def _forget_others(base: str) -> None:
    """Remove what children left that have ended."""
    for entry in os.scandir(base):
        name, _, number = entry.name.partition("-")
        if name == "trees" and not os.path.exists(f"/proc/{number}") and os.path.isdir("/proc/self"):
            shutil.rmtree(entry.path, ignore_errors=True)


@contextlib.contextmanager
def _working_folder(folder: str) -> Iterator[None]:
    before = os.getcwd()
    os.chdir(folder)
    try:
        yield
    finally:
        os.chdir(before)


@contextlib.contextmanager
def _environment(job: Job) -> Iterator[None]:
    """The variables of the job, and of the worker's own only what it cannot do without."""
    saved = dict(os.environ)
    sent = dict(job.switches) | dict(job.environment) | dict(job.shared)
    for name in saved:
        if sent.get(name) is None and (name in sent or not name.startswith(_OWN) and name not in _OWN_CACHE):
            del os.environ[name]
    os.environ.update({name: value for name, value in sent.items() if value is not None})
    try:
        yield
    finally:
        for name in [name for name in os.environ if name not in saved]:
            del os.environ[name]
        os.environ.update({name: value for name, value in saved.items() if os.environ.get(name) != value})


@contextlib.contextmanager
def _said() -> Iterator[list[tuple[int, str]]]:
    """What the logger `gluonize` says meanwhile, and only here."""
    said: list[tuple[int, str]] = []
    collector = logging.Handler()
    collector.emit = lambda record: said.append((record.levelno, record.getMessage()))
    log = logging.getLogger("gluonize")
    before, log.handlers[:] = list(log.handlers), [collector]
    try:
        yield said
    finally:
        log.handlers[:] = before
