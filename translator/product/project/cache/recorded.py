"""Translation in a child process that also says which files it depended on."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, fields
from typing import TypeVar

from gluonize.diagnostics import TranslationError
from gluonize.judge.lower.children.memory_limit import is_starved
from gluonize.judge.lower.children.worker_process import resolve
from gluonize.product.project.digests import text_digest
from gluonize.read.files import modules, package
from gluonize.read.files.environment import names_asked
from gluonize.request import TranslateRequest, TranslateResult

Lookup = tuple[str, str, tuple[str, ...]]  # arguments of `module_file._find_in`
ATTEMPTS = 3  # for files that are written while they are read
Answer = TypeVar("Answer")


@dataclass(frozen=True)
class Reads:
    """What a translation depended on beside its request.

    files: (absolute path, digest) of every Python file read. lookups: where modules were looked for and what was found,
    "" for nothing. environment: the variables that the files may ask for, `*` among them for all. mentions: (file, names of a
    kernel of it, the other files of its package in which it may be launched). Of what changed meanwhile both answers are there:
    then nothing holds that was found.
    """

    files: tuple[tuple[str, str], ...] = ()
    lookups: tuple[tuple[Lookup, str], ...] = ()
    environment: tuple[str, ...] = ()
    mentions: tuple[tuple[str, tuple[str, ...], tuple[str, ...]], ...] = ()

    def joined(self, other: Reads) -> Reads:
        """All that either depended on."""
        pairs = ((getattr(self, field.name), getattr(other, field.name)) for field in fields(self))
        return Reads(*(tuple(sorted({*own, *more})) for own, more in pairs))

    @property
    def steady(self) -> bool:
        """Whether nothing that was read or looked for changed meanwhile."""
        asked = [path for path, _ in self.files], [lookup for lookup, _ in self.lookups], [m[:2] for m in self.mentions]
        return all(len(set(questions)) == len(questions) for questions in asked)


def translate_recorded(request: TranslateRequest, function: str) -> tuple[TranslateResult, Reads]:
    """Call the translation `module:function` and record what it reads; runs in a child."""
    translate = resolve(function)
    return recorded(lambda: translate(request))


def run_recorded(function: str, args: tuple, kwargs: dict) -> tuple[tuple[str, object], Reads]:
    """Call `module:function`: (`value`, what it returns) or (`refused`, its diagnostics), and what it read; runs in a child."""

    def run() -> tuple[str, object]:
        try:
            return "value", resolve(function)(*args, **kwargs)
        except TranslationError as error:
            if is_starved(error):
                raise  # says nothing of the source
            return "refused", error.diagnostics

    return recorded(run)


def recorded(run: Callable[[], Answer]) -> tuple[Answer, Reads]:
    """What `run` answers, and what it read; again where a file was written meanwhile, of which it may have seen two states."""
    for _ in range(ATTEMPTS):
        with recording() as reads:
            answer = run()
        found = reads()
        if found.steady:
            break
    return answer, found


@contextmanager
def recording() -> Iterator:
    """Record every Python file that is parsed and every module that is looked for; yields a function -> Reads.

    What an earlier job of this process looked for is looked for again: it may be there by now.
    """
    modules.forget_lookups()
    package.forget_packages()
    texts: dict[tuple[str, str], None] = {}  # (path, text)
    names: set[str] = set()
    lookups: set[tuple[Lookup, str]] = set()
    mentions: set[tuple[str, tuple[str, ...], tuple[str, ...]]] = set()
    parse, find_in, files_mentioning = modules._parse, modules._find_in, package.files_mentioning

    def recorded_parse(path: str, mtime_ns: int, size: int):
        found = parse(path, mtime_ns, size)
        if (found.path, found.text) not in texts and ("environ" in found.text or "getenv" in found.text):
            names.update(names_asked(found.tree))
        texts[found.path, found.text] = None
        return found

    def recorded_find(name: str, part: str, folders: tuple[str, ...]):
        found = find_in(name, part, folders)
        lookups.add(((name, part, folders), location(found)))
        return found

    def recorded_mentioning(path: str, called: tuple[str, ...]):
        found = files_mentioning(path, called)
        mentions.add((path, called, found))
        return found

    def reads() -> Reads:
        files = tuple(sorted((path, text_digest(text)) for path, text in texts))
        return Reads(files, tuple(sorted(lookups)), tuple(sorted(names)), tuple(sorted(mentions)))

    modules._parse, modules._find_in = recorded_parse, recorded_find
    package.files_mentioning = recorded_mentioning
    try:
        yield reads
    finally:
        modules._parse, modules._find_in = parse, find_in
        package.files_mentioning = files_mentioning


def location(found: modules.ModuleFile | None) -> str:
    """What a lookup found, as text."""
    return "" if found is None else found.path or "|".join(found.folders)
