"""The heavy work of the editor: in threads that wait for child processes, each question asked once.

Nothing here runs a user's code: a file made with `--import` is refused.
"""

from __future__ import annotations

import subprocess
import sys
from collections import OrderedDict
from collections.abc import Callable, Hashable
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any

from gluonize.diagnostics import Diagnostic, TranslationError
from gluonize.judge.lower.children.worker import WorkerPool
from gluonize.judge.lower.parity import Parity
from gluonize.product.editor.files import source_path
from gluonize.product.editor.jobs import Explained, Pair
from gluonize.product.project.cache.kept_jobs import KeptJobs
from gluonize.product.project.cache.results import ContentCache, content_key
from gluonize.product.project.cache.translation import translate_cached
from gluonize.product.project.checks.check import FileState, file_state
from gluonize.product.project.checks.findings import of_launches, of_state
from gluonize.product.project.checks.validation import TRANSLATE, validate_file
from gluonize.product.project.files.planned import ProjectFile
from gluonize.product.project.output.provenance import without_line
from gluonize.product.project.output.verdict import is_settled, proof_word
from gluonize.product.report.checks import Sources, check
from gluonize.product.report.review.correspondence import origins
from gluonize.product.review.annotations import Annotation, errors
from gluonize.request import TranslateRequest
from gluonize.trace.model.layouts import Ints

EXPLAIN = "gluonize.product.editor.jobs:explain"
READ = "gluonize.product.editor.jobs:read_pair"
DRAW = "gluonize.product.editor.jobs:draw"
RUNNABLE = ("current", "edited", "outdated")  # states of files whose text can be run
KEPT = 512  # answers


@dataclass(frozen=True)
class Figures:
    """One launch of a translation beside Triton's own compile. problems: why one of them did not compile."""

    kernel: str
    launch: str
    parity: Parity | None
    problems: tuple[str, ...] = ()


class Overtaken(Exception):
    """Files were written while something was found out about them: the answer is of no version of them."""


def unmoved(now: Callable[[], Hashable], expected: Hashable, function: Callable[..., Any], *arguments: Any) -> Any:
    """`function(*arguments)` of files that are `expected`, by their digests, before and after it. Raises: Overtaken."""
    if now() != expected:
        raise Overtaken
    try:
        return function(*arguments)
    finally:
        if now() != expected:
            raise Overtaken


class Work:
    """Questions and their answers. What asks Triton, texts, whether files are current, and what compiles and runs them have children of
    their own, so that none waits for another."""

    def __init__(self, cache: ContentCache, jobs: int, timeout: float):
        self.cache = cache
        self.pools = {
            "texts": WorkerPool(1, timeout=timeout),
            "explain": WorkerPool(1, timeout=timeout),
            "states": KeptJobs(WorkerPool(1, timeout=timeout), cache),
            "checks": KeptJobs(WorkerPool(jobs, timeout=timeout), cache),
        }
        counts = {"texts": 2, "explain": 1, "states": 1, "checks": jobs, "files": 1, "commands": 1}
        self.threads = {name: ThreadPoolExecutor(n, f"gluonize-{name}") for name, n in counts.items()}
        self.answers: OrderedDict[Hashable, Future] = OrderedDict()
        self.closed = False

    def close(self) -> None:
        """End the children; who waits for them is told."""
        self.closed = True
        for threads in self.threads.values():
            threads.shutdown(wait=False, cancel_futures=True)
        for pool in self.pools.values():
            pool.kill()

    def ask(self, key: Hashable, where: str, function: Callable[..., Any], *arguments: Any) -> Future:
        """`function(*arguments)` in a thread of `where`; the same key has the same answer."""
        if key in self.answers:
            self.answers.move_to_end(key)
            return self.answers[key]
        self.answers[key] = self.threads[where].submit(function, *arguments)
        if len(self.answers) > KEPT:
            self.answers.popitem(last=False)
        return self.answers[key]

    def forget(self, key: Hashable) -> None:
        self.answers.pop(key, None)

    def explain(self, file: ProjectFile) -> Explained:
        """Raises: TranslationError when the source is refused."""
        request, path = request_of(file), source_path(file)
        if path is None:
            raise TranslationError(Diagnostic("source-missing", f"no source {file.source}", file.output))
        key = content_key("explained", request, path)
        if (known := self.cache.get(key)) is not None:
            return known
        found, reads = self.pools["explain"].call(EXPLAIN, request, path, what=f"explaining {file.source}")
        self.cache.put(key, found, reads)
        return found

    def read(self, source: str, result: str) -> Pair | None:
        return self.pools["texts"].call(READ, source, result, what="reading both texts")

    def draw(self, layout: str, shape: Ints, bits: int, target: str) -> str:
        """Raises: TranslationError for what is no layout of AMD targets, or does not map onto the shape."""
        return self.pools["explain"].call(DRAW, layout, shape, bits, target, what=layout)

    def state(self, file: ProjectFile) -> tuple[FileState, list[Annotation]]:
        """What `gluonize check` says of a file, and where."""
        state = file_state(file, self.cache, self._regenerate)
        return state, list(of_state(state, allow_edits=False, origins=origins))

    def _regenerate(self, file: ProjectFile) -> str:
        result, _ = translate_cached(request_of(file), TRANSLATE, self.pools["states"], self.cache)
        if result.text is None:
            raise TranslationError(
                *result.diagnostics, *(d for outcome in result.outcomes for d in outcome.diagnostics)
            )
        return without_line(result.text).replace("\r\n", "\n")

    def command(self, arguments: list[str]) -> tuple[int, str]:
        """Run `gluonize` with these arguments, as in a terminal; -> its exit status and what it said last."""
        done = subprocess.run(
            [sys.executable, "-m", "gluonize.product.cli", *arguments], capture_output=True, text=True, check=False
        )
        said = [line for line in (done.stderr if done.returncode else done.stdout).splitlines() if line.strip()]
        return done.returncode, said[0] if done.returncode and said else said[-1] if said else ""

    def validate(self, state: FileState) -> tuple[list[Annotation], dict[str, str]]:
        """What running a file on its launches, and proving them, finds against it; and in a word what it finds of each launch, by its id."""
        if state.state not in RUNNABLE:
            return [], {}
        try:
            request_of(state.file)
            launches = validate_file(state.file, self.pools["checks"], self.cache)
        except TranslationError as error:
            return errors(error.diagnostics), {}
        said = {x.spec.id: _words(x.found) for x in launches}
        return errors(of_launches(state, launches)), {id: words.replace("_", " ") for id, words in said.items()}

    def figures(self, file: ProjectFile) -> tuple[Figures, ...]:
        """Every launch of a file beside Triton's own compile. Raises: TranslationError when its source is refused."""
        request = request_of(file)
        result, _ = translate_cached(request, TRANSLATE, self.pools["checks"], self.cache)
        with open(file.output, encoding="utf-8", errors="replace") as opened:
            text = opened.read()
        given = Sources(file.source, text, file.output, file.target, request.search_path)
        specs = tuple(outcome.spec for outcome in result.outcomes if outcome.status == "translated")
        checked = check(self.pools["checks"], given, specs, validate=False, stages=False)
        return tuple(
            Figures(c.spec.kernel.rpartition(".")[2], c.spec.id, c.parity, tuple(p.message for p in c.problems))
            for c in checked
        )


def _words(found: dict) -> str:
    """`validated`, `proved`, `validated and proved`: what is found of a launch."""
    return " and ".join(filter(None, ("" if is_settled(found) else found["status"], proof_word([found]))))


def request_of(file: ProjectFile) -> TranslateRequest:
    """How a file is made. Raises: TranslationError `editor-import` where that would run its host code."""
    request = file.request()
    if request.import_hosts:
        why = "the file was made with --import, which runs the modules that its source imports"
        raise TranslationError(
            Diagnostic("editor-import", "nothing is shown of this file", file.output, why=why, help="gluonize explain")
        )
    return request
