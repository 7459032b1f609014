"""How much memory a child process may ask for, and what tells the want of it from other faults.

The system refuses what is beyond the limit (RLIMIT_DATA: private memory that can be written, whether or not it is used), so a
job that asks for too much learns it in its own process: Python by MemoryError, C++ by `std::bad_alloc`, LLVM by ending the process.
"""

from __future__ import annotations

import contextlib
import os
import resource

from gluonize.diagnostics import Diagnostic, TranslationError
from gluonize.store.address import parse_bytes, shown_bytes

VARIABLE = "GLUONIZE_MEMORY_LIMIT"
# What a process prints that ends because it was refused memory: the C++ runtime, LLVM, and Python itself.
_PRINTED = ("std::bad_alloc", "out of memory", "allocation failed", "allocation still failed", "memoryerror")


def memory_limit() -> int:
    """Bytes that a child may ask for, 0 for no limit. Raises: TranslationError `memory-limit` for what is no size."""
    given = os.environ.get(VARIABLE)
    try:
        return parse_bytes(given) if given else 0
    except ValueError:
        message = f"a memory limit of {given} is no size"
        raise TranslationError(Diagnostic("memory-limit", message, help="for example 4GB")) from None


def limit_children(size: str) -> None:
    """Make a size the limit of all child processes that are started from now on. Raises: TranslationError `memory-limit`."""
    os.environ[VARIABLE] = size
    memory_limit()


def limit_own_memory(size: int) -> None:
    """From now on this process is refused what is beyond `size` bytes, and so are those that it starts."""
    with contextlib.suppress(ValueError):  # what the system allows already is less
        resource.setrlimit(resource.RLIMIT_DATA, (size, size))


def is_starved(error: Exception) -> bool:
    """Whether an error is MemoryError, or was raised because of one.

    Python's parser raises it too, for what is nested too deeply: a refusal counts only where there is a limit.
    """
    if isinstance(error, TranslationError) and resource.getrlimit(resource.RLIMIT_DATA)[0] == resource.RLIM_INFINITY:
        return False
    found: BaseException | None = error
    while found is not None and not isinstance(found, MemoryError):
        found = found.__cause__ or found.__context__
    return found is not None


def ended_starved(printed: str) -> bool:
    """Whether a process that printed this before it ended was refused memory."""
    return any(words in printed.lower() for words in _PRINTED)


def starved(what: str, limit: int, printed: str) -> Diagnostic:
    """The refusal of a job that needs more. limit: 0 for none but the machine's."""
    room = shown_bytes(limit) if limit else "there is"
    help = "raise --memory-limit" if limit else "run fewer jobs at a time (-j), or on a machine with more"
    return Diagnostic("compiler-memory", f"{what} needs more memory than {room}", why=printed, help=help)
