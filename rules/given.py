"""Rows that a user gives with `--rules FILE`: builtins and library functions of their own, as TOML.

[[rule]]
callee = "mylib.fast_exp"                      # module and name of the function
becomes = "gl.exp2({x} * 1.4426950408889634)"  # holes are its parameters, or `{...}` for the arguments as they are
layouts = "same"                               # or "none", where no tensor is involved
cost = "heavy"                                 # computing it twice costs more than moving it
needs = "supports_tdm"                         # a field of the target's row; all targets when left out
takes = ["x"]                                  # a call that gives other parameters is translated as if there were no row
example = ["y = fast_exp(x)", "y = gl.exp2(x * 1.4426950408889634)"]
near_miss = ["y = fast_exp(x, 2)", "y = fast_exp(x, 2)"]
"""

from __future__ import annotations

import functools
import tomllib
from pathlib import Path
from typing import Any

from gluonize.diagnostics import Diagnostic, TranslationError
from gluonize.rules.builtins import BUILTINS
from gluonize.rules.rows import Example, Row, RuleSet
from gluonize.rules.targets import Target
from gluonize.rules.template import template

KINDS = {"same": "elementwise", "none": "same"}  # of the layouts that a given row may have
FIELDS = ("callee", "becomes", "layouts", "cost", "needs", "takes", "example", "near_miss", "note")
REQUIRED = ("callee", "becomes", "example", "near_miss")


def rules_with(paths: tuple[str, ...]) -> RuleSet:
    """The rules of `triton.language` and those of files, or of every `.toml` in folders. Raises: TranslationError `rule-file`."""
    found = BUILTINS
    for path in paths:
        files = sorted(Path(path).glob("*.toml")) if Path(path).is_dir() else [Path(path)]
        for file in files:
            try:
                text = file.read_text(encoding="utf-8")
            except OSError as error:
                why, help = (error.strerror or str(error)).lower(), "--rules takes a TOML file, or a folder of them"
                raise _refused(str(file), "the file cannot be read", why, help) from error
            found = found.adding(_rows(str(file), text))
    return found


@functools.lru_cache(maxsize=16)
def _rows(path: str, text: str) -> tuple[Row, ...]:
    try:
        content = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise _refused(path, "the file is no TOML", str(error)) from error
    entries = content.get("rule")
    if not isinstance(entries, list) or set(content) != {"rule"}:
        raise _refused(path, "rules are `[[rule]]` tables", f"it has {', '.join(content) or 'nothing'}")
    return tuple(_row(path, number, entry) for number, entry in enumerate(entries, 1))


def _row(path: str, number: int, entry: dict[str, Any]) -> Row:
    def wrong(why: str) -> TranslationError:
        return _refused(path, f"rule {number} ({entry.get('callee', 'no callee')}) cannot be used", why)

    unknown, missing = [k for k in entry if k not in FIELDS], [k for k in REQUIRED if k not in entry]
    if unknown or missing:
        raise wrong("; ".join(filter(None, (_list("unknown", unknown), _list("missing", missing)))))
    layouts = entry.get("layouts", "same")
    if layouts not in KINDS:
        raise wrong(f"layouts are one of {', '.join(KINDS)}, not {layouts!r}: what else follows needs code")
    needs = entry.get("needs", "")
    if needs and not hasattr(Target, needs) and needs not in Target.__dataclass_fields__:
        raise wrong(f"targets have no field {needs!r}")
    if entry.get("cost", "cheap") not in ("cheap", "heavy"):
        raise wrong(f"the cost is cheap or heavy, not {entry['cost']!r}")
    try:
        template(entry["becomes"])
    except ValueError as error:
        raise wrong(str(error)) from error
    module, _, name = entry["callee"].rpartition(".")
    if not module:
        raise wrong("the callee is given with its module: `mylib.fast_exp`")
    return Row(
        name,
        KINDS[layouts],
        entry["becomes"],
        (layouts,),
        callee=entry["callee"],
        needs=needs,
        takes=tuple(entry.get("takes", ())),
        cost=entry.get("cost", "cheap"),
        note=entry.get("note", ""),
        example=Example(*entry["example"]),
        near_miss=Example(*entry["near_miss"]),
    )


def _list(what: str, names: list[str]) -> str:
    return f"{what}: {', '.join(names)}" if names else ""


def _refused(path: str, message: str, why: str, help: str = "") -> TranslationError:
    help = help or "docs/reference/builtins.md says what a rule has"
    return TranslationError(Diagnostic("rule-file", message, path, 1, 1, why, help))
