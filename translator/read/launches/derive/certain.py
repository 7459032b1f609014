"""What a launch that was found rests on, where only what the source says for certain is to count (`--strict`)."""

from __future__ import annotations

from gluonize.diagnostics import Diagnostic, TranslationError
from gluonize.read.launches.derive.evidence import Evidence
from gluonize.read.launches.derive.proposal.guess import Guess, Proposal


def check_certain(evidence: Evidence, proposal: Proposal) -> None:
    """Raises: TranslationError with a `spec-missing` diagnostic for each constant, and each type of a tensor, that is nothing but a guess."""
    problems = [_missing(evidence, name, guess) for name, guess in proposal.arguments.items() if not is_certain(guess)]
    if problems:
        raise TranslationError(*problems)


def is_certain(guess: Guess) -> bool:
    """Whether the source says it. The use of a number says its type, and what is stored says that of a tensor; no use says a value."""
    if guess.is_constant:
        return guess.confidence not in ("use", "name")
    return guess.confidence != "name" or not guess.kind.startswith("*")


def _missing(evidence: Evidence, name: str, guess: Guess) -> Diagnostic:
    what = "the value" if guess.is_constant else "the type"
    place = evidence.loaded.path, evidence.node.lineno, evidence.node.col_offset + 1
    why = f"nothing in the file says it; without --strict it would be {guess.shown()} ({guess.why})"
    form = "VALUE" if guess.is_constant else "TYPE"
    help = f"give it with --set {name}={form}, or in a launch spec with -l LAUNCHES.json"
    return Diagnostic("spec-missing", f"{evidence.name}: {what} of {name} is not known", *place, why, help)
