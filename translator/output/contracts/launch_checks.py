"""What is checked before each launch of a translated kernel: storage, signs, multiples, descriptors, and bounds of what its offsets are; and
the options that change numbers, which every launch is given that does not say otherwise.

    _assume(add_kernel, "below_2gib(x_ptr, y_ptr, output_ptr)", "n_elements <= 2**31 - 1024", enable_fp_fusion=True)

One function of the file compiles the conditions of a kernel to one expression of its arguments, which a hook of the jit function works out;
where a condition asks for the number of programs, it stands around the function's `run`. Options stand around `run` too, so that launches of
other files, and those of `triton.autotune`, have them: what Triton does by itself differs from one release to the next.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from gluonize.facts.integers.host_bounds import Condition, spelled
from gluonize.gluon.trees.function import LINE_LENGTH
from gluonize.numbered import numbered
from gluonize.output.contracts.fewest import fewest
from gluonize.output.contracts.seen_rows import AS_LAUNCHED, shown
from gluonize.read.files.generated_names import CHECKS
from gluonize.read.spec.launch import LaunchSpec
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

# What conditions call beside `min`, `max` and `int`: parameters, and what is returned. What is no tensor (None, or a type that stands for
# one while a launch is only warmed up) has nothing to check; one without a dtype may have any.
HELPERS = {
    "below_2gib": (
        "*tensors",
        'all([x.untyped_storage().size() < 2**31 for x in tensors if hasattr(x, "untyped_storage")])',
    ),
    "aligned": ("*tensors", 'all([x.data_ptr() % 16 == 0 for x in tensors if hasattr(x, "data_ptr")])'),
    "tuples": ("*values", "all([isinstance(x, tuple) for x in values])"),
    "image": ("parts", "len(parts) == 6 and {*map(len, parts[3:])} == {len(parts[1]) - 2}"),
    "may_be": ("tensor, dtype", 'str(getattr(tensor, "dtype", dtype)).rpartition(".")[2] == dtype'),
}
SWITCH = "GLUON_LAUNCH_CHECKS"
_BUILTINS = ("min", "max", "int")
_OPTIONS, _GRID = "options", "grid"  # of a launch, which are no arguments of the kernel


@dataclass(frozen=True)
class Asked:
    """A contract, and of the arguments of its kernel those that are compile-time constants, which may be numbers of another class than
    `int`, those that are None in some launch, and those that have defaults. run_with: the arguments, of a kernel that is launched by its own
    `run(...)`, which calls no hooks and is told no compile-time constants: these are taken to be 0. states_options: whether its decorator says
    what it is compiled with."""

    contract: RunTimeContract
    arguments: frozenset[str]
    constants: frozenset[str] = frozenset()
    optional: frozenset[str] = frozenset()
    defaults: frozenset[str] = frozenset()
    run_with: tuple[str, ...] = ()
    states_options: bool = False

    def names_a_default(self, texts: Iterable[str]) -> bool:
        """Whether conditions are about arguments that a launch may leave to their defaults."""
        return any(re.search(rf"\b{name}\b", text) for text in texts for name in self.defaults)

    @property
    def conditions(self) -> list[tuple[Condition, str]]:
        """Those that can be asked: `run` does not say the grid."""
        return [(c, what) for c, what in self.contract.conditions if not (self.run_with and c.bound.asks_grid())]

    @property
    def asks_grid(self) -> bool:
        return any(c.bound.asks_grid() for c, _ in self.conditions)

    def number(self, name: str) -> str:
        """An argument, or a part of one that is a descriptor, as a number."""
        if self.run_with and name in self.constants:
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

    def multiples(self, names: Sequence[str]) -> str:
        return " == ".join([*(f"{self.number(name)} % 16" for name in names), "0"])

    def not_negative(self, names: Sequence[str]) -> str:
        every = ", ".join(map(self.number, names))
        return f"min({every}) >= 0" if len(names) > 1 else f"{every} >= 0"

    def tensors(self, test: str, names: Sequence[str]) -> str:
        """Of descriptors their tensors are tested."""
        tuples = {*self.contract.descriptors, *self.contract.images}
        return f"{test}({', '.join(f'{name}[0]' if name in tuples else name for name in names)})"

    def unlike(self, row: Mapping[str, Any]) -> str:
        """That a launch is not one of a row; what it does not show may be anything."""
        texts = []
        for name, value in row.items():
            word = quoted(value) if isinstance(value, str) else repr(value)
            if name in AS_LAUNCHED:
                texts.append(f"{_OPTIONS}.get({quoted(name)}, {AS_LAUNCHED[name]}) != {word}")
            elif name in self.constants:
                texts.append(f"{name} not in ({word}, None)")
            else:
                texts.append(f"not may_be({name}, {word})")
        return " or ".join(texts)

    def texts(self, room: int) -> Iterator[str]:
        """The conditions, as Python that is true where they hold, those first that others rest on. room: columns that one should have."""

        def each(names: Sequence[str], text: Callable[[Sequence[str]], str]) -> Iterator[str]:
            while names:
                count = next((n for n in range(len(names), 1, -1) if len(text(names[:n])) <= room), 1)
                yield text(names[:count])
                names = names[count:]

        c = self.contract
        yield from each((*c.descriptors, *c.images), lambda names: f"tuples({', '.join(names)})")
        yield from (f"image({name})" for name in c.images)
        yield from each(c.within_2gib, lambda names: self.tensors("below_2gib", names))
        yield from each(c.aligned, lambda names: self.tensors("aligned", names))
        yield from each(c.multiples, self.multiples)
        yield from each(c.signed, self.not_negative)
        yield from (f"2**-30 <= {name} <= 2**30" for name in c.positive)
        yield from (f"{c.from_zero(b)}{b.bound.text(self.whole)} <= {spelled(b.most)}" for b, _ in self.conditions)
        for some in c.of_some:
            others = self.unlike(some.row)
            yield from each(some.multiples, lambda names: f"{self.multiples(names)} or {others}")
            yield from each(some.aligned, lambda names: f"{self.tensors('aligned', names)} or {others}")


@dataclass(frozen=True)
class Checks:
    """The launch checks of a file. name: of the function that installs them; width: of the file, in columns; returns: whether the kernel
    that it is given is asked for, as by decorators; options: what kernels are launched with where a launch does not say otherwise.
    """

    asked: tuple[Asked, ...]
    name: str = CHECKS
    width: int = LINE_LENGTH
    returns: bool = False
    options: tuple[tuple[str, Any], ...] = ()

    def __bool__(self) -> bool:
        return any(map(self.arguments, self.asked))

    def arguments(self, asked: Asked) -> list[str]:
        """What the function is called with for a kernel, beside the kernel."""
        names = [f"names={asked.run_with!r}"] if asked.run_with else []
        options = [] if asked.states_options else [f"{name}={value!r}" for name, value in self.options]
        return [*map(quoted, self.texts(asked)), *names, *options]

    def word(self, name: str) -> str:
        """What conditions call a function, or the options of a launch: an argument of a kernel may have its name."""
        return numbered(f"{name}_", self._arguments.__contains__) if name in self._arguments else name

    @functools.cached_property
    def _arguments(self) -> frozenset[str]:
        return frozenset().union(*(asked.arguments for asked in self.asked))

    def texts(self, asked: Asked) -> list[str]:
        """The conditions of a kernel."""
        found = list(asked.texts(self.width - len('    "",')))
        for word in (*HELPERS, *_BUILTINS, _OPTIONS, _GRID):
            if word in self._arguments:
                found = [re.sub(rf"\b{word}(?=[([.])", self.word(word), text) for text in found]
        return found

    def call(self, jit: str, asked: Asked) -> str:
        """What has every launch of the jit function `jit` checked, and gives it back."""
        return f"{self.name}({', '.join([jit, *self.arguments(asked)])})"

    def decorator(self, name: str, asked: Asked) -> str:
        """The same as a decorator, for a kernel that is no global of the file."""
        return f"def {name}(kernel):\n    return {self.call('kernel', asked)}"

    def functions(self) -> dict[str, str]:
        """What conditions of the file call, by what they call it: the definitions of helpers, and the names of Python's own functions."""
        every = "\n".join(text for asked in self.asked for text in self.texts(asked))
        found = {}
        for name in (*HELPERS, *_BUILTINS):
            word = self.word(name)
            if re.search(rf"\b{word}\(", every):
                found[word] = "\n".join(_returning(word, *HELPERS[name])) if name in HELPERS else name
        return found

    def function(self) -> str:
        """The function that the file calls for each kernel."""
        functions = self.functions()
        known = {word: word if "\n" in text else text for word, text in functions.items() if word != text}
        known["refuse"] = "refuse"
        grid, options = self.word(_GRID), self.word(_OPTIONS)
        asks_grid = any(asked.asks_grid for asked in self.asked)
        by_run = any(asked.run_with for asked in self.asked)
        # A check that asks for the grid is given defaults with all else.
        defaults = not asks_grid and any(asked.names_a_default(self.texts(asked)) for asked in self.asked)
        known |= {"defaults": "defaults"} if defaults else {}
        named = "    defaults = {p.name: p.default for p in kernel.params if p.has_default}"
        names = (
            'f"{p.name}=defaults.get({p.name!r})" for p in kernel.params'
            if defaults
            else 'f"{name}=None" for name in kernel.arg_names'
        )
        names = f'f"{{name}}=None" for name in names) if names else ", ".join({names}' if by_run else names
        more = f", {grid}=None" if asks_grid else ""
        texts = [self.texts(asked) for asked in self.asked]
        # What no condition asks for needs no name.
        asks_options = any(re.search(rf"\b{options}\.", text) for every in texts for text in every)
        options = options if asks_options or "_" in self._arguments else "_"
        pins = any(self.options and not asked.states_options for asked in self.asked)
        pinned = ["    kernel.run = functools.partial(kernel.run, **options)"] if pins else []
        returned = ["    return kernel"] if self.returns else []
        if not any(texts):
            said = '    """Give options to launches of a kernel that do not say them."""'
            lines = [f"def {self.name}(kernel, **options):", said, "    import functools", "", *pinned, *returned]
            return "\n".join(lines)
        parameters = ["kernel", "*conditions", *(["names=()"] if by_run else []), *(["**options"] if pins else [])]
        said = "Refuse launches of a kernel for which a condition is false"
        said += "; give options to those that do not say them." if pins else "."
        scope = "{%s}" % ", ".join(f'"{word}": {text}' for word, text in known.items())
        check = f'    check = eval(f"lambda {{arguments}}{more}, **{options}: {{tests}}", %s)'
        checks = [check % scope] if len(check % scope) <= self.width else [f"    known = {scope}", check % "known"]
        nothing = "" if all(texts) else ' or "True"'
        lines = [
            f"def {self.name}({', '.join(parameters)}):",
            f'    """{said}"""',
            *(["    import functools"] if pins else []),
            "    import os",
            "",
        ]
        for text in functions.values():
            lines += [*(f"    {line}" for line in text.split("\n")), ""] if "\n" in text else []
        lines += [
            "    def refuse(condition, given):",
            '        names = [name for name in compile(condition, "", "eval").co_names if name in given]',
            '        values = ", ".join(f"{name}={getattr(given[name], \'shape\', ()) or given[name]}" for name in names)',
            f'        raise ValueError(f"{{kernel.{"fn." * by_run}__name__}}: {{condition}} is false for {{values}}")',
            "",
            *([named] if defaults or asks_grid else []),
            f'    arguments = ", ".join({names})',
            f'    tests = " and ".join(f"({{text}} or refuse({{text!r}}, locals()))" for text in conditions){nothing}',
            *checks,
            *pinned,
        ]
        if asks_grid:
            lines += [
                "    run = kernel.run",
                "",
                "    def checked(*args, grid, warmup=False, **kwargs):",
                "        given = defaults | dict(zip(kernel.arg_names, args)) | kwargs",
                "        programs = [*(grid(given) if callable(grid) else grid), 1, 1, 1]",
                "        if not warmup and 0 not in programs:",
                f"            check(**given, {grid}=programs)",
                "        return run(*args, grid=grid, warmup=warmup, **kwargs)",
                "",
            ]
        installed = "kernel.run = checked" if asks_grid else "kernel.add_pre_run_hook(check)"
        if by_run:  # kernels of other files are made the same way: one function serves both
            lines += [
                "    plain = kernel.run",
                "",
                "    def run(*args, **kwargs):",
                "        check(*args[: len(names)])",
                "        return plain(*args, **kwargs)",
                "",
            ]
            installed = f"if names:\n            kernel.run = run\n        else:\n            {installed}"
        lines += [f'    if os.environ.get("{SWITCH}") != "0":', f"        {installed}"]
        return "\n".join([*lines, *returned])


def _returning(name: str, parameters: str, value: str) -> list[str]:
    return [f"def {name}({parameters}):", f"    return {value}"]


def asked_of(contract: RunTimeContract, fn: JITFunction, specs: Iterable[LaunchSpec]) -> Asked:
    """What the kernel `fn` asks of launches, translated for `specs`."""
    optional = {name for spec in specs for name, value in spec.constexprs.items() if value is None}
    constants = frozenset(p.name for p in fn.params if p.is_constexpr)
    defaults = frozenset(p.name for p in fn.params if p.has_default)
    return Asked(contract, frozenset(p.name for p in fn.params), constants, frozenset(optional - constants), defaults)


__all__ = [
    "HELPERS",
    "SWITCH",
    "Asked",
    "AskedOfSome",
    "Checks",
    "RunTimeContract",
    "asked_of",
    "contract_of_texts",
]
