"""Host code that launches a kernel for which options were chosen: each launch says them.

kernel[grid](a, b, num_warps=4)       ->  kernel[grid](a, b, num_warps=4, num_ctas=2)
triton.Config({"B": 64}, num_warps=8) ->  triton.Config({"B": 64}, num_warps=8, num_ctas=2)
triton.Config({"B": 64}, num_warps=8) ->  triton.Config({"B": 64, "waves_per_eu": 2}, num_warps=8)
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence

import libcst as cst
from gluonize.gluon.trees.function import Statement
from gluonize.gluon.trees.walk import called, functions, names, walk
from gluonize.output.file.author import FileEdits

_OF_CONFIGS = frozenset({"num_ctas"})  # arguments of triton.Config; other options stand among its values
Calls = Iterator[tuple[int, cst.Call]]  # each with the index of its statement


def launches(
    statements: Sequence[Statement], options: Sequence[tuple[str, str, int | str]], edits: FileEdits
) -> list[str]:
    """Edit the launches of kernels, given with an option and its value; -> notes on those of which the file shows no launch.

    An autotuned kernel has the option in its configurations, whatever its launches say.
    """
    notes: list[str] = []
    for kernel in dict.fromkeys(name for name, _, _ in options):
        own = [(option, value) for name, option, value in options if name == kernel]
        calls = list(_configurations(statements, kernel)) or list(_launches(statements, kernel))
        for top, call in calls:
            edits.change(top, {call: lambda call, own=own: _with_options(call, own)})
        if not calls:
            said = ", ".join(f"{option}={_number(value)}" for option, value in own)
            notes.append(f"launch {kernel} with {said}: this file shows none of its launches")
    return notes


def _launches(statements: Sequence[Statement], name: str) -> Calls:
    """`name[grid](...)`."""
    for top, s in enumerate(statements):
        for node in walk(s):
            if isinstance(node, cst.Call) and isinstance(node.func, cst.Subscript):
                if isinstance(node.func.value, cst.Name) and node.func.value.value == name:
                    yield top, node


def _configurations(statements: Sequence[Statement], name: str) -> Calls:
    """`Config(...)` in the decorators of the function `name`, or in the list or function that one of them names."""
    for top, s in enumerate(statements):
        for decorator in (d for f in functions(s) if f.name.value == name for d in f.decorators):
            yield from _configs_in(top, decorator)
            for word in names(decorator):
                for at, other in enumerate(statements):
                    if _binds(other, word):
                        yield from _configs_in(at, other)


def _configs_in(top: int, node: cst.CSTNode) -> Calls:
    return ((top, inner) for inner in walk(node) if called(inner) == "Config")


def _binds(s: Statement, word: str) -> bool:
    if isinstance(s, cst.FunctionDef):
        return s.name.value == word
    assigned = (small for small in getattr(s, "body", ()) if isinstance(small, cst.Assign))
    found = (t.target for small in assigned for t in small.targets)
    return any(isinstance(target, cst.Name) and target.value == word for target in found)


def _with_options(call: cst.Call, options: Sequence[tuple[str, int | str]]) -> cst.Call:
    for option, value in options:
        held = called(call) == "Config" and option not in _OF_CONFIGS
        call = (_with_value if held else _with_argument)(call, option, cst.parse_expression(_number(value)))
    return call


def _number(value: int | str) -> str:
    return repr(value) if isinstance(value, bool) else json.dumps(value)


def _with_value(call: cst.Call, option: str, value: cst.BaseExpression) -> cst.Call:
    """A configuration with one value more: in its dictionary where that is written out, else in one that takes it over."""
    held = next((a for a in call.args if a.keyword is None or a.keyword.value == "kwargs"), None)
    if held is None:
        return call
    added = cst.DictElement(cst.SimpleString(json.dumps(option)), value)
    if isinstance(held.value, cst.Dict):
        kept = [e for e in held.value.elements if not _is_key(e, option)]
        separated = [e.with_changes(comma=cst.Comma(whitespace_after=cst.SimpleWhitespace(" "))) for e in kept[-1:]]
        made = held.value.with_changes(elements=[*kept[:-1], *separated, added])
    else:
        grouped = held.value.with_changes(lpar=[cst.LeftParen()], rpar=[cst.RightParen()])
        plain = held.value if isinstance(held.value, cst.Name | cst.Call) else grouped
        comma = cst.Comma(whitespace_after=cst.SimpleWhitespace(" "))
        made = cst.Dict([cst.StarredDictElement(plain, comma=comma), added])
    return call.with_changes(args=[a.with_changes(value=made) if a is held else a for a in call.args])


def _is_key(element: cst.BaseDictElement, option: str) -> bool:
    key = element.key if isinstance(element, cst.DictElement) else None
    return isinstance(key, cst.SimpleString) and key.evaluated_value == option


def _with_argument(call: cst.Call, option: str, value: cst.BaseExpression) -> cst.Call:
    given = next((a for a in call.args if a.keyword is not None and a.keyword.value == option), None)
    if given is not None:
        return call.with_changes(args=[a.with_changes(value=value) if a is given else a for a in call.args])
    if not call.args:
        return call
    *others, last = call.args
    bare = cst.SimpleWhitespace("")
    added = last.with_changes(
        star="", keyword=cst.Name(option), equal=cst.AssignEqual(bare, bare), value=value, whitespace_after_star=bare
    )
    before = last.with_changes(comma=cst.Comma(whitespace_after=cst.SimpleWhitespace(" ")), whitespace_after_arg=bare)
    return call.with_changes(args=[*others, before, added])


__all__ = ["launches"]
