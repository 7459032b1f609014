"""The lines that stand in place of a helper's call: its statements, with the caller's arguments for its parameters.

Branches that the call's constants decide are resolved, comments stay, and variables get other names where the caller has theirs.
"""

from __future__ import annotations

import ast
import textwrap
from collections.abc import Iterable
from dataclasses import dataclass

from gluonize.facts.syntax import unparsed
from gluonize.gluon.trees.function import LINE_LENGTH
from gluonize.gluon.written import Written, closed, form_of, literal, operand
from gluonize.gluon.written import name as variable
from gluonize.loops.source.inlined_lines import is_arithmetic, lines_of, unread_assignments
from gluonize.numbered import numbered
from gluonize.read.text.source_text import Edit, SourceText, replace_spans
from gluonize.read.text.string_lines import inside_strings
from gluonize.trace.front.trace import ConstFact, Frame
from gluonize.triton_api.jit_functions import JITFunction

_SAID = LINE_LENGTH - 12  # columns of a line of a docstring that becomes a comment in a loop


class CannotInline(Exception):
    """The call stays: a name, or a form of the helper, speaks against its statements in this place."""


def body_for(
    source: SourceText,
    kernel: ast.AST,
    frame: Frame,
    statement: ast.stmt,
    call: ast.Call,
    helper: Frame,
    ended: set[str],
    names: set[str],
) -> list[str]:
    """The lines that replace `statement`, without its indentation. ended: variables of the caller that may be overwritten; names:
    all that it uses."""
    fn = helper.fn
    if not isinstance(fn, JITFunction) or fn.noinline:
        raise CannotInline
    text = SourceText(fn.src)
    tree = ast.parse(fn.src).body[0]
    if not _same_globals(tree, fn, kernel, frame.fn):
        raise CannotInline
    said = ast.get_docstring(tree)
    body = list(tree.body if said is None else tree.body[1:])
    comment = [f"# {line}" for text in (said or "").splitlines() for line in textwrap.wrap(text.strip(), _SAID)]
    returned = body.pop() if body and isinstance(body[-1], ast.Return) else None
    leaves = [] if returned or not body else _leaves(body[-1], helper)
    inner = [n for s in body for n in ast.walk(s)]
    if not body or any(isinstance(n, (ast.Return, ast.Global, ast.FunctionDef)) and n not in leaves for n in inner):
        raise CannotInline
    arguments = _arguments(source, tree, call, helper)
    stored = {n.id for s in body for n in ast.walk(s) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store)}
    targets = _targets(statement)
    local = stored - set(arguments)
    own = _own_names(local, returned, leaves, targets, arguments, names - set(targets) - ended)
    constants = {a.arg: _annotation(a, fn, frame.fn) for a in tree.args.args}
    around = _Around(names, stored, frozenset(targets), ended)
    statements = [*body, *([returned] if returned else [])]
    before, renamed = _parameters(arguments, constants, helper, statements, around)
    renamed |= own
    edits = _renames(text, statements, renamed)
    for leaf in leaves:
        start, end = text.span(leaf)
        assigned = _results(text, edits, statement, leaf, targets)
        edits = [e for e in edits if not (start <= e[0] and e[1] <= end)]
        new = assigned[0] if assigned else "pass"
        edits.append((start, end, new + "\n" * (leaf.end_lineno - leaf.lineno - new.count("\n"))))
    changed = replace_spans(text.text, 0, len(text.text), edits).split("\n")
    literal = {name for name, (_, node) in arguments.items() if node is None or isinstance(node, ast.Constant)}
    decided = literal - stored
    unread = unread_assignments(body, returned, helper, decided, local - set(targets))
    lines = lines_of(changed, body, helper, _after_header(text, tree), decided, unread)
    results = [] if leaves else _results(text, edits, statement, returned, targets)
    return comment + before + lines + results


def _renames(text: SourceText, statements: list[ast.stmt], renamed: dict[str, Written]) -> list[Edit]:
    """The edits that put what stands for them in place of a helper's names."""
    edits = [
        (*text.span(n), (renamed[n.id] if _stands_alone(parent, n) else operand(renamed[n.id])).text)
        for s in statements
        for parent in ast.walk(s)
        for n in ast.iter_child_nodes(parent)
        if isinstance(n, ast.Name) and n.id in renamed
    ]
    in_strings = inside_strings(text.text)
    if any("\n" in new for _, _, new in edits) or any(
        s.lineno <= n <= s.end_lineno for s in statements for n in in_strings
    ):
        raise CannotInline
    return edits


def _own_names(
    local: set[str],
    returned: ast.Return | None,
    leaves: list[ast.Return],
    targets: list[str],
    arguments: dict,
    taken: set[str],
) -> dict[str, Written]:
    """What the helper's variables are called where they may not keep their names: what it returns as the target of the call, others as
    belonging to it."""
    value = returned.value if returned is not None and not leaves else None
    given = {name for _, node in arguments.values() for name in names_in(node)}
    out: dict[str, Written] = {}
    if isinstance(value, ast.Name) and value.id in local and len(targets) == 1 and targets[0] not in given | local:
        out[value.id] = variable(targets[0])
    for name in sorted((local & taken) - out.keys()):
        known = taken | local | given | {*arguments}
        own = f"{targets[0]}_{name}" if len(targets) == 1 else f"{name}_inside"
        out[name] = variable(numbered(own, known.__contains__))
    return out


@dataclass(frozen=True)
class _Around:
    """Names of the caller and of the helper. names: all of the caller; stored: what the helper assigns; targets: what the call is
    assigned to; ended: variables of the caller that may be overwritten, none in a loop."""

    names: set[str]
    stored: set[str]
    targets: frozenset[str]
    ended: set[str]


def _parameters(
    arguments: dict, constants: dict, helper: Frame, statements: list[ast.stmt], around: _Around
) -> tuple[list[str], dict[str, Written]]:
    """(the lines that give parameters their values, the parameters that stand as something else). Raises: CannotInline."""
    names, stored, ended = around.names, around.stored, around.ended
    before: list[str] = []
    renamed: dict[str, Written] = {}
    for name, (argument, node) in arguments.items():
        simple = node is None or isinstance(node, (ast.Name, ast.Constant))
        if not simple and is_arithmetic(node) and not stored & names_in(node):
            constant = isinstance(helper.args.get(name), ConstFact)
            simple = constant or _most_uses(statements, name) <= 1
        if name in stored:
            if argument != name:
                if name in names - ended:
                    raise CannotInline
                if any(name in names_in(other) for parameter, (_, other) in arguments.items() if parameter != name):
                    renamed[name] = _inside(name, around, arguments)  # what the caller calls so is still needed
                before.append(f"{renamed.get(name, name)} = {closed(argument)}")
            elif name not in around.targets and name not in ended:
                if not ended:  # in a loop, which hands its variables on
                    raise CannotInline
                renamed[name] = _inside(name, around, arguments)
                before.append(f"{renamed[name]} = {name}")
        elif argument != name:
            if simple and argument not in stored:
                renamed[name] = argument
            else:
                if name in names:
                    if not ended:
                        raise CannotInline
                    renamed[name] = variable(numbered(name, (names | stored).__contains__))
                constant = constants.get(name) if isinstance(helper.args.get(name), ConstFact) else None
                own = renamed.get(name, name)
                before.append(f"{own}: {constant} = {closed(argument)}" if constant else f"{own} = {closed(argument)}")
    return before, renamed


def names_in(node: ast.AST | None) -> set[str]:
    return {n.id for n in ast.walk(node) if isinstance(n, ast.Name)} if node is not None else set()


def _inside(name: str, around: _Around, arguments: Iterable[str]) -> Written:
    """What a parameter is called where the caller has its name."""
    return variable(numbered(f"{name}_inside", {*around.names, *around.stored, *arguments}.__contains__))


def _same_globals(helper: ast.FunctionDef, fn: JITFunction, kernel: ast.FunctionDef, into: JITFunction) -> bool:
    """Whether what the helper finds outside of itself is the same where it is called."""
    names = {n.id for s in helper.body for n in ast.walk(s) if isinstance(n, ast.Name)} - _bound_in(helper)
    missing = object()
    return not names & _bound_in(kernel) and all(
        fn.__globals__.get(name, missing) is into.__globals__.get(name, missing) for name in names
    )


def _bound_in(function: ast.FunctionDef) -> set[str]:
    """The parameters and variables of a function."""
    stored = {n.id for n in ast.walk(function) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store)}
    return stored | {a.arg for a in ast.walk(function) if isinstance(a, ast.arg)}


def _annotation(parameter: ast.arg, fn: JITFunction, into: JITFunction) -> str | None:
    """The annotation of a helper's parameter, where it means the same in the caller."""
    names = [n.id for n in ast.walk(parameter.annotation or ast.Constant(None)) if isinstance(n, ast.Name)]
    known = bool(names) and all(fn.__globals__.get(n) is into.__globals__.get(n) is not None for n in names)
    return unparsed(parameter.annotation) if known else None


def _leaves(s: ast.stmt, frame: Frame) -> list[ast.Return]:
    """The returns that end every branch of a condition decided at compile time."""
    if not isinstance(s, ast.If) or not isinstance(frame.fact(s.test), ConstFact):
        return []
    out: list[ast.Return] = []
    for branch in (s.body, s.orelse):
        last = branch[-1] if branch else None
        if isinstance(last, ast.Return):
            out.append(last)
        elif last is not None and _leaves(last, frame):
            out += _leaves(last, frame)
        else:
            return []
    return out


def _most_uses(statements: list[ast.stmt], name: str) -> int:
    """How often one way through the statements uses a name; a loop counts twice."""
    uses = 0
    for s in statements:
        here = sum(isinstance(n, ast.Name) and n.id == name for n in ast.walk(s))
        if isinstance(s, (ast.For, ast.While)):
            here *= 2
        elif isinstance(s, ast.If):
            branches = [_most_uses(b, name) for b in (s.body, s.orelse)]
            here = max(branches) + sum(isinstance(n, ast.Name) and n.id == name for n in ast.walk(s.test))
        uses += here
    return uses


def _stands_alone(parent: ast.AST, node: ast.expr) -> bool:
    """Whether an expression in place of `node` needs no parentheses."""
    if isinstance(parent, ast.Call):
        return node in parent.args
    return isinstance(parent, (ast.If, ast.keyword, ast.Assign, ast.Return))


def _arguments(source: SourceText, tree: ast.FunctionDef, call: ast.Call, helper: Frame):
    """Parameter -> (text, node); constants that the call leaves to defaults have no node."""
    parameters = [a.arg for a in tree.args.args]
    if tree.args.vararg or tree.args.kwarg or any(isinstance(a, ast.Starred) for a in call.args):
        raise CannotInline
    out: dict[str, tuple[Written, ast.expr | None]] = {}
    for name, node in [*zip(parameters, call.args), *((k.arg, k.value) for k in call.keywords)]:
        out[name] = Written(source.of(node), form_of(node), open=source.is_open(node)), node
    for name in parameters:
        if name not in out:
            fact = helper.args.get(name)
            if not isinstance(fact, ConstFact) or not isinstance(fact.value, (int, float, bool, str, type(None))):
                raise CannotInline
            out[name] = literal(fact.value), None
    return out


def _targets(statement: ast.stmt) -> list[str]:
    if isinstance(statement, ast.Expr):
        return []
    if len(statement.targets) != 1:
        raise CannotInline
    target = statement.targets[0]
    elements = target.elts if isinstance(target, (ast.Tuple, ast.List)) else [target]
    if not all(isinstance(e, ast.Name) for e in elements):
        raise CannotInline
    return [e.id for e in elements]


def _after_header(text: SourceText, tree: ast.FunctionDef) -> int:
    """The line (from 1) after which the statements of the body start, docstring excluded."""
    first = tree.body[0]
    if isinstance(first, ast.Expr) and isinstance(first.value, ast.Constant) and isinstance(first.value.value, str):
        return first.end_lineno or first.lineno
    return text.first_line(first) - 1


def _results(
    text: SourceText, edits, statement: ast.stmt, returned: ast.Return | None, targets: list[str]
) -> list[str]:
    """Assignments of what the helper returns to what the call was assigned to."""
    if isinstance(statement, ast.Expr):
        return []
    if returned is None or returned.value is None:
        raise CannotInline
    value = returned.value
    elements = value.elts if isinstance(value, ast.Tuple) and len(targets) > 1 else [value]
    if len(elements) != len(targets):
        raise CannotInline
    texts = []
    for e in elements:
        start, end = text.span(e)
        changed = replace_spans(text.text, start, end, [x for x in edits if start <= x[0] and x[1] <= end])
        texts.append(closed(Written(changed, form_of(e), open=text.is_open(e))).text)
    pairs = [(t, e) for t, e in zip(targets, texts) if t != e]
    return [f"{', '.join(t for t, _ in pairs)} = {', '.join(e for _, e in pairs)}"] if pairs else []
