"""What is checked before each launch of a translated kernel: storage, signs, descriptors, and bounds of what its offsets are.

The check is a hook of the jit function; where it asks for the number of programs it stands around the function's `run`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from gluonize.facts.integers.host_bounds import Condition, needed
from gluonize.output.contracts.launch_conditions import asks_grid, condition_lines, run_checked_name, run_wrapper
from gluonize.output.contracts.seen_rows import AS_LAUNCHED, MATCHES, TOLD_LINES, shown, spelled
from gluonize.triton_api.jit_functions import JITFunction
from gluonize.write.contracts.configuration import Configuration, words_of
from gluonize.write.contracts.contracts import quoted
from gluonize.write.state.unit import Record


@dataclass(frozen=True)
class AskedOfSome:
    """What is asked of the launches that one of several texts serves, and not of all. row: how arguments show them; words: the same
    for people."""

    row: dict[str, Any]
    words: str
    multiples: tuple[str, ...]
    aligned: tuple[str, ...]

    def lines(self) -> list[str]:
        """For people: one line per assumption."""
        return [f"{line} for {self.words}" for line in _alignment_lines(self)]


@dataclass(frozen=True)
class RunTimeContract:
    """What only the arguments of a launch can show."""

    within_2gib: tuple[str, ...]  # pointers whose storage 32-bit offsets must reach
    non_negative: tuple[str, ...]
    descriptors: tuple[str, ...] = ()  # arguments that take (base, shape, strides) for the descriptor of the source
    conditions: tuple[tuple[Condition, str], ...] = ()  # each with an expression that it is for
    multiples: tuple[str, ...] = ()  # of 16: arguments (`K`), strides of descriptors (`desc.strides.0`)
    aligned: tuple[str, ...] = ()  # pointers whose tensors start at multiples of 16 bytes
    images: tuple[str, ...] = ()  # arguments that take the parts of a descriptor of images
    positive: tuple[str, ...] = ()  # floats from 2**-30 to 2**30
    of_some: tuple[AskedOfSome, ...] = ()

    @classmethod
    def of(cls, records: Sequence[Record], least: Mapping[str, int] = {}) -> RunTimeContract:
        """What the texts with these records ask of a launch; least: what the kernel asserts of constexpr arguments."""
        pointers = {name for record in records for name in record.buffer_pointers}
        numbers = {name for record in records for name in record.non_negative}
        tuples = {name for record in records for name in record.descriptor_tuples}
        asked = [(c, what) for record in reversed(records) for c, what in record.conditions.items()]
        found = {Condition(c.bound.knowing(numbers), c.most): what for c, what in asked}
        conditions = tuple((c, found[c]) for c in needed(found, dict.fromkeys(numbers, 0) | least))
        multiples = {name for record in records for name in record.multiples}
        aligned = {name for record in records for name in record.aligned}
        held = tuple(tuple(sorted(names)) for names in (pointers, numbers, tuples))
        images = {name for record in records for name in record.image_tuples}
        positive = {name for record in records for name in record.positive}
        named = (tuple(sorted(names)) for names in (multiples, aligned, images, positive))
        return cls(*held, conditions, *named)

    def __bool__(self) -> bool:
        return bool(self.conditions or self.of_some) or any(getattr(self, field) for field in _FIELDS)

    def asked(self, field: str) -> str:
        """The names of a field as a hook spells them: a variable where some launches are asked for more; empty where none are."""
        if any(getattr(some, field, ()) for some in self.of_some):
            return field
        return names_tuple(names) if (names := getattr(self, field)) else ""

    def lines_apart(self) -> list[str]:
        """Statements that find what is asked of this launch, in the variables that `asked` names."""
        fields = [field for field in ("multiples", "aligned") if self.asked(field) == field]
        if not fields:
            return []
        left_out = {k: v for k, v in AS_LAUNCHED.items() if any(k in x.row for x in self.of_some)}
        rows = (
            f"({', '.join([spelled(x.row), *(names_tuple(getattr(x, f)) for f in fields)])})," for x in self.of_some
        )
        return [
            *(f"    {field} = {names_tuple(getattr(self, field))}" for field in fields),
            *TOLD_LINES,
            *([f"    seen = {spelled(left_out)} | seen"] if left_out else []),
            f"    for row, {', '.join(f'more_{field}' for field in fields)} in (",
            *(f"        {row}" for row in rows),
            "    ):",
            f"        if {MATCHES}:",
            *(f"            {field} += more_{field}" for field in fields),
        ]

    @property
    def asks_grid(self) -> bool:
        return asks_grid(self.conditions)

    @property
    def asks_strides(self) -> bool:
        """Whether a stride of a descriptor has to be a multiple."""
        return any(".strides." in name for x in (self, *self.of_some) for name in x.multiples)

    def lines(self) -> list[str]:
        """For people: one line per assumption."""
        out = [f"storage of {', '.join(self.within_2gib)} within 2 GiB"] if self.within_2gib else []
        out += [f"{', '.join(self.non_negative)} >= 0"] if self.non_negative else []
        out += [str(condition) for condition, _ in self.conditions]
        out += _alignment_lines(self)
        out += [line for some in self.of_some for line in some.lines()]
        out += [f"{', '.join(self.positive)} positive, from 2**-30 to 2**30"] if self.positive else []
        out += [f"{name} is ({IMAGE_PARTS}) of the descriptor of images" for name in self.images]
        return out + [
            f"{name} is (base, tuple(shape), tuple(strides)) of the tensor descriptor" for name in self.descriptors
        ]


def _alignment_lines(asked: AskedOfSome | RunTimeContract) -> list[str]:
    out = [f"{', '.join(asked.multiples)} divisible by 16"] if asked.multiples else []
    return out + ([f"{', '.join(asked.aligned)} at multiples of 16 bytes"] if asked.aligned else [])


def contract_of_texts(
    texts: Sequence[tuple[Sequence[Record], Sequence[Configuration]]], least: Mapping[str, int]
) -> RunTimeContract:
    """The contract of several texts behind one name, each with the configurations that run it; least: as in `RunTimeContract.of`."""
    contract = RunTimeContract.of([record for records, _ in texts for record in records], least)
    own = [RunTimeContract.of(records, least) for records, _ in texts]
    multiples, aligned = (
        tuple(name for name in getattr(contract, field) if all(name in getattr(x, field) for x in own))
        for field in ("multiples", "aligned")
    )
    of_some: list[AskedOfSome] = []
    for (_, rows), asked in zip(texts, own):
        more = tuple(name for name in asked.multiples if name not in multiples)
        starts = tuple(name for name in asked.aligned if name not in aligned)
        asked_rows = rows if more or starts else ()
        of_some += [
            AskedOfSome(shown(row), words_of(tuple(row), tuple(row.values())), more, starts) for row in asked_rows
        ]
    return replace(contract, multiples=multiples, aligned=aligned, of_some=tuple(of_some))


def names_tuple(names: Sequence[str]) -> str:
    quotes = ", ".join(f'"{name}"' for name in names)
    return f"({quotes},)" if len(names) == 1 else f"({quotes})"  # `()` of none


def multiple_lines(names: str, strides: bool, refusal: str) -> list[str]:
    """Statements that refuse an argument, or a stride of a descriptor, that is no multiple of 16; strides: some are of descriptors."""
    if not strides:
        return [
            f"    for name in {names}:",
            "        if isinstance(given.get(name), int) and given[name] % 16:",
            f"            {refusal}",
        ]
    return [
        f"    for name in {names}:",
        '        held, _, axis = name.partition(".strides.")',
        "        value = given[held][2][int(axis)] if axis else given.get(held)",
        "        if isinstance(value, int) and value % 16:",
        f"            {refusal}",
    ]


def aligned_lines(names: str, refusal: str) -> list[str]:
    """Statements that refuse a tensor that starts at no multiple of 16 bytes, such as a slice."""
    return [
        f"    for name in {names}:",
        '        start = getattr(given.get(name), "data_ptr", None)',
        "        if start is not None and start() % 16:",
        f"            {refusal}",
    ]


def positive_lines(names: str, refusal: str) -> list[str]:
    """Statements that refuse a number that is not positive, or so small or great that products with it may not be normal numbers."""
    return [
        f"    for name in {names}:",
        "        if given.get(name) is not None and not 2**-30 <= given[name] <= 2**30:",
        f"            {refusal}",
    ]


def check_name(kernel: str) -> str:
    return f"_check_{kernel.lstrip('_')}"


def checked_name(kernel: str) -> str:
    return f"_checked_{kernel.lstrip('_')}"


_FIELDS = ("within_2gib", "non_negative", "descriptors", "multiples", "aligned", "images", "positive")
IMAGE_PARTS = "base, shape, strides, pixel_box_lower_corner, pixel_box_upper_corner, steps"
_CHECKED_RUN = (
    "    def checked(*args, **kwargs):",
    "        check(*args, **kwargs)",
    "        return run(*args, **kwargs)",
)
_BASE_OF_TUPLE = (
    "        tensor = given.get(name)",
    "        tensor = tensor[0] if isinstance(tensor, tuple) else tensor",
)


def checks_a_default(fn: JITFunction, contract: RunTimeContract) -> bool:
    """Whether the contract is about a number that a launch may leave to its default in the kernel's definition."""
    more = (name for some in contract.of_some for name in (*some.multiples, *some.row))
    asked = frozenset((*contract.non_negative, *contract.multiples, *contract.positive, *more))
    asked = asked.union(*(c.bound.arguments() for c, _ in contract.conditions))
    return any(p.has_default and p.name in asked for p in fn.params)


def guard(
    kernel: str, contract: RunTimeContract, arguments: Sequence[str] = (), defaults_of: str = "", shared: bool = False
) -> str:
    """A hook that refuses, before a launch, arguments outside the contract.

    Triton calls it with the arguments of the launch, positional ones as given (`JITFunction.run`), and without those that
    are left to their defaults; autotune and heuristics pass theirs on by name. A tensor shows its storage as torch does;
    anything else has none to check.
    arguments: the names of the kernel's arguments, for a kernel that is no global of the file.
    defaults_of: the jit function that has the defaults of the arguments that a launch leaves out.
    shared: the file has `SHARED_CHECK`, which does the work.
    """
    names = names_tuple(arguments) if arguments else f"{kernel}.arg_names"
    defaults = f"{{p.name: p.default for p in {defaults_of}.params}} | " if defaults_of else ""
    lines = [
        f"def {check_name(kernel)}(*args, **kwargs):",
        f'    """Refuse a launch of {kernel} outside what its translation assumes."""',
        f"    given = {defaults}dict(zip({names}, args)) | kwargs",
    ]
    lines += contract.lines_apart()
    terms = {field: contract.asked(field) for field in _FIELDS}
    if shared:
        given = [f"{field}={names}" for field, names in terms.items() if names]
        lines += [f"    {SHARED_CHECK_NAME}({', '.join([quoted(kernel), 'given', *given])})"] if given else []
        return "\n".join([*lines, *condition_lines(kernel, contract.conditions)])
    listed = [terms[field] for field in _FIELDS]
    both = bool({*contract.descriptors, *contract.images} & set(contract.within_2gib))
    asked = _refusals(kernel, *listed, both, contract.asks_strides)
    return "\n".join([*lines, *asked, *condition_lines(kernel, contract.conditions)])


def _refusals(
    kernel: str,
    within_2gib: str,
    non_negative: str,
    descriptors: str,
    multiples: str,
    aligned: str,
    images: str,
    positive: str,
    both: bool,
    strides: bool,
) -> list[str]:
    """The statements of a hook; kernel: its name, or a variable in braces; both: a descriptor's base is checked too; strides: its
    strides are."""
    lines: list[str] = []
    if within_2gib:
        lines += [
            f"    for name in {within_2gib}:",
            *(_BASE_OF_TUPLE if both else ()),
            f'        storage = getattr({"tensor" if both else "given.get(name)"}, "untyped_storage", None)',
            "        if storage is not None and storage().size() > 2**31 - 1:",
            f'            raise ValueError(f"{kernel}: storage of {{name}} exceeds 2 GiB")',
        ]
    if non_negative:
        lines += [
            f"    for name in {non_negative}:",
            "        if isinstance(given.get(name), int) and given[name] < 0:",
            f'            raise ValueError(f"{kernel}: {{name}} is negative")',
        ]
    if descriptors:
        lines += [
            f"    for name in {descriptors}:",
            "        if not isinstance(given.get(name), tuple):",
            f'            raise TypeError(f"{kernel}: {{name}} takes (base, tuple(shape), tuple(strides)) of the descriptor")',
        ]
    if multiples:
        lines += multiple_lines(multiples, strides, f'raise ValueError(f"{kernel}: {{name}} is no multiple of 16")')
    if aligned:
        lines += aligned_lines(aligned, f'raise ValueError(f"{kernel}: {{name}} starts at no multiple of 16 bytes")')
    if positive:
        lines += positive_lines(positive, f'raise ValueError(f"{kernel}: {{name}} is not from 2**-30 to 2**30")')
    if images:
        lines += [
            f'    parts = "{IMAGE_PARTS}"',
            f"    for name in {images}:",
            "        value = given.get(name)",
            "        if not isinstance(value, tuple) or len(value) != 6 or {*map(len, value[3:])} != {len(value[1]) - 2}:",
            f'            raise TypeError(f"{kernel}: {{name}} takes ({{parts}}) of the descriptor")',
        ]
    return lines


SHARED_CHECK_NAME = "_refuse_outside"


def shared_check(contracts: Sequence[RunTimeContract]) -> str:
    """The function that the hooks of several kernels of a file call with the arguments of a launch."""
    used = [field for field in _FIELDS if any(c.asked(field) for c in contracts)]
    lines = [
        f"def {SHARED_CHECK_NAME}({', '.join(['kernel', 'given', *(f'{field}=()' for field in used)])}):",
        '    """Refuse a launch outside what the translation of its kernel assumes."""',
    ]
    listed = [field if field in used else "" for field in _FIELDS]
    return "\n".join(
        [
            *lines,
            *_refusals(
                "{kernel}", *listed, bool({"descriptors", "images"} & {*used}), any(c.asks_strides for c in contracts)
            ),
        ]
    )


def hook(kernel: str, jit: str, contract: RunTimeContract) -> str:
    """The statement that has every launch of the jit function `jit` checked."""
    if contract.asks_grid:  # a hook is not given it
        wrapper = run_wrapper(kernel, check_name(kernel))
        return f"{wrapper}\n\n\n{jit}.run = {run_checked_name(kernel)}({jit}.run)"
    return f"{jit}.add_pre_run_hook({check_name(kernel)})"


def installer(kernel: str, contract: RunTimeContract, fn: JITFunction, around_run: bool = False) -> str:
    """A decorator that puts the hook of `guard` on a jit function, for a kernel that is no global of the file.

    around_run: on something else that has a `run`, and calls no hooks.
    """
    check = check_name(kernel)
    lines = [f"def {checked_name(kernel)}(kernel):"]
    if checks_a_default(fn, contract) and not around_run:
        lines.append("    defaults = {p.name: p.default for p in kernel.params}")
        given = "defaults | dict(zip(kernel.arg_names, args)) | kwargs"
        check = f"lambda *args, **kwargs: {check}(**({given}))"
    if not contract.asks_grid and not around_run:
        return "\n".join([*lines, f"    kernel.add_pre_run_hook({check})", "    return kernel"])
    body = [
        "    run, check = kernel.run, " + check,
        "",
        *_CHECKED_RUN,
        "",
        "    kernel.run = checked",
        "    return kernel",
    ]
    return "\n".join([*lines, *body])
