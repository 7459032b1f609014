"""What is checked before each launch of a translated kernel: storage, signs, multiples, descriptors, and bounds of what its offsets are; and
the options that change numbers, which every launch is given that does not say otherwise.

    def _check_add_kernel(x_ptr, y_ptr, output_ptr, n_elements, *_, **__):
        if n_elements > 2**31 - 1024:
            raise ValueError(f"add_kernel: n_elements <= 2**31 - 1024 is false for {n_elements=}")


    add_kernel.run = functools.partial(add_kernel.run, enable_fp_fusion=True)
    if os.environ.get("GLUON_LAUNCH_CHECKS") != "0":
        add_kernel.add_pre_run_hook(_check_add_kernel)

A check is a hook of the jit function, with the first arguments of the kernel; where a condition asks for the number of programs, it stands around
the function's `run`. Options stand around `run` too, so that launches of other files, and those of `triton.autotune`, have them: what
Triton does by itself differs from one release to the next.
"""

from __future__ import annotations

import ast
import re
import textwrap
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from gluonize.facts.integers.host_bounds import Condition, spelled
from gluonize.gluon.imports import Import
from gluonize.gluon.trees.function import INDENT, LINE_LENGTH
from gluonize.numbered import numbered
from gluonize.output.contracts.fewest import fewest
from gluonize.output.contracts.seen_rows import AS_LAUNCHED, shown
from gluonize.read.files.generated_names import check_name
from gluonize.read.spec.launch import LaunchSpec
from gluonize.read.text.parsed import parsed_text
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
    def of(cls, records: Sequence[Record], asserted: Mapping[str, Collection[int]] = {}) -> RunTimeContract:
        """What the texts with these records ask of a launch; asserted: the values that constexpr arguments may have in the kernel."""
        pointers = {name for record in records for name in record.buffer_pointers}
        numbers = {name for record in records for name in record.non_negative}
        tuples = {name for record in records for name in record.descriptor_tuples}
        asked = [(c, what) for record in reversed(records) for c, what in record.conditions.items()]
        found = {Condition(c.bound.knowing(numbers), c.most): what for c, what in asked}
        least = {name: min(values) for name, values in asserted.items()}
        values = {name: least[name] for name, every in asserted.items() if len({*every}) == 1}
        conditions = fewest(found, dict.fromkeys(numbers, 0) | least, values)
        multiples = {name for record in records for name in record.multiples}
        aligned = {name for record in records for name in record.aligned}
        held = tuple(tuple(sorted(names)) for names in (pointers, numbers, tuples))
        images = {name for record in records for name in record.image_tuples}
        positive = {name for record in records for name in record.positive}
        named = (tuple(sorted(names)) for names in (multiples, aligned, images, positive))
        return cls(*held, conditions, *named)

    def __bool__(self) -> bool:
        return bool(self.conditions or self.of_some) or any(getattr(self, field) for field in _FIELDS)

    @property
    def asks_grid(self) -> bool:
        return any(condition.bound.asks_grid() for condition, _ in self.conditions)

    @property
    def signed(self) -> list[str]:
        """What is not negative, but for numbers of which a condition says it with what they are at most."""
        said = {c.bound.parts[0] for c, _ in self.conditions if self.from_zero(c)}
        return [name for name in self.non_negative if name not in said]

    def from_zero(self, condition: Condition) -> str:
        """`0 <= ` of a condition on one number that is not negative: `0 <= K <= 4096`."""
        bound = condition.bound
        return "0 <= " if bound.op == "argument" and bound.parts[0] in self.non_negative else ""

    def lines(self) -> list[str]:
        """For people: one line per assumption."""
        out = [f"storage of {', '.join(self.within_2gib)} within 2 GiB"] if self.within_2gib else []
        out += [f"{', '.join(self.signed)} >= 0"] if self.signed else []
        out += [f"{self.from_zero(condition)}{condition}" for condition, _ in self.conditions]
        out += _alignment_lines(self)
        out += [line for some in self.of_some for line in some.lines()]
        out += [f"{', '.join(self.positive)} positive, from 2**-30 to 2**30"] if self.positive else []
        out += [f"{name} is ({IMAGE_PARTS}) of the descriptor of images" for name in self.images]
        return out + [
            f"{name} is (base, tuple(shape), tuple(strides)) of the tensor descriptor" for name in self.descriptors
        ]


def _alignment_lines(asked: AskedOfSome | RunTimeContract) -> list[str]:
    starts = [f"addresses of {', '.join(asked.aligned)}"] if asked.aligned else []
    named = [*([", ".join(asked.multiples)] if asked.multiples else []), *starts]
    return [f"{' and '.join(named)} divisible by 16"] if named else []


def contract_of_texts(
    texts: Sequence[tuple[Sequence[Record], Sequence[Configuration]]], asserted: Mapping[str, Collection[int]]
) -> RunTimeContract:
    """The contract of several texts behind one name, each with the configurations that run it; asserted: as in `RunTimeContract.of`."""
    contract = RunTimeContract.of([record for records, _ in texts for record in records], asserted)
    own = [RunTimeContract.of(records, asserted) for records, _ in texts]
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


_FIELDS = ("within_2gib", "non_negative", "descriptors", "multiples", "aligned", "images", "positive")
IMAGE_PARTS = "base, shape, strides, pixel_box_lower_corner, pixel_box_upper_corner, steps"

SWITCH = "GLUON_LAUNCH_CHECKS"
_BUILTINS = ("all", "getattr", "hasattr", "int", "isinstance", "len", "map", "max", "min", "str", "tuple")
_TENSOR, _GRID, _OPTIONS, _OTHERS = "tensor", "grid", "options", "_"  # what a check has beside arguments of the kernel

# Of a tensor: what is None, or a type that stands for a tensor while a launch is only warmed up, has nothing to check.
_STORED = ("untyped_storage", "untyped_storage().size()")
_PLACED = ("data_ptr", "data_ptr()")


@dataclass(frozen=True)
class Required:
    """One condition of a launch. holds, broken: Python that is true where it is kept, and where it is not; said: what a refusal says,
    as the inside of f-strings, the best one first; tensors: of which each is asked by itself."""

    holds: str
    broken: str
    said: tuple[str, ...]
    tensors: tuple[str, ...] = ()

    @property
    def has_room(self) -> bool:
        """Whether it is no longer than a line, nor the values that it names."""
        return len(self.broken) <= LINE_LENGTH - len("    if :") and (
            bool(self.tensors) or len(self.said[1]) <= _VALUES
        )


@dataclass(frozen=True)
class Asked:
    """A contract, and the arguments of its kernel, of these those that are compile-time constants, which may be numbers of another class than
    `int`, those that are None in some launch, and those that have defaults, with their texts. by_run: of a kernel that is launched by its own
    `run(...)`, which calls no hooks and is told no compile-time constants: these are taken to be 0. states_options: whether its decorator says
    what it is compiled with."""

    contract: RunTimeContract
    arguments: tuple[str, ...]
    constants: frozenset[str] = frozenset()
    optional: frozenset[str] = frozenset()
    defaults: Mapping[str, str] = field(default_factory=dict)
    by_run: bool = False
    states_options: bool = False

    @property
    def conditions(self) -> list[tuple[Condition, str]]:
        """Those that can be asked: `run` does not say the grid."""
        return [(c, what) for c, what in self.contract.conditions if not (self.by_run and c.bound.asks_grid())]

    @property
    def asks_grid(self) -> bool:
        return any(c.bound.asks_grid() for c, _ in self.conditions)

    def word(self, name: str) -> str:
        """What a check calls something beside the arguments of its kernel, of which one may have that name."""
        return numbered(f"{name}_", self.arguments.__contains__) if name in self.arguments else name

    def number(self, name: str) -> str:
        """An argument, or a part of one that is a descriptor, as a number."""
        if self.by_run and name in self.constants:
            return "0"
        owner, _, size = name.partition(".shape[")
        if size:
            return f"{owner}[1][{size}"
        held, _, axis = name.partition(".strides.")
        text = f"{held}[2][{axis}]" if axis else name
        return f"({text} or 0)" if name in self.optional else text

    def whole(self, name: str) -> str:
        """A number of which more is made: those of some classes wrap around."""
        return f"int({self.number(name)})" if name in self.constants else self.number(name)

    def parts(self, text: str) -> list[str]:
        """The arguments in an expression, or the parts of arguments, for a message."""
        found: dict[str, None] = {}

        def look(node: ast.AST) -> None:
            own = node
            while isinstance(own, ast.Subscript) and isinstance(own.slice, ast.Constant):
                own = own.value
            if isinstance(own, ast.Name):
                known = own.id in self.arguments or (own.id == _GRID and own is not node)
                found.update({f"{{{ast.unparse(node)}=}}": None} if known else {})
            else:
                for child in ast.iter_child_nodes(node):
                    look(child)

        look(parsed_text(text, mode="eval"))
        return [*found]

    def multiples(self, names: Sequence[str]) -> Required:
        numbers = [self.number(name) for name in names]
        said = self.told(numbers, "{} is not a multiple of 16", "not all multiples of 16: {}")
        holds = " == ".join([*(f"{number} % 16" for number in numbers), "0"])
        return Required(holds, " or ".join(f"{number} % 16" for number in numbers), said)

    def not_negative(self, names: Sequence[str]) -> Required:
        numbers = [self.number(name) for name in names]
        least = f"min({', '.join(numbers)})" if len(names) > 1 else numbers[0]
        said = self.told(numbers, "{} is negative", "not all >= 0: {}")
        return Required(f"{least} >= 0", f"{least} < 0", said)

    def told(self, numbers: Sequence[str], one: str, several: str) -> tuple[str, ...]:
        """What is said of one number, or of several: with their names, or where these are too many their values."""
        parts = [part for number in numbers for part in self.parts(number)]
        text = one if len(parts) == 1 else several
        values = (", ".join(parts), ", ".join(parts).replace("=}", "}"))
        return *(text.format(each) for each in values), text.format("").removesuffix(": ")

    def tensors(self, names: Sequence[str], has: tuple[str, str], fits: str, broken: str, said: str) -> Required:
        """Of descriptors their tensors are tested. has: an attribute of tensors, and what is asked of them by it; said: of one that fails."""
        tuples = {*self.contract.descriptors, *self.contract.images}
        every = tuple(f"{name}[0]" if name in tuples else name for name in names)
        attribute, asked = has
        one = self.word(_TENSOR) if len(every) > 1 else every[0]
        sequence = f"({', '.join(every)}{',' * (len(every) == 1)})"
        item = self.word(_TENSOR)
        holds = f'all([{item}.{asked}{fits} for {item} in {sequence} if hasattr({item}, "{attribute}")])'
        which = names[0] if len(names) == 1 else f"one of {', '.join(names)}"
        told = tuple(said.format(which=x, it=one) for x in (which, "a tensor"))
        return Required(holds, f'hasattr({one}, "{attribute}") and {one}.{asked}{broken}', told, every)

    def stored(self, names: Sequence[str]) -> Required:
        return self.tensors(names, _STORED, " < 2**31", " >= 2**31", "{which} has 2 GiB or more: {{{it}.shape}}")

    def aligned(self, names: Sequence[str]) -> Required:
        told = "{which} is not at a multiple of 16 bytes: {{{it}.data_ptr():#x}}"
        return self.tensors(names, _PLACED, " % 16 == 0", " % 16", told)

    def at_most(self, condition: Condition) -> Required:
        """A bound of a number."""
        value, most, low = condition.bound.text(self.whole), spelled(condition.most), self.contract.from_zero(condition)
        holds = f"{low}{value} <= {most}"
        parts = self.parts(value)
        said = [f"{holds} is false for {', '.join(parts)}", f"out of range: {', '.join(parts)}"]
        # What a launch has beside numbers of its own is to be seen in it.
        known = {f"{{{name}=}}" for name in self.constants}
        fewer = dict.fromkeys(re.sub(rf"^{{{_GRID}\[\d+\]", f"{{{_GRID}", part) for part in parts if part not in known)
        said += [f"out of range: {', '.join(fewer)}"]
        return Required(holds, f"not {holds}" if low else f"{value} > {most}", tuple(said))

    def unlike(self, row: Mapping[str, Any]) -> str:
        """That a launch is not one of a row; what it does not show may be anything."""
        texts = []
        for name, value in row.items():
            word = quoted(value) if isinstance(value, str) else repr(value)
            if name in AS_LAUNCHED:
                texts.append(f"{self.word(_OPTIONS)}.get({quoted(name)}, {AS_LAUNCHED[name]}) != {word}")
            elif name in self.constants and self.by_run:
                continue  # it is not told
            elif name in self.constants:
                texts.append(f"{name} not in ({word}, None)")
            else:
                texts.append(f'str(getattr({name}, "dtype", {word})).rpartition(".")[2] != {word}')
        return " or ".join(texts) or "False"

    def required(self, grid: str) -> list[Required]:
        """The conditions, those first that others rest on. grid: what the number of programs is called."""
        names = {rf"(?<![.\w]){word}(?=\()": f"builtins.{word}" for word in _BUILTINS if word in self.arguments}
        names |= {rf"\b{_GRID}(?=\[)": grid} if grid != _GRID else {}
        found = []
        for one in self._required():
            holds, broken, *said = one.holds, one.broken, *one.said
            for name, other in names.items():
                holds, broken, *said = (re.sub(name, other, text) for text in (holds, broken, *said))
            found.append(replace(one, holds=holds, broken=broken, said=tuple(said)))
        return found

    def _required(self) -> Iterator[Required]:
        def each(names: Sequence[str], made: Callable[[Sequence[str]], Required]) -> Iterator[Required]:
            """As many names in one as a line has room for."""
            while names:
                count = next((n for n in range(len(names), 1, -1) if made(names[:n]).has_room), 1)
                yield made(names[:count])
                names = names[count:]

        c = self.contract
        for name in (*c.descriptors, *c.images):
            parts = "base, shape, strides" if name in c.descriptors else IMAGE_PARTS
            yield Required(
                f"isinstance({name}, tuple)", f"not isinstance({name}, tuple)", (f"{name} is not ({parts})",)
            )
        for name in c.images:
            holds = f"len({name}) == 6 and {{*map(len, {name}[3:])}} == {{len({name}[1]) - 2}}"
            yield Required(holds, f"not ({holds})", (f"{name} is not ({IMAGE_PARTS})",))
        yield from each(c.within_2gib, self.stored)
        yield from each(c.aligned, self.aligned)
        yield from each(c.multiples, self.multiples)
        yield from each(c.signed, self.not_negative)
        for name in c.positive:
            holds = f"2**-30 <= {name} <= 2**30"
            yield Required(holds, f"not {holds}", (f"{holds} is false for {{{name}=}}",))
        yield from (self.at_most(condition) for condition, _ in self.conditions)
        for some in c.of_some:
            others = self.unlike(some.row)
            for asked in (*each(some.multiples, self.multiples), *each(some.aligned, self.aligned)):
                holds = f"{asked.holds} or {others}"
                said = tuple(text.replace(f"{{{self.word(_TENSOR)}.data_ptr():#x}}", "") for text in asked.said)
                yield Required(holds, f"not ({holds})", tuple(text.removesuffix(": ") for text in said))


_VALUES = 80  # columns of a message beside the name of a kernel


def _statements(one: Required, kernel: str, tensor: str) -> list[str]:
    """Raises where a launch breaks a condition."""
    looped = len(one.tensors) > 1
    depth = 3 if looped else 2
    quote = ('f"' if "{" in said else '"' for said in one.said)
    raised = [f"{'    ' * depth}raise ValueError({mark}{kernel}: {said}\")" for mark, said in zip(quote, one.said)]
    valued = [line for line, said in zip(raised, one.said) if "{" in said]
    wrapped = LINE_LENGTH + len("raise ValueError()") - len(INDENT)  # in lines of its own
    lines = [f"    for {tensor} in ({', '.join(one.tensors)}):"] if looped else []
    lines += [f"{'    ' * (depth - 1)}if {one.broken}:"]
    return [*lines, next((x for most in (LINE_LENGTH, wrapped) for x in valued if len(x) <= most), raised[-1])]


def _read(lines: Sequence[str]) -> set[str]:
    """The names in the body of a check."""
    return {n.id for n in ast.walk(parsed_text(textwrap.dedent("\n".join(lines)))) if isinstance(n, ast.Name)}


@dataclass(frozen=True)
class Checks:
    """The launch checks of a file. taken: names that it has; options: what kernels are launched with where a launch does not say otherwise."""

    asked: tuple[Asked, ...]
    taken: frozenset[str] = frozenset()
    options: tuple[tuple[str, Any], ...] = ()

    def __bool__(self) -> bool:
        return any(map(self.applies, self.asked))

    def applies(self, asked: Asked) -> bool:
        """Whether launches of a kernel are changed at all."""
        return bool(self.required(asked)) or self.pins(asked)

    def pins(self, asked: Asked) -> bool:
        return bool(self.options) and not asked.states_options

    @property
    def grid(self) -> str:
        """What checks call the number of programs: an argument of a kernel may have that name."""
        return numbered(_GRID, {name for asked in self.asked for name in asked.arguments}.__contains__)

    def required(self, asked: Asked) -> list[Required]:
        return asked.required(self.grid)

    def name_of(self, kernel: str) -> str:
        return numbered(check_name(kernel), self.taken.__contains__)

    def check(self, kernel: str, asked: Asked) -> str:
        """The function that refuses launches of a kernel; "" where there is nothing to refuse."""
        if not (required := self.required(asked)):
            return ""
        body = [line for one in required for line in _statements(one, kernel, asked.word(_TENSOR))]
        options = asked.word(_OPTIONS)
        more = f"**{options if options in _read(body) else numbered('__', asked.arguments.__contains__)}"
        parameters = [*self.parameters(asked), *(["*", self.grid] if asked.asks_grid else []), more]
        head = f"def {self.name_of(kernel)}({', '.join(parameters)}):"
        if len(head) > LINE_LENGTH and len(", ".join(parameters)) > LINE_LENGTH - len(INDENT):
            every = textwrap.wrap(", ".join(parameters), LINE_LENGTH - len(INDENT), break_on_hyphens=False)
            head = "\n".join([f"def {self.name_of(kernel)}(", *(INDENT + line for line in every), "):  # fmt: skip"])
        return "\n".join([head, *body])

    def parameters(self, asked: Asked) -> list[str]:
        """Those of a check: of a kernel what its conditions read, where they are given by name, else all that come before them too."""
        read = _read([f"{text}\n" for one in self.required(asked) for text in (one.broken, *one.tensors)])
        given = [name for name in asked.arguments if not (asked.by_run and name in asked.constants)]
        named = [name for name in given if name in read]
        if asked.asks_grid:
            return named  # with their defaults
        if not self.by_name(asked):
            named = given[: given.index(named[-1]) + 1] if named else []
        defaults = {name: text if name in read else None for name, text in asked.defaults.items()}
        for name in reversed(
            named if asked.contract.of_some else []
        ):  # a launch may leave to Triton what a configuration says
            if name not in asked.constants:
                break
            defaults.setdefault(name, None)
        if self.by_name(asked):
            named = sorted(named, key=lambda name: name in defaults)
        every = [f"{name}={defaults[name]}" if name in defaults else name for name in named]
        return every if self.by_name(asked) else [*every, f"*{numbered('_', asked.arguments.__contains__)}"]

    def by_name(self, asked: Asked) -> bool:
        """Whether a check is given arguments by their names: it asks for the grid, or there are too many of them for a line."""
        return not asked.by_run and (asked.asks_grid or len(", ".join(asked.arguments)) > 2 * LINE_LENGTH)

    def installed(self, kernel: str, jit: str, asked: Asked) -> str:
        """The statements that have launches of `jit` checked, and given the options of the file."""
        lines = []
        if self.pins(asked):
            options = ", ".join(f"{name}={value!r}" for name, value in self.options)
            lines.append(f"{jit}.run = functools.partial({jit}.run, {options})")
        if self.required(asked):
            check = self.name_of(kernel)
            lines.append(f'if os.environ.get("{SWITCH}") != "0":')
            if asked.by_run:
                lines.append(f"    {jit}.run = {self.wrapper(asked)}({jit}.run, {check})")
            elif asked.asks_grid:
                lines.append(f"    {jit}.run = {self.wrapper(asked)}({jit}, {check})")
            elif self.by_name(asked):
                names = f"dict(zip({jit}.arg_names, args))"
                lines.append(f"    {jit}.add_pre_run_hook(lambda *args, **given: {check}(**{names} | given))")
            else:
                lines.append(f"    {jit}.add_pre_run_hook({check})")
        return "\n".join(lines)

    def below(self, kernel: str, jit: str, asked: Asked) -> str:
        """What stands below a kernel."""
        check = self.check(kernel, asked)
        return "\n\n\n".join([*([check] if check else []), self.installed(kernel, jit, asked)])

    def decorator(self, name: str, kernel: str, asked: Asked) -> str:
        """The same as a decorator, for a kernel that is no global of the file."""
        check = self.check(kernel, asked)
        inside = textwrap.indent(self.installed(kernel, "kernel", asked), "    ")
        own = f"def {name}(kernel):\n{inside}\n    return kernel"
        return "\n\n\n".join([*([check] if check else []), own])

    def wrapper(self, asked: Asked) -> str:
        return numbered("_checked_run" if asked.by_run else "_checked_with_grid", self.taken.__contains__)

    @property
    def imports(self) -> set[Import]:
        """The modules that checks name."""
        required = [one for asked in self.asked for one in self.required(asked)]
        found = {Import("functools")} if any(map(self.pins, self.asked)) else set()
        found |= {Import("os")} if required else set()
        return found | ({Import("builtins")} if any("builtins." in one.broken for one in required) else set())

    def functions(self) -> list[str]:
        """What checks of the file share."""
        required = [asked for asked in self.asked if self.required(asked)]
        by_run = next((asked for asked in required if asked.by_run), None)
        of_grid = [asked for asked in required if asked.asks_grid and not asked.by_run]
        out = []
        if by_run is not None:
            out.append(f"""def {self.wrapper(by_run)}(run, check):
    def checked(*args, **kwargs):
        check(*args)
        return run(*args, **kwargs)

    return checked""")
        if of_grid:
            defaults = any(asked.defaults for asked in of_grid)
            known = "{p.name: p.default for p in kernel.params if p.has_default} | " if defaults else ""
            out.append(f"""def {self.wrapper(of_grid[0])}(kernel, check):
    run = kernel.run

    def checked(*args, grid, warmup=False, **kwargs):
        given = {known}dict(zip(kernel.arg_names, args)) | kwargs
        programs = [*(grid(given) if callable(grid) else grid), 1, 1, 1]
        if not warmup and 0 not in programs:
            check(**given, {self.grid}=programs)
        return run(*args, grid=grid, warmup=warmup, **kwargs)

    return checked""")
        return out


def asked_of(
    contract: RunTimeContract, fn: JITFunction, specs: Iterable[LaunchSpec], node: ast.FunctionDef | None = None
) -> Asked:
    """What the kernel `fn` asks of launches, translated for `specs`. node: its definition, at the top level of its file."""
    optional = {name for spec in specs for name, value in spec.constexprs.items() if value is None}
    constants = frozenset(p.name for p in fn.params if p.is_constexpr)
    written = {}
    if node is not None:
        positional = [*node.args.posonlyargs, *node.args.args]
        written = dict(zip((a.arg for a in positional[::-1]), node.args.defaults[::-1]))
    defaults = {}
    for p in (p for p in fn.params if p.has_default):
        text = written.get(p.name)
        plain = isinstance(text, (ast.Name, ast.Constant))
        defaults[p.name] = ast.unparse(text) if plain else repr(getattr(p.default, "value", p.default))
    return Asked(contract, tuple(p.name for p in fn.params), constants, frozenset(optional - constants), defaults)


__all__ = [
    "SWITCH",
    "Asked",
    "AskedOfSome",
    "Checks",
    "RunTimeContract",
    "asked_of",
    "contract_of_texts",
]
