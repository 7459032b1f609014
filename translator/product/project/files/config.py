"""`[tool.gluonize]` in pyproject.toml, or gluonize.toml: which sources go to which targets.

    [tool.gluonize]                       # in gluonize.toml the same without `tool.gluonize`
    targets = ["gfx942", "gfx950"]
    launches = "{folder}/launches.json"   # may be left out

    [[tool.gluonize.translate]]           # as many as needed; what an entry leaves out comes from the table above
    sources = ["kernels/*.py"]
    output = "{folder}/{name}_{target}.py"
    options = { num-buffers = 3 }

Paths are relative to the configuration file. `{folder}` is the folder of the source, `{name}` its name without `.py`.
"""

from __future__ import annotations

import os
import re
import tomllib
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from gluonize.diagnostics import Diagnostic, TranslationError, did_you_mean

FILES = ("gluonize.toml", "pyproject.toml")
DEFAULT_OUTPUT = "{folder}/{name}_{target}.py"
FIELDS = ("sources", "exclude", "targets", "launches", "kernels", "output", "options", "edits")
# Option -> type; the names are those of `gluonize translate` without the dashes.
OPTIONS = {"fallback": str, "num-buffers": int, "strategy": str, "choose": dict, "optimize": str, "budget": int, "grid": int, "set": dict, "rules": list,
           "import": bool, "keep-going": bool, "strict": bool, "all-configs": bool, "general": bool}  # fmt: skip
EDITS = ("refuse", "allow")
_FOLDERS = (
    "out-dir",
    "output-dir",
    "output-folder",
    "out",
)  # what the command line, and people, call the folder of outputs
_KINDS = {str: "a text", int: "a number", bool: "true or false", dict: "a table", list: "a list"}
_EXAMPLES = {str: '"..."', int: "3", bool: "true", dict: "{ NAME = 3 }", list: '["..."]'}


@dataclass(frozen=True)
class Entry:
    """One table of the configuration, defaults filled in. options: arguments of `gluonize translate`. line: where it is."""

    sources: tuple[str, ...]
    exclude: tuple[str, ...]
    targets: tuple[str, ...]
    launches: str | None
    kernels: tuple[str, ...]
    output: str
    options: tuple[str, ...]
    edits: str
    line: int


@dataclass(frozen=True)
class Config:
    """A configuration file. folder: where its paths start."""

    path: str
    entries: tuple[Entry, ...]

    @property
    def folder(self) -> str:
        return os.path.dirname(self.path)


def find_config(start: str = os.curdir) -> str | None:
    """The nearest configuration at or above `start`: gluonize.toml, or a pyproject.toml with `[tool.gluonize]`."""
    folder = os.path.abspath(start)
    while True:
        for name in FILES:
            path = os.path.join(folder, name)
            if os.path.isfile(path) and (name == FILES[0] or re.search(r"^\s*\[+tool\.gluonize\b", _text(path), re.M)):
                return path
        above = os.path.dirname(folder)
        if above == folder or os.path.exists(os.path.join(folder, ".git")):
            return None
        folder = above


def read_config(path: str) -> Config:
    """Parse and check a configuration. Raises: TranslationError with one diagnostic per problem, all of them located."""
    text = _text(path)
    try:
        data = tomllib.loads(text)
    except ValueError as error:
        found = re.search(r"at line (\d+), column (\d+)", str(error))
        line, column = map(int, found.groups()) if found else (0, 0)
        message = re.sub(r"\s*\(at .*\)$", "", str(error))
        rest = text.splitlines()[line - 1][column - 1 :] if line else ""
        word = re.match(r"[A-Za-z_][\w.*/-]*", rest) if message == "Invalid value" else None
        help = f'a string has quotes: "{word.group()}"' if word else ""
        raise TranslationError(
            Diagnostic("config-toml", f"not TOML: {message}", path, line, column, help=help)
        ) from None
    prefix = () if os.path.basename(path) == FILES[0] else ("tool", "gluonize")
    for name in prefix:
        data = data.get(name, {})
    reader = _Reader(path, text, prefix)
    entries = reader.entries(data)
    if reader.problems:
        raise TranslationError(*reader.problems)
    return Config(os.path.abspath(path), entries)


def read_exclude(path: str) -> tuple[str, ...]:
    """The `exclude` patterns of the main table of a configuration, for sources that the command line names.

    Raises: TranslationError `config-toml` when it cannot be parsed.
    """
    try:
        data = tomllib.loads(_text(path))
    except ValueError as error:
        raise TranslationError(Diagnostic("config-toml", f"not TOML: {error}", path)) from None
    for name in () if os.path.basename(path) == FILES[0] else ("tool", "gluonize"):
        data = data.get(name, {})
    found = data.get("exclude", ())
    return tuple([found] if isinstance(found, str) else [item for item in found if isinstance(item, str)])


def _text(path: str) -> str:
    try:
        return Path(path).read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        why = getattr(error, "strerror", None) or "it is not UTF-8 text"
        raise TranslationError(
            Diagnostic("config-unreadable", "cannot read the configuration", path, why=why)
        ) from None


class _Reader:
    """Turns tables into entries, and collects what is wrong with them."""

    def __init__(self, path: str, text: str, prefix: tuple[str, ...]):
        self.path, self.lines, self.prefix = path, text.splitlines(), ".".join(prefix)
        self.problems: list[Diagnostic] = []

    def report(self, message: str, key: str, index: int | None, help: str = "") -> None:
        self.problems.append(Diagnostic("config-field", message, self.path, self.line(key, index), help=help))

    def line(self, key: str, index: int | None) -> int:
        """The line of a key in the main table (`index` None) or in the `index`-th translate entry; else of the table."""
        main = rf"\[{re.escape(self.prefix)}\]" if self.prefix else None
        entry = re.compile(r"\[\[" + re.escape(f"{self.prefix}.translate".lstrip(".")) + r"\]\]")
        inside, seen, start = index is None and main is None, -1, 0
        for number, line in enumerate(self.lines, 1):
            stripped = line.strip()
            if stripped.startswith("["):
                if index is None and key and stripped.strip("[] ") == f"{self.prefix}.{key}".lstrip("."):
                    return number  # a table of its own
                if entry.match(stripped):
                    seen += 1
                    inside = seen == index
                elif index is None:
                    inside = main is not None and bool(re.match(main, stripped))
                elif not stripped.startswith(f"[{self.prefix}.translate.".replace("[.", "[")):
                    inside = False
                if inside and not start:
                    start = number
            elif inside and key and re.match(rf"[\"']?{re.escape(key)}[\"']?\s*[=.]", stripped):
                return number
        return start

    def entries(self, data: dict) -> tuple[Entry, ...]:
        tables = data.get("translate", [])
        main = {name: value for name, value in data.items() if name != "translate"}
        self.known(main, (*FIELDS, "translate"), None)
        if not isinstance(tables, list) or not all(isinstance(table, dict) for table in tables):
            self.report("translate: expected [[translate]] tables", "translate", None)
            return ()
        out = [self.entry(main, {}, None)] if "sources" in main else []
        for index, table in enumerate(tables):
            self.known(table, FIELDS, index)
            out.append(self.entry({**main, "sources": None}, table, index))
        if not out and not self.problems:
            self.report("no sources are named", "", None, 'add sources = ["kernels/*.py"] and targets = ["gfx950"]')
        return tuple(entry for entry in out if entry)

    def known(self, table: dict, names: tuple[str, ...], index: int | None, what: str = "") -> None:
        for key in table:
            if key not in names:
                hint = did_you_mean(key, names, f"known are {', '.join(names)}")
                if not what and (place := key.replace("_", "-")) in OPTIONS:
                    hint = f"it is an option: options = {{ {place} = {_EXAMPLES.get(OPTIONS[place], '...')} }}"
                elif not what and place in _FOLDERS:
                    hint = f'output says where: output = "{table[key]}/{{name}}_{{target}}.py"'
                self.report(f"unknown {what or 'field'} {key}", "options" if what else key, index, hint)

    def entry(self, main: dict, table: dict, index: int | None) -> Entry | None:
        before = len(self.problems)

        def get(name: str) -> tuple[Any, int | None]:
            return (table[name], index) if name in table else (main.get(name), None)

        sources = self.texts("sources", *get("sources"))
        if not sources and not any(p.help == "did you mean sources?" for p in self.problems):
            self.report("sources is missing", "", index, 'for example sources = ["kernels/*.py"]')
        targets = self.targets(*get("targets"), index)
        output, where = get("output")
        output = DEFAULT_OUTPUT if output is None else output
        launches, whence = get("launches")
        for name, value, place in (("output", output, where), ("launches", launches, whence)):
            if value is not None:
                self.pattern(name, value, place)
        if isinstance(output, str) and len(targets) > 1 and "{target}" not in output:
            self.report(
                f"output {output!r} is one file for {len(targets)} targets", "output", where, "put {target} in it"
            )
        edits, place = get("edits")
        if edits not in (None, *EDITS):
            self.report(f"edits = {edits!r}: expected one of {', '.join(EDITS)}", "edits", place)
        options = {
            **self.table("options", main.get("options"), None),
            **self.table("options", table.get("options"), index),
        }
        words = self.words(options, index if "options" in table else None)
        kernels, exclude = self.texts("kernels", *get("kernels")), self.texts("exclude", *get("exclude"))
        if len(self.problems) > before:
            return None
        return Entry(
            sources, exclude, targets, launches, kernels, output, words, edits or EDITS[0], self.line("", index)
        )

    def texts(self, name: str, value: Any, index: int | None) -> tuple[str, ...]:
        value = [value] if isinstance(value, str) else value
        if value is None:
            return ()
        if not isinstance(value, list) or not all(isinstance(item, str) for item in value):
            self.report(f"{name}: expected a text or a list of texts, not {value!r}", name, index)
            return ()
        return tuple(value)

    def targets(self, value: Any, place: int | None, index: int | None) -> tuple[str, ...]:
        from gluonize.rules.targets import parse_targets

        names = self.texts("targets", value, place)
        if not names:
            if (value is None or value == []) and not any(p.help == "did you mean targets?" for p in self.problems):
                self.report("targets is missing", "", index, 'for example targets = ["gfx950"]')
            return ()
        try:
            return tuple(row.name for row in parse_targets(",".join(names)))
        except TranslationError as error:
            found = error.diagnostics[0]
            self.report(found.message, "targets", place, found.help or found.why)
            return ()

    def pattern(self, name: str, value: Any, index: int | None) -> None:
        fields = ("folder", "name", "target") if name == "output" else ("folder", "name")
        if not isinstance(value, str):
            self.report(f"{name}: expected a text, not {value!r}", name, index)
            return
        try:
            value.format(**dict.fromkeys(fields, "x"))
        except (KeyError, IndexError, ValueError):
            shown = ", ".join(f"{{{field}}}" for field in fields)
            self.report(f"{name}: cannot fill in {value!r}", name, index, f"it may have {shown}")

    def table(self, name: str, value: Any, index: int | None) -> dict:
        if value is not None and not isinstance(value, dict):
            self.report(f"{name}: expected a table, not {value!r}", name, index)
            return {}
        self.known(value or {}, tuple(OPTIONS), index, "option")
        return value or {}

    def words(self, options: dict, index: int | None) -> tuple[str, ...]:
        """The options as arguments of `gluonize translate`, in the order of the command line."""
        words: list[str] = []
        for name in (
            "set",
            "import",
            "fallback",
            "num-buffers",
            "strategy",
            "choose",
            "optimize",
            "keep-going",
            "strict",
            "all-configs",
            "general",
            "rules",
        ):
            if (value := options.get(name)) is None:
                continue
            if not isinstance(value, OPTIONS[name]) or (OPTIONS[name] is int and isinstance(value, bool)):
                help = f"for example {name} = {_EXAMPLES[OPTIONS[name]]}"
                self.report(f"options: {name} is {_KINDS[OPTIONS[name]]}, not {value!r}", "options", index, help)
            elif name in ("set", "choose"):
                words += [word for key, given in value.items() for word in (f"--{name}", f"{key}={given}")]
            elif name == "rules":
                words += [word for folder in value for word in ("--rules", str(folder))]
            elif name == "optimize" and value == "parity":
                continue  # the default, which is not written
            elif OPTIONS[name] is bool:
                words += [f"--{name}"] * value
            else:
                words += [f"--{name}", str(value)]
        return tuple(words)
