"""The open files, what is asked about them in the background, and what is known so far.

Everything here runs on one thread, that of the event loop; threads and child processes hand their answers to it. A question
that was overtaken by a newer one is answered to nobody.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable
from concurrent.futures import CancelledError, Future
from dataclasses import dataclass
from functools import partial
from typing import Any

from gluonize.diagnostics import InternalError, TranslationError
from gluonize.product.editor.drawings import ask, wanted
from gluonize.product.editor.files import Family, family_of, source_path, stamp_of
from gluonize.product.editor.made import Made
from gluonize.product.editor.settings import Settings
from gluonize.product.editor.work import Overtaken, Work, unmoved
from gluonize.product.project.digests import file_digest
from gluonize.product.project.files.planned import ProjectFile
from gluonize.product.review.annotations import Annotation, errors
from gluonize.read.files.modules import parse_file

PATIENCE = 0.05  # seconds that a question waits for what is being computed
MOMENT = 0.3  # seconds that something may take without a word


@dataclass
class Document:
    """An open file. relatives: None until they are known."""

    path: str
    text: str
    relatives: Family | None = None


class Session:
    """The state of one editor. folder: where generated files are looked for. news: called when more is known of a file; told: when its findings changed;
    busy: when something begins to be computed that takes longer than a moment, and when nothing is left. quiet: whether `busy` shows that.
    """

    def __init__(
        self,
        work: Work,
        folder: str,
        settings: Settings,
        news: Callable[[], None],
        told: Callable[[], None],
        busy: Callable[[bool], None] = lambda begins: None,
        quiet: bool = False,
    ):
        self.work, self.folder, self.settings = work, folder, settings
        self.told = told
        self.news = Gathered(news)
        self.loop = asyncio.get_running_loop()
        self.documents: dict[str, Document] = {}
        self.made: dict[str, Made] = {}
        self.pending: set[Future] = set()
        self.slow: set[Future] = set()  # of these, what is worth a word
        self.quiet, self.busy, self.shown = quiet, busy, False
        self.broken: dict[str, list[Annotation]] = {}  # path -> why its text cannot be read, seen at once

    def opened(self, path: str, text: str) -> None:
        self.documents[path] = Document(path, text)
        self.saved(path)

    def saved(self, path: str) -> None:
        """Look again at what has to do with an open file: it, or something that it is made from, may be another."""
        if (document := self.documents.get(path)) is None:
            return
        self._then(self.work.threads["texts"].submit(unreadable, path), partial(self._readable, document))
        future = self.work.threads["files"].submit(self._look, path)
        self._then(future, partial(self._found, document))

    def _readable(self, document: Document, answer: Any) -> None:
        """A mistake in the text itself is told before anything is asked that takes longer."""
        found = [] if isinstance(answer, Exception) else answer
        if self.documents.get(document.path) is document and self.broken.get(document.path, []) != found:
            self.broken[document.path] = found
            self.told()

    def run(self, made: Made, arguments: list[str], take: Callable[[Any], None]) -> None:
        """Have `gluonize` do something about a generated file; then look at the files again."""

        def done(answer: Any) -> None:
            self.disk_changed()
            take(answer)

        self._then(self.work.threads["commands"].submit(self.work.command, arguments), done, slow=True)

    def changed(self, path: str, text: str) -> None:
        """The text of an open file is another one; it may be half typed."""
        if (document := self.documents.get(path)) is None:
            return
        document.text = text
        for made in self.of(path):
            if made.output == path:
                self._read(made)

    def closed(self, path: str) -> None:
        """Forget a file, and the generated files that no other open file is about."""
        self.documents.pop(path, None)
        self.broken.pop(path, None)
        used = {made.output for document in self.documents for made in self.of(document)}
        for output in self.made.keys() - used:
            del self.made[output]
        self.told()

    def disk_changed(self) -> None:
        """Files were written by someone else: look at all again; what has the digests that it had is not asked again, unless it was
        refused: what was missing may be there now."""
        for made in self.made.values():
            if made.refusal:
                self.work.forget(("explain", made.output, made.stamp))
                self.work.forget(("state", made.output, made.checked))
                made.stamp = made.checked = ()
        for path in list(self.documents):
            self.saved(path)

    def of(self, path: str) -> list[Made]:
        """What is known of the generated files that an open file is about."""
        document = self.documents.get(path)
        files = document.relatives.files if document and document.relatives else ()
        return [self.made[os.path.realpath(file.output)] for file in files]

    async def settled(self, path: str, ready: Callable[[Made], bool], patience: float = PATIENCE) -> list[Made]:
        """What is known of a file when all of it is `ready`, or when patience ends."""
        end = self.loop.time() + patience
        while self.loop.time() < end:
            document = self.documents.get(path)
            if document is None or (document.relatives is not None and all(map(ready, self.of(path)))):
                break
            if not self.pending:
                break
            waited = [asyncio.wrap_future(future) for future in self.pending]
            await asyncio.wait(waited, timeout=end - self.loop.time(), return_when=asyncio.FIRST_COMPLETED)
            await asyncio.sleep(0)  # what arrived is taken in first
        return self.of(path)

    def text(self, path: str) -> str:
        """As it is in the editor, else as it lies there; "" where nothing does."""
        return self.documents[path].text if path in self.documents else _as_saved(path)

    def ask_figures(self, made: Made) -> None:
        """Compile both sides of a file, once for each version of them."""
        self._ask(made, "figures", self._figures, self.work.figures, made.file)

    def _look(self, path: str) -> tuple[Family, list[tuple[ProjectFile, str, tuple, str | None]]]:
        """In a thread: the files that a file is about, each with its source and digests."""
        family = family_of(path, self.folder, self.settings.target, self.settings.search)
        return family, [(f, source_path(f) or f.source, stamp_of(f), file_digest(f.output)) for f in family.files]

    def _found(self, document: Document, answer: Any) -> None:
        if self.documents.get(document.path) is not document:
            return  # closed meanwhile
        document.relatives, files = (Family(), []) if refusal_of(answer) else answer
        for file, path, stamp, digest in files:
            output = os.path.realpath(file.output)
            made = self.made.setdefault(output, Made(file, output, os.path.realpath(path)))
            made.file, made.path = file, os.path.realpath(path)
            if made.stamp != stamp:
                made.stamp = stamp
                self._ask(made, "explain", self._explained, self.work.explain, file)
            if made.checked != (stamp, digest):
                made.checked = (stamp, digest)
                made.figures = None
                if made.there or file.asked:
                    self._ask(made, "state", self._state, self.work.state, file)
            self._read(made)
        self.news()

    def _explained(self, made: Made, answer: Any) -> None:
        made.refusal = refusal_of(answer)
        if not made.refusal:
            made.explained = answer
            self._draw(made)
        self.news()

    def _read(self, made: Made) -> None:
        """Read both texts side by side, as the source lies there and as the translation is in the editor; one pair at a time."""
        source, result = _as_saved(made.path), self.text(made.output)
        if made.reading or made.read == (source, result):
            return
        made.reading, made.read = True, (source, result)
        # Not kept: there is one for every key typed.
        future = self.work.threads["texts"].submit(self.work.read, source, result)
        self._then(future, partial(self._pair, made))

    def _pair(self, made: Made, answer: Any) -> None:
        made.reading = False
        if answer is not None and not refusal_of(answer):
            made.pair = answer
            self._draw(made)
            self.news()
        self._read(made)

    def _draw(self, made: Made) -> None:
        """Draw the layouts of a translation ahead of their being asked for: once for each explanation, not while someone types."""
        if made.pair is None or made.explained is None or made.drawn is made.explained:
            return
        made.drawn = made.explained
        arguments = (made.pair.outline, made.explanations, made.file.target)
        self._then(self.work.threads["texts"].submit(wanted, *arguments), self._drawn)

    def _drawn(self, answer: Any) -> None:
        for one in answer:
            ask(self.work, one)

    def _state(self, made: Made, answer: Any) -> None:
        made.validated, made.judged = [], {}
        state, made.findings = (None, []) if refusal_of(answer) else answer
        self.told()
        if state is not None and self.settings.validate:
            self._ask(made, "validate", self._validated, self.work.validate, state)

    def _validated(self, made: Made, answer: Any) -> None:
        made.validated, made.judged = ([], {}) if refusal_of(answer) else answer
        self.told()
        self.news()

    def _figures(self, made: Made, answer: Any) -> None:
        made.figures = () if refusal_of(answer) else answer
        self.news()

    def _ask(
        self, made: Made, kind: str, take: Callable[[Made, Any], None], function: Callable, *arguments: Any
    ) -> None:
        """Ask about the files as they are now; where they are others by then, look again."""
        explain = kind == "explain"
        expected = made.stamp if explain else made.checked
        key = (kind, made.output, expected)

        def now() -> tuple:
            stamp = stamp_of(made.file)
            return stamp if explain else (stamp, file_digest(made.output))

        def arrived(answer: Any) -> None:
            if isinstance(answer, Overtaken):
                self.work.forget(key)
                if expected in (made.stamp, made.checked):
                    made.stamp = made.checked = ()
                    self.disk_changed()
            elif expected == (made.stamp if explain else made.checked):
                take(made, answer)

        where = {"explain": "explain", "state": "states"}.get(kind, "checks")
        self._then(self.work.ask(key, where, unmoved, now, expected, function, *arguments), arrived, slow=True)

    def _then(self, future: Future, take: Callable[[Any], None], slow: bool = False) -> None:
        """Hand the answer, or what it was refused with, to `take` on this thread. slow: it is worth a word while it lasts."""
        self.pending.add(future)
        if slow and not future.done():
            self.slow.add(future)
            self.loop.call_later(MOMENT, self._progress)

        def arrived(done: Future) -> None:
            if not self.loop.is_closed():
                self.loop.call_soon_threadsafe(self._take, done, take)

        future.add_done_callback(arrived)

    def _take(self, done: Future, take: Callable[[Any], None]) -> None:
        self.pending.discard(done)
        self.slow.discard(done)
        if self.work.closed:
            return
        self.loop.call_later(MOMENT, self._progress)  # what follows from the answer may be asked at once
        try:
            answer = done.result()
        except CancelledError:
            return  # the server ends
        except (TranslationError, InternalError, OSError, Overtaken) as error:
            answer = error
        take(answer)

    def _progress(self) -> None:
        """Say once that something is computed, until nothing is."""
        if self.shown != bool(self.slow) and not self.work.closed:
            self.shown = bool(self.slow)
            self.busy(self.shown)


class Gathered:
    """Calls at once those that come one after the other within a moment."""

    def __init__(self, call: Callable[[], None]):
        self.call, self.waiting = call, False

    def __call__(self) -> None:
        if not self.waiting:
            self.waiting = True
            asyncio.get_running_loop().call_later(PATIENCE, self._now)

    def _now(self) -> None:
        self.waiting = False
        self.call()


def refusal_of(answer: Any) -> str:
    """Why there is no answer; "" where there is one."""
    if isinstance(answer, TranslationError):
        return "; ".join(dict.fromkeys(d.message for d in answer.diagnostics))
    return str(answer).splitlines()[0] if isinstance(answer, Exception) else ""


def unreadable(path: str) -> list[Annotation]:
    """Why a source cannot be read; nothing where it can."""
    if not path.endswith(".py"):
        return []
    try:
        parse_file(path)
    except TranslationError as error:
        return errors(error.diagnostics)
    return []


def _as_saved(path: str) -> str:
    """The text of a file; "" where there is none."""
    try:
        with open(path, encoding="utf-8", errors="replace", newline="") as file:
            return file.read()
    except OSError:
        return ""
