"""Every code that a message of gluonize has is in the table of the reference, and the table has no other."""

from __future__ import annotations

import ast
import functools
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import own_modules

from gluonize.rules.errors import ERRORS

NOT_MESSAGES = ("_instruction", "_rule")  # other codes: of instructions, of rules that are printed


PATHS = own_modules.modules("translator", "rules")
TEXTS = own_modules.read


@functools.cache
def nodes(path: Path) -> dict[type, list[Any]]:
    """The functions, classes and calls of a module."""
    kinds: dict[type, list[Any]] = {ast.FunctionDef: [], ast.ClassDef: [], ast.Call: []}
    for node in own_modules.nodes(path):
        if type(node) in kinds:
            kinds[type(node)].append(node)
    return kinds


def places_of_codes() -> dict[str, int]:
    """Functions and classes that take the code of a message -> which argument it is."""
    found = {"Diagnostic": 0}
    for module in (nodes(path) for path in PATHS if "code: str" in TEXTS(path)):
        owners = {f: c.name for c in module[ast.ClassDef] for f in c.body}
        for function in module[ast.FunctionDef]:
            arguments = [a for a in function.args.args if a.arg != "self"]
            for i, argument in enumerate(arguments):
                if argument.arg == "code" and argument.annotation and ast.unparse(argument.annotation) == "str":
                    found[owners[function] if function.name == "__init__" else function.name] = i
    return {name: place for name, place in found.items() if name not in NOT_MESSAGES}


def texts(node: ast.expr, variables: dict[str, list[ast.expr]]) -> Iterator[str]:
    """What an argument may be: a text, either arm of a condition, or what its variable is given."""
    if isinstance(node, ast.Constant) and isinstance(node.value, str):
        yield node.value
    elif isinstance(node, ast.IfExp):
        yield from (*texts(node.body, variables), *texts(node.orelse, variables))
    elif isinstance(node, ast.Name):
        for value in variables.get(node.id, []):
            yield from texts(value, {})


def codes_in_code() -> set[str]:
    places, codes = places_of_codes(), {"not-retargetable"}  # a default
    called = re.compile(rf"\b({'|'.join(places)})\(")
    for module in (nodes(path) for path in PATHS if called.search(TEXTS(path))):
        functions = module[ast.FunctionDef]
        for call in module[ast.Call]:
            name = getattr(call.func, "id", getattr(call.func, "attr", ""))
            if name not in places:
                continue
            given = [k.value for k in call.keywords if k.arg == "code"]
            for argument in given or call.args[places[name] : places[name] + 1]:
                around = [] if isinstance(argument, ast.Constant) else functions
                codes |= set(texts(argument, variables_at(call, around)))
    return {code for code in codes if re.fullmatch(r"[a-z0-9]+(-[a-z0-9]+)*", code)}


def variables_at(call: ast.Call, functions: list[ast.FunctionDef]) -> dict[str, list[ast.expr]]:
    """What is assigned to names in the functions around a call."""
    variables: dict[str, list[ast.expr]] = {}
    for function in functions:
        if function.lineno <= call.lineno <= function.end_lineno:
            for s in ast.walk(function):
                if isinstance(s, ast.Assign) and isinstance(s.targets[0], ast.Name):
                    variables.setdefault(s.targets[0].id, []).append(s.value)
    return variables


def test_the_table_has_every_code():
    listed = list(ERRORS)
    assert listed == sorted(listed)
    codes = codes_in_code()
    missing, unknown = codes - set(listed), set(listed) - codes
    assert not missing, f"not in rules/errors.py: {sorted(missing)}"
    assert not unknown, f"no message has the code: {sorted(unknown)}"
