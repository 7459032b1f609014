"""How the author's project lays out its code: the settings of black, or of ruff, that hold for a file."""

from __future__ import annotations

import fnmatch
import functools
import os
import re
import tomllib
from dataclasses import dataclass, replace
from typing import Any

from gluonize.diagnostics import Diagnostic, TranslationError

DEFAULT_LINE_LENGTH = 120
FORMATTERS_LINE_LENGTH = 88  # of black and ruff where nothing else is said
_RUFF = ("ruff.toml", ".ruff.toml")
_DEFINITION = re.compile(r"(?<=\n\n)(?=@|def |class )")  # at the top level
_PIECES = 3  # definitions that are tried before the whole file is
_NEWEST = ("py313",)


@dataclass(frozen=True)
class CodeStyle:
    """Settings for the text of an output.

    line_length: in columns. whole: black lays out the whole file; False: only what is synthesized, the author's lines stay
    as they are; None: the whole file where the source is laid out so itself. The rest is as in black's configuration.
    """

    line_length: int = DEFAULT_LINE_LENGTH
    whole: bool | None = False
    keep_quotes: bool = False
    skip_magic_trailing_comma: bool = False
    preview: bool = False
    target_versions: tuple[str, ...] = ()

    def for_source(self, text: str) -> CodeStyle:
        """The style with `whole` decided for a source."""
        if self.whole is not None:
            return self
        clean = _is_laid_out(self, text)
        return replace(self, whole=clean, line_length=self.line_length if clean else DEFAULT_LINE_LENGTH)

    def laid_out(self, text: str, whole: bool | None = None) -> str:
        """The text as black lays it out; as it is when the file is the author's to lay out, or black cannot read it."""
        if not (self.whole if whole is None else whole):
            return text
        import black

        mode = black.Mode(
            # Versions that this black does not know, of a later one, leave it to find out by itself.
            target_versions={v for v in black.TargetVersion if v.name in map(str.upper, self.target_versions)},
            line_length=self.line_length,
            string_normalization=not self.keep_quotes,
            magic_trailing_comma=not self.skip_magic_trailing_comma,
            preview=self.preview,
        )
        try:
            return black.format_str(text, mode=mode)
        except black.InvalidInput:
            return text


@functools.lru_cache(maxsize=64)
def _is_laid_out(style: CodeStyle, text: str) -> bool:
    """Whether black would leave a text as it is. One definition that it would change says no in a part of the time."""
    _, *definitions = _DEFINITION.split(text)

    def likely(piece: str) -> tuple[bool, int]:
        """Pieces with lines that are too long first, then short ones."""
        return max(map(len, piece.splitlines())) <= style.line_length, len(piece)

    if any(_changes(style, piece.rstrip() + "\n") for piece in sorted(definitions, key=likely)[:_PIECES]):
        return False
    return style.laid_out(text, whole=True) == text


def _changes(style: CodeStyle, piece: str) -> bool:
    """Whether black changes a piece, whichever versions of Python it takes the file around it to be for."""
    styles = {style, replace(style, target_versions=style.target_versions or _NEWEST)}
    return all(each.laid_out(piece, whole=True) != piece for each in styles)


def style_of(source: str, output: str | None = None) -> CodeStyle:
    """The style of a file that is made from `source`: what the project of the output says, else that of the source.

    Without settings the formatters' own defaults hold, if the source is laid out by them.
    Raises: TranslationError `style-config` for settings that cannot be read.
    """
    paths = [path for path in (output, source if os.path.isfile(source) else None) if path]
    for path in paths:
        folder = os.path.dirname(os.path.realpath(path))
        while True:
            if (found := _of_folder(folder, os.path.realpath(path))) is not None:
                return found
            above = os.path.dirname(folder)
            if above == folder or os.path.exists(os.path.join(folder, ".git")):
                break
            folder = above
    return CodeStyle(FORMATTERS_LINE_LENGTH, whole=None)


def _of_folder(folder: str, file: str) -> CodeStyle | None:
    """What the configuration files of one folder say of `file`; None when there are none."""
    tools = _read(os.path.join(folder, "pyproject.toml")).get("tool", {})
    black, ruff = tools.get("black"), tools.get("ruff")
    where = os.path.join(folder, "pyproject.toml")
    if ruff is None and (name := next((n for n in _RUFF if os.path.isfile(os.path.join(folder, n))), None)):
        where = os.path.join(folder, name)
        ruff = _read(where)
    inside = os.path.relpath(file, folder).replace(os.sep, "/")
    if black is not None:
        return _of_black(black, ruff or {}, inside, where)
    return _of_ruff(ruff, inside, where) if ruff is not None else None


def _of_black(table: dict[str, Any], ruff: dict[str, Any], inside: str, where: str) -> CodeStyle:
    given = {name.replace("-", "_"): value for name, value in table.items()}
    patterns = [given[name] for name in ("exclude", "extend_exclude", "force_exclude") if given.get(name)]
    try:
        excluded = any(re.search(p, f"/{inside}", re.VERBOSE if "\n" in p else 0) for p in patterns)
    except (re.error, TypeError) as error:
        raise _wrong(where, f"[tool.black] exclude: {error}") from None
    return CodeStyle(
        _length(given.get("line_length", ruff.get("line-length", FORMATTERS_LINE_LENGTH)), where),
        not excluded,
        bool(given.get("skip_string_normalization", False)),
        bool(given.get("skip_magic_trailing_comma", False)),
        bool(given.get("preview", False)),
        _versions(given.get("target_version", ()), where),
    )


def _of_ruff(table: dict[str, Any], inside: str, where: str) -> CodeStyle:
    form = table.get("format")
    patterns = [*table.get("exclude", ()), *table.get("extend-exclude", ()), *(form or {}).get("exclude", ())]
    parts = [inside, *inside.split("/")]
    excluded = any(fnmatch.fnmatch(part, pattern) for pattern in patterns for part in parts)
    return CodeStyle(
        _length(table.get("line-length", FORMATTERS_LINE_LENGTH), where),
        # Without a [format] table ruff may only be there to find mistakes.
        False if excluded else True if form is not None else None,
        (form or {}).get("quote-style", "double") != "double",
        bool((form or {}).get("skip-magic-trailing-comma", False)),
    )


def _length(value: Any, where: str) -> int:
    if isinstance(value, bool) or not isinstance(value, int) or value < 1:
        raise _wrong(where, f"line-length is {value!r}, not a number of columns")
    return value


def _versions(given: Any, where: str) -> tuple[str, ...]:
    """The versions of Python that are asked for, as they are named there."""
    names = [given] if isinstance(given, str) else list(given)
    if not all(isinstance(name, str) for name in names):
        raise _wrong(where, f"target-version is {given!r}, not a list of names")
    return tuple(names)


def _read(path: str) -> dict[str, Any]:
    try:
        with open(path, "rb") as file:
            return tomllib.load(file)
    except (FileNotFoundError, NotADirectoryError):
        return {}
    except (OSError, tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise _wrong(path, str(error)) from None


def _wrong(path: str, why: str) -> TranslationError:
    return TranslationError(
        Diagnostic("style-config", "cannot read the project's settings for formatters", path, why=why)
    )
