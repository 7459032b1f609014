"""What the option parser cannot say: global flags anywhere on the line, and options whose value may be left out."""

from __future__ import annotations

from collections.abc import Sequence

from translator.project.output_file import STANDARD_OUTPUT

GLOBAL_FLAGS = ("-v", "--verbose", "-q", "--quiet")
GLOBAL_OPTIONS = ("--color", "--memory-limit", "--for-triton", "--triton-python")


def normalize(argv: Sequence[str]) -> list[str]:
    """The argument list with global flags first and every `--json` with a value.

    `--json FILE.json`, `--json -` and `--json=FILE` name a file; any other `--json` means standard output, so that
    `gluonize translate --json kernel.py` reads kernel.py instead of overwriting it.
    """
    front: list[str] = []
    rest: list[str] = []
    arguments = list(argv)
    index = 0
    while index < len(arguments):
        word = arguments[index]
        following = arguments[index + 1] if index + 1 < len(arguments) else None
        if word == "--":
            rest += arguments[index:]
            break
        if word in GLOBAL_FLAGS or word.startswith(tuple(f"{option}=" for option in GLOBAL_OPTIONS)):
            front.append(word)
        elif word in GLOBAL_OPTIONS and following is not None:
            front += [word, following]
            index += 1
        elif word == "--json":
            named = following is not None and (following == STANDARD_OUTPUT or following.endswith(".json"))
            rest.append(f"--json={following if named else STANDARD_OUTPUT}")
            index += named
        else:
            rest.append(word)
        index += 1
    return front + rest
