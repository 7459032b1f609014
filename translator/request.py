"""What the translator is asked for, and what it answers: the contract between the CLI, the API and the pipeline.

Both sides are plain frozen data, so that they travel to and from a child process.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace

from gluonize.decide.choices.chosen import Choices
from gluonize.diagnostics import Diagnostic
from gluonize.kept_loops import KeptLoop
from gluonize.read.launches.table import Derivation
from gluonize.read.spec.launch import LaunchSpec, RefusedLaunch
from gluonize.read.text.style import CodeStyle
from gluonize.rules.choices import BY_NAME, CHOICES

LIFTED = "lifted"
BUDGET = 40  # trials of a search for one kernel
CTAS = "num_ctas"  # the option of a launch
STATUSES = ("translated", "refused", "failed", "passed-over")


@dataclass(frozen=True)
class TranslateRequest:
    """One source file (or module) to translate for one target into one output file.

    source: a path, or an importable module name. kernels: names to translate; empty means all that the launches name,
    or all of the file. launches: the specializations to infer layouts for; empty means derive them from the file.
    search_path: where modules are looked for before `sys.path`. assignments: `NAME=VALUE` pairs that fill in a derived
    launch. import_hosts: really import modules whose constants cannot be evaluated statically. fallback: `general` adds
    an assumption-free kernel and a launcher that picks. num_buffers, strategy: for pipelined loops, None to choose.
    optimize: `parity`, the rules with what a compile confirms, `rules`, these alone, or `aggressive` or `search`, which make choices
    per kernel before anything is translated; budget: trials of a search for one kernel, which is not made again where `chosen` is given;
    grid: programs that run in what it has in mind, 0 for as many as fill the GPU for long: the grid of a launch is often that of a test. chosen: those made,
    by kernel. choices: those asked for, for all kernels. keep_going: leave out a kernel that is refused instead of giving
    up the file. rules: files, or folders of them, with more rows. standalone: write the kernels and what they need, without
    the host code.
    strict: launches are derived only from what the source says for certain. all_configs: every config of a large autotune list.
    general: layouts as formulas of tile sizes and warps, where they follow from them.
    style: how the text is laid out. written_for: what kernels that are Gluon already are written for, where their launches do not say.
    emit: `lifted` for the Triton kernels that they compute, None for the translation. keep_structure: they are not lifted, each of
    their operations becomes its counterpart.
    """

    source: str
    target: str
    kernels: tuple[str, ...] = ()
    launches: tuple[LaunchSpec, ...] = ()
    search_path: tuple[str, ...] = ()
    assignments: tuple[tuple[str, str], ...] = ()
    import_hosts: bool = False
    fallback: str | None = None
    num_buffers: int | None = None
    strategy: str | None = None
    optimize: str = "parity"
    budget: int = BUDGET
    grid: int = 0
    keep_going: bool = False
    rules: tuple[str, ...] = ()
    standalone: bool = False
    strict: bool = False
    all_configs: bool = False
    general: bool = False
    choices: Choices = Choices()
    chosen: tuple[tuple[str, Choices], ...] = ()
    style: CodeStyle = CodeStyle()
    written_for: str | None = None
    emit: str | None = None
    keep_structure: bool = False

    @property
    def asked(self) -> Choices:
        """The choices asked for, by name, by strategy and by depth."""
        asked = self.choices
        if self.num_buffers:
            asked = asked.replacing(depth=str(self.num_buffers))
        return asked.replacing(warp_groups="alternating") if self.strategy == "ping-pong" else asked

    def choices_for(self, kernel: str) -> Choices:
        """The choices for `kernel`: those made for it, else those asked for."""
        return dict(self.chosen).get(kernel, self.asked)


def chosen_options(chosen: Choices) -> dict[str, int | str]:
    """The options of launches that `chosen` decides, with their values."""
    rows = ((BY_NAME[name].option, value) for name, value in chosen.overrides)
    return {option.name: option.value(value) for option, value in rows if option is not None}


def with_options(spec: LaunchSpec, chosen: Choices) -> LaunchSpec:
    """`spec` with the options that `chosen` decides; a launch that says one of them itself keeps it."""
    unsaid = {choice.option.name: choice.option.unsaid for choice in CHOICES if choice.option is not None}
    made = {n: v for n, v in chosen_options(chosen).items() if spec.options.get(n, unsaid[n]) == unsaid[n]}
    if not made or isinstance(spec, RefusedLaunch):
        return spec
    return replace(spec, options={**spec.options, **made})


def as_launched(spec: LaunchSpec, chosen: Choices) -> LaunchSpec:
    """The inverse of `with_options`: what the source is launched with."""
    made = chosen_options(chosen)
    if not any(spec.options.get(name) == value for name, value in made.items()):
        return spec
    kept = {name: value for name, value in spec.options.items() if made.get(name) != value}
    return replace(spec, options=kept)


@dataclass(frozen=True)
class LaunchOutcome:
    """What became of one launch: `spec` is the given or derived launch; diagnostics are empty when translated. A derived one that
    is not needed is passed over when it cannot be translated.

    choices: one line each, what was decided and why, as `translate` prints it. assumptions: what the code relies on.
    kept_loops: those that Triton's compiler pipelines and the translation does not. multiplies: whether a loop multiplies matrices.
    """

    spec: LaunchSpec
    status: str
    diagnostics: tuple[Diagnostic, ...] = ()
    choices: tuple[str, ...] = ()
    assumptions: tuple[str, ...] = ()
    kept_loops: tuple[KeptLoop, ...] = ()
    multiplies: bool = False

    def __post_init__(self):
        assert self.status in STATUSES, f"unknown status {self.status!r}"


@dataclass(frozen=True)
class TranslateResult:
    """The answer to one request.

    status: `translated` when `text` holds every kernel asked for, or, with keep_going, at least one. text: the whole
    output file, None when nothing may be written. outcomes: one per launch, in order. diagnostics: of the file as a
    whole. notes: what was assumed or noticed while reading. seconds: of the translation alone. derivations: how launches that
    were not given were found. chosen: what a search found or a compile confirmed, by kernel. origins: (line of the text, line of the source) for the first line of
    every statement that came from the source.
    """

    status: str
    text: str | None
    outcomes: tuple[LaunchOutcome, ...] = ()
    diagnostics: tuple[Diagnostic, ...] = ()
    notes: tuple[str, ...] = ()
    seconds: float = 0.0
    facts: dict = field(default_factory=dict, hash=False)
    derivations: tuple[Derivation, ...] = ()
    chosen: tuple[tuple[str, Choices], ...] = ()
    origins: tuple[tuple[int, int], ...] = ()

    def __post_init__(self):
        assert self.status in STATUSES, f"unknown status {self.status!r}"
        assert (self.text is not None) or self.status != "translated", "a translation without text"
