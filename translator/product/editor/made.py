"""One generated file and what is known of it: the last good answers, and why there are no newer ones."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from gluonize.product.editor.files import Stamp
from gluonize.product.editor.jobs import Explained, Pair
from gluonize.product.editor.line_map import LineMap
from gluonize.product.editor.outline import Scope
from gluonize.product.editor.work import Figures
from gluonize.product.project.files.planned import ProjectFile
from gluonize.product.report.explain.explanation import Explanation
from gluonize.product.review.annotations import Annotation
from gluonize.trace.model.layouts import Ints


@dataclass
class Made:
    """A generated file. path: of the source; stamp: what its explanation was asked for; checked: what its checks were.

    read: the texts that were last read side by side, reading: while that goes on. explained, pair, figures: None until they are
    known; drawn: the explanation whose layouts were drawn; refusal: why the source is not explained as it is now.
    """

    file: ProjectFile
    output: str
    path: str
    stamp: Stamp = ()
    checked: tuple = ()
    read: tuple[str, str] | None = None
    reading: bool = False
    explained: Explained | None = None
    drawn: Explained | None = None
    pair: Pair | None = None
    figures: tuple[Figures, ...] | None = None
    refusal: str = ""
    findings: list[Annotation] = field(default_factory=list)
    validated: list[Annotation] = field(default_factory=list)
    judged: dict[str, str] = field(default_factory=dict)  # in a word what was found of each launch, by its id

    @property
    def there(self) -> bool:
        """Whether the file exists: of a source that was never translated there are layouts without one."""
        return bool(self.checked) and self.checked[1] is not None

    def origin(self, line: int, text: str) -> tuple[Ints, str] | None:
        """The lines of the source for a line of the translation that now has `text`, and a reason; None for an edited line."""
        if self.pair is None:
            return None
        was = LineMap(self.pair.result, text).back(line)
        return self.pair.lines[was - 1] if was and was <= len(self.pair.lines) else None

    def results_of(self, line: int, text: str) -> tuple[int, ...]:
        """The lines of the translation, as it was read, that came from a line of the source that now has `text`."""
        if self.pair is None:
            return ()
        was = LineMap(self.pair.source, text).back(line)
        return tuple(number for number, (lines, _) in enumerate(self.pair.lines, 1) if was in lines)

    def explained_lines(self, lines: Sequence[int]) -> tuple[int, ...]:
        """Lines of the source as it was explained, for those as it was read."""
        if self.pair is None or self.explained is None:
            return ()
        moved = LineMap(self.explained.text, self.pair.source)
        return tuple(x for line in lines if (x := moved.back(line)))

    def scope(self, line: int, text: str) -> tuple[Scope, int] | None:
        """The function of the translation that a line is in, and that line as it was read."""
        if self.pair is None or not (was := LineMap(self.pair.result, text).back(line)):
            return None
        found = self.pair.outline.at(was)
        return (found, was) if found else None

    @property
    def explanations(self) -> tuple[Explanation, ...]:
        return self.explained.explanations if self.explained else ()
