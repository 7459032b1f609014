"""What an editor offers to do about the place where somebody is: translate, open the other side, correct what was guessed."""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass

from gluonize.product.editor.line_map import LineMap
from gluonize.product.editor.made import Made
from gluonize.product.editor.session import Session

TRANSLATE, OPEN, CORRECT = "gluonize.translate", "gluonize.open", "gluonize.correctGuesses"


@dataclass(frozen=True)
class Action:
    """title: what it does, in words. command: one of the above, with its arguments. mends: whether it settles findings of the file."""

    title: str
    command: str
    arguments: tuple[str | int, ...]
    mends: bool = False


def actions(session: Session, path: str, line: int) -> list[Action]:
    """Those of every generated file that a file is about; line: from 1, where the other side is opened."""
    return [action for made in session.of(path) for action in _actions(session, made, path, line)]


def _actions(session: Session, made: Made, path: str, line: int) -> Iterator[Action]:
    output, target = os.path.basename(made.output), made.file.target
    stale = any(found.found.code in ("generated-outdated", "generated-missing") for found in made.findings)
    yield Action(f"Translate for {target} now: {output}", TRANSLATE, (made.output,), stale or not made.there)
    if path == made.output:
        origin = made.origin(line, session.text(path))
        yield Action(
            f"Open the source, {os.path.basename(made.path)}",
            OPEN,
            (made.path, origin[0][0] if origin and origin[0] else 1),
        )
        return
    if made.there:
        became = made.results_of(line, session.text(path))
        moved = LineMap(made.pair.result, session.text(made.output)) if made.pair else None
        there = next((at for n in became if moved and (at := moved.forth(n))), 1)
        yield Action(f"Open {output}", OPEN, (made.output, there))
    if made.file.launches is None and not made.file.asked:
        name = os.path.basename(guesses_file(made))
        yield Action(f"Correct what was guessed: write the launches to {name} and open it", CORRECT, (made.output,))


def guesses_file(made: Made) -> str:
    """Where the launches of a source are written down to be corrected: `matmul_launches.json` beside it."""
    return f"{os.path.splitext(made.path)[0]}_launches.json"


def command_line(made: Made, command: str, scratch: str) -> list[str]:
    """The arguments of `gluonize` that do what an action says. scratch: a file that nobody wants."""
    guesses = guesses_file(made)
    # What is compiled and run is shown when the file is looked at again.
    translate = ["translate", made.path, "-t", made.file.target, "--no-validate", "--no-parity"]
    if command == CORRECT:
        return [*translate, "--no-compile", "-o", scratch, "--write-launches", guesses]
    if made.file.launches is None and not made.file.asked and os.path.isfile(guesses):
        return [*translate, "-l", guesses, "-o", made.output]
    return ["update", made.output] if made.there or made.file.asked else [*translate, "-o", made.output]
