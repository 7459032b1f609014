"""Whether a launch is proved; where it is not, a launch, as small as can be found, on which the reference machine sees a difference."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from gluonize.judge.inputs.inputs import Inputs, make_inputs, size_arguments, with_values
from gluonize.judge.inputs.made_up import guesses, is_whole
from gluonize.judge.machine.hazards import NotRunnable
from gluonize.judge.machine.stages import Stage, source_stage, translated_stage
from gluonize.judge.prove.both_sides import NOT, REFUTED
from gluonize.judge.verdict.launch_check import launch_check, other_kernel
from gluonize.judge.verdict.proof import as_json, proved
from gluonize.judge.verdict.result import ValidationResult
from gluonize.judge.verdict.run import validate_pair
from gluonize.read.files.modules import parse_file
from gluonize.read.spec.launch import LaunchSpec

# Each is tried for all sizes of a launch at once; 1 is compiled apart.
SIZES = (2, 3, 5, 16, 17, 33, 48, 65, 80, 129, 144)
MOST_RUNS = 40
WRONG = ("mismatch", "hazard")


def prove_launch(
    source: str,
    output: str,
    spec: LaunchSpec,
    target: str,
    search_path: tuple[str, ...] = (),
    import_hosts: bool = False,
) -> dict:
    """Whether `output` provably computes what `source` computes, asked in a worker process; where that is not proved, whether the reference
    machine finds a launch on which it is wrong. Raises: TranslationError."""
    left = source_stage(source, spec, target, tuple(search_path), import_hosts)
    right = translated_stage(output, spec, target, tuple(search_path), import_hosts)
    verdict = proved(left, right, spec, target, None)
    if verdict.word == NOT and (found := witness(left, right, spec, verdict.values)) is not None:
        return as_json(replace(verdict, word=REFUTED, why=f"{found}; {verdict.why}"), spec)
    return as_json(verdict, spec)


@dataclass(frozen=True)
class Witness:
    """values: the integer arguments that are not those of the launch; found: what the machine says of it."""

    values: Mapping[str, int]
    found: ValidationResult

    def __str__(self) -> str:
        given = ", ".join(f"{name} = {value}" for name, value in self.values.items())
        return f"with {given or 'the launch as given'}: {self.found.reason}"


def witness(left: Stage, right: Stage, spec: LaunchSpec, asked: Sequence[Mapping[str, int]] = ()) -> Witness | None:
    """A launch on which the machine finds that both sides differ; None where it finds none. asked: values of arguments to try first."""
    search = _Search(left, right, spec)
    for launch in (spec,) if is_whole(spec) else guesses(spec, left.text):
        try:
            inputs = make_inputs(launch)
        except NotRunnable:
            continue
        found = search.first(launch, inputs, asked)
        if found is not None:
            return found
        if search.ran:
            return None
    return None


class _Search:
    def __init__(self, left: Stage, right: Stage, spec: LaunchSpec):
        self.left, self.right = left, right
        checked = parse_file(right.file).tree, spec.kernel, spec, right.defaults
        self.refusal = other_kernel(*checked) or launch_check(*checked)
        self.runs = 0
        self.ran = False  # whether any launch could be run

    def first(self, spec: LaunchSpec, inputs: Inputs, asked: Sequence[Mapping[str, int]]) -> Witness | None:
        sizes = size_arguments(spec)
        for values in candidates(spec, sizes, asked):
            if (found := self._run(spec, inputs, values)) is not None:
                return self._smaller(spec, inputs, sizes, Witness(values, found))
        return None

    def _smaller(self, spec: LaunchSpec, inputs: Inputs, sizes: Sequence[str], known: Witness) -> Witness:
        """The same finding with each argument in turn made as small as still shows it."""
        for name in sizes:
            now = known.values.get(name, spec.values[name])
            for value in (0, *SIZES):
                if value >= now or not _allowed(spec, name, value):
                    continue
                values = {**known.values, name: value}
                if (found := self._run(spec, inputs, values)) is not None:
                    known = Witness(values, found)
                    break
        return known

    def _run(self, spec: LaunchSpec, inputs: Inputs, values: Mapping[str, int]) -> ValidationResult | None:
        """What is wrong on a launch; None where nothing is, or it is no launch."""
        if self.runs >= MOST_RUNS:
            return None
        self.runs += 1
        tried = with_values(inputs, spec, dict(values), "")
        found = validate_pair(
            self.left.text, self.right.text, spec, source_names=self.left.names, translated_names=self.right.names,
            source_file=self.left.file, translated_file=self.right.file, with_variants=False, inputs=tried,
            refusal=self.refusal, defaults=self.left.defaults, tiles=self.right.tiles, shared=self.right.shared,
        )  # fmt: skip
        self.ran |= found.status != "not_runnable"
        return found if found.status in WRONG else None


def candidates(
    spec: LaunchSpec, sizes: Sequence[str], asked: Sequence[Mapping[str, int]]
) -> Iterator[Mapping[str, int]]:
    """Values of arguments to try, those that were asked for first, then all sizes alike, then the launch as it is."""
    for values in asked:
        own = {name: value for name, value in values.items() if name in spec.values and value != spec.values[name]}
        if own and all(_allowed(spec, name, value) for name, value in own.items()):
            yield own
    for size in SIZES:
        own = {name: size for name in sizes if size < spec.values[name] and _allowed(spec, name, size)}
        if own:
            yield own
    yield {}


def _allowed(spec: LaunchSpec, name: str, value: int) -> bool:
    """Whether the specialization of the launch leaves an argument this value."""
    return value != 1 and (value % 16 == 0 or "D" not in str(spec.attrs.get(name, "")))
