"""Host code that launches a kernel for which options of launches were chosen, such as a number of workgroups: each launch says them.

kernel[grid](a, b, num_warps=4)       ->  kernel[grid](a, b, num_warps=4, num_ctas=2)
triton.Config({"B": 64}, num_warps=8) ->  triton.Config({"B": 64}, num_warps=8, num_ctas=2)
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

import libcst as cst

from translator.rewrite.author_file import FileEdits
from translator.rewrite.gluon_function import Statement
from translator.rewrite.tree_walk import called, functions, names, walk

ASSERTED = frozenset({"num_ctas"})  # a translation is for one number of workgroups
Calls = Iterator[tuple[int, cst.Call]]  # each with the index of its statement


def launches(statements: Sequence[Statement], options: Mapping[str, Mapping[str, int]], edits: FileEdits) -> list[str]:
    """Edit the launches of kernels, by name with their options; -> notes on those of which the file shows no launch.

    An autotuned kernel has them in its configurations, whatever its launches say.
    """
    notes: list[str] = []
    for name, chosen in options.items():
        calls = list(_configurations(statements, name)) or list(_launches(statements, name))
        for top, call in calls:
            edits.change(top, {call: lambda call, chosen=chosen: _with_options(call, chosen)})
        if not calls:
            said = ", ".join(f"{option}={value}" for option, value in chosen.items())
            notes.append(f"launch {name} with {said}: this file shows none of its launches")
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


def _with_options(call: cst.Call, options: Mapping[str, int]) -> cst.Call:
    for option, value in options.items():
        call = _with_option(call, option, cst.Integer(str(value)))
    return call


def _with_option(call: cst.Call, option: str, number: cst.Integer) -> cst.Call:
    """The call with one more option; one that says it already has another value of it only where the kernel asserts that."""
    given = next((a for a in call.args if a.keyword is not None and a.keyword.value == option), None)
    if given is not None:
        changed = [a.with_changes(value=number) if a is given else a for a in call.args]
        return call.with_changes(args=changed) if option in ASSERTED else call
    if not call.args:
        return call
    *others, last = call.args
    bare = cst.SimpleWhitespace("")
    added = last.with_changes(
        star="", keyword=cst.Name(option), equal=cst.AssignEqual(bare, bare), value=number, whitespace_after_star=bare
    )
    before = last.with_changes(comma=cst.Comma(whitespace_after=cst.SimpleWhitespace(" ")), whitespace_after_arg=bare)
    return call.with_changes(args=[*others, before, added])


__all__ = ["launches"]
