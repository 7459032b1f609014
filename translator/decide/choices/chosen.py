"""The choices for one kernel: what differs from the defaults, by name."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from gluonize.diagnostics import did_you_mean
from gluonize.rules.choices import BY_NAME, CHOICES
from gluonize.rules.targets import Target


@dataclass(frozen=True)
class Choices:
    """overrides: (name, value), in the order of the rows; the default of every other name depends on the target.

    Raises: ValueError for a name or a value that there is not.
    """

    overrides: tuple[tuple[str, str], ...] = ()

    def __post_init__(self):
        for name, value in self.overrides:
            if name not in BY_NAME:
                known = did_you_mean(name, BY_NAME, f"there are {', '.join(BY_NAME)}")
                raise ValueError(f"no choice is called {name}: {known}")
            if value not in BY_NAME[name].values:
                raise ValueError(f"{name}={value}: it is one of {', '.join(BY_NAME[name].values)}")
        given = dict(self.overrides)
        if len(given) < len(self.overrides):
            raise ValueError(f"a choice is made twice: {', '.join(name for name, _ in self.overrides)}")
        # A default that is the same on every target says nothing when it is asked for.
        asked = [(n, v) for n, v in self.overrides if v != BY_NAME[n].defaults[0].value or len(BY_NAME[n].defaults) > 1]
        order = {name: i for i, name in enumerate(BY_NAME)}
        object.__setattr__(self, "overrides", tuple(sorted(asked, key=lambda pair: order[pair[0]])))

    def value(self, name: str, target: Target) -> str:
        """What holds for `name` on `target`."""
        return dict(self.overrides).get(name) or BY_NAME[name].default(target).value

    def asks(self, name: str, value: str) -> bool:
        """Whether `value` holds for `name`, whose default is the same on every target."""
        return self._anywhere(name) == value

    def number(self, name: str) -> int:
        """The number that holds for `name`, whose default is the same on every target; 0 where that is a word."""
        given = self._anywhere(name)
        return int(given) if given.isdigit() else 0

    def _anywhere(self, name: str) -> str:
        defaults = BY_NAME[name].defaults
        assert len(defaults) == 1, f"{name} depends on the target: ask for its value there"
        return dict(self.overrides).get(name, defaults[0].value)

    def replacing(self, **values: str) -> Choices:
        """These choices with others, named with `_` for `-`."""
        return Choices(tuple((k.replace("_", "-"), v) for k, v in values.items())).over(self)

    def over(self, below: Choices) -> Choices:
        """These choices, and of those `below` what these leave open."""
        return Choices(tuple((dict(below.overrides) | dict(self.overrides)).items()))

    @property
    def keeps_loops(self) -> bool:
        """Whether loops are written as Triton's passes would, whatever their depth."""
        return not any(BY_NAME[name].reshapes and value != BY_NAME[name].plain for name, value in self.overrides)

    @property
    def keeps_depth(self) -> bool:
        """Whether, besides, their rings are as deep as Triton's."""
        return self.keeps_loops and not self.number("depth")

    @property
    def name(self) -> str:
        """`parity`, or what differs from the defaults in a word each, fit for a file name: `3-buffers_unrolled`."""
        given = dict(self.overrides)
        words = [c.word.format(given[c.name]) for c in CHOICES if c.name in given and c.word]
        return "_".join(words) or ("lean" if self.overrides else "parity")

    def words(self) -> tuple[str, ...]:
        """`NAME=VALUE` of each, as `--choose` takes them."""
        return tuple(f"{name}={value}" for name, value in self.overrides)


def choices_of(**values: str) -> Choices:
    """Choices by name, with `_` for `-`: `choices_of(depth="3", slot_indices="literal")`."""
    return Choices().replacing(**values)


def parse_choices(words: Iterable[str]) -> Choices:
    """The inverse of `Choices.words`. Raises: ValueError."""
    pairs = []
    for word in words:
        name, equals, value = word.partition("=")
        if not equals:
            raise ValueError(f"{word}: expected NAME=VALUE")
        pairs.append((name.strip(), value.strip()))
    return Choices(tuple(pairs))
