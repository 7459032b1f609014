"""Rule rows: what becomes of a call, as data.

A row names the function that Triton called, not its spelling: aliases, methods and names imported on their own find the same row.
Tests, the reference page and `gluonize explain` are made from the rows.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property

from gluonize.rules.targets import Target
from gluonize.rules.template import Template, template

LANGUAGE = "triton.language"
KINDS = (
    "elementwise creator load store atomic reduce scan shape dot dot_scaled gather histogram descriptor helper same refuse"
).split()
# How the layouts of a call's tensors follow from each other. Several in a row are steps, from the operands to the result.
LAYOUTS = {
    "none": "nothing has a layout",
    "same": "tensor operands and result have one layout",
    "given": "the result gets a layout argument",
    "slice": "the result has a slice of the operand's layout, along the axis",
    "expand": "the operand has a slice of the result's layout, along each new axis",
    "squeeze": "the result's layout is the operand's with one dimension less",
    "broadcast": "the operand has the result's layout, in which dimensions of one element are spread",
    "reshape": "the result's layout is what Triton infers for a reshape of the operand",
    "permute": "the result's layout is what Triton infers for a permutation of the operand",
    "join": "operands have one layout, the result's has a last dimension of two more",
    "split": "the operand's last dimension lies in one lane, and is gone from the results' layout",
    "placed": "they are read back from Triton's own module",
}


@dataclass(frozen=True)
class Example:
    """One statement and what becomes of it. use: what is stored of `y` where that is no tensor of 64 elements.

    In it `x` is a block of 64 floats, `i` of 64 integers, `u` of unsigned ones, `k` of 64 conditions, `m` a block of 16 x 16 floats, `q` one of 8 x 8;
    `x_ptr` and `y_ptr` point to 64 floats, `n_ptr` to 64 integers. after: the statement in the output or what is
    new in it.
    """

    before: str
    after: str
    use: str = ""


@dataclass(frozen=True)
class Row:
    """What becomes of calls of one function.

    callee: the function by module and name; `triton.language.NAME` when left out, methods of tensors included. kind: which code
    of `translator/write` decides about layouts. becomes: the template, "" where code writes the call (`note` says why). takes: the
    parameters that the template speaks about, when it does not take all of them; a call that gives others has no row. needs: the
    capability (a field of `rules/targets.py`) without which a target has no such row. cost: `heavy` where computing it again in a second
    layout costs more than a conversion. of_scalar: the template for an operand without a layout. with_index, combine: of a
    reduction that gives places too. added: arguments that are written where the author gives none. buffer_types: elements of which
    there is a buffer operation.
    """

    name: str
    kind: str
    becomes: str = ""
    layouts: tuple[str, ...] = ("same",)
    callee: str = ""
    needs: str = ""
    takes: tuple[str, ...] = ()
    cost: str = "cheap"
    of_scalar: str = ""
    with_index: str = ""
    combine: str = ""
    added: Mapping[str, str] = field(default_factory=dict, hash=False)
    buffer_types: tuple[str, ...] = ()
    note: str = ""
    example: Example | None = None
    near_miss: Example | None = None

    def __post_init__(self):
        assert self.kind in KINDS, f"row {self.name}: unknown kind {self.kind}"
        assert self.cost in ("cheap", "heavy"), f"row {self.name}: unknown cost {self.cost}"
        unknown = [name for name in self.layouts if name not in LAYOUTS]
        assert not unknown, f"row {self.name}: unknown layouts {unknown}"
        assert not self.needs or self.needs in dir(Target) or self.needs in Target.__dataclass_fields__, self.needs
        examples = self.example is not None and self.near_miss is not None
        assert examples or not self.becomes, f"row {self.name}: a template needs an example and a near miss"

    @property
    def id(self) -> str:
        """The function that is called: `triton.language.exp`."""
        return self.callee or f"{LANGUAGE}.{self.name}"

    @property
    def template(self) -> Template | None:
        return template(self.becomes) if self.becomes else None

    def serves(self, target: Target) -> bool:
        return not self.needs or bool(getattr(target, self.needs))


def with_rows(names: str, row: Row) -> list[Row]:
    """One row per name; `NAME` in templates and examples is the name."""

    def named(text: str, name: str) -> str:
        return text.replace("NAME", name)

    def example(found: Example | None, name: str) -> Example | None:
        return found and Example(named(found.before, name), named(found.after, name), found.use)

    return [
        replace(
            row,
            name=name,
            becomes=named(row.becomes, name),
            example=example(row.example, name),
            near_miss=example(row.near_miss, name),
        )
        for name in names.split()
    ]


@dataclass(frozen=True)
class RuleSet:
    """The rows in force: those of `triton.language`, and more that were given. Of two rows for one function the last counts."""

    rows: tuple[Row, ...]

    @cached_property
    def by_callee(self) -> Mapping[str, Row]:
        return {row.id: row for row in self.rows}

    def row(self, callee: str, target: Target) -> Row | None:
        """The row for a function on a target, None without one."""
        found = self.by_callee.get(callee)
        return found if found is not None and found.serves(target) else None

    def adding(self, rows: Iterable[Row]) -> RuleSet:
        return RuleSet((*self.rows, *rows))
