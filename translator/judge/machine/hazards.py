"""What the reference machine can find wrong, and how it says so."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict, dataclass

from gluonize.diagnostics import shown
from gluonize.trace.model.locations import Place

# Short stable identifiers of all that can be found; docs/explanation/reference-machine.md says what each means.
KINDS = frozenset(
    "out-of-bounds wild-pointer misaligned buffer-offset store-conflict "
    "lds-uninitialised lds-in-flight lds-overwrite-in-flight lds-overwrite-source lds-overwrite-read lds-reuse-in-flight "
    "lds-race lds-index lds-store-unwaited lds-load-unwaited pipeline-stage index-range "
    "cluster-start cluster-arrive cluster-wait cluster-overwrite cluster-reuse cluster-exit cluster-peer cluster-memory "
    "mbarrier-uninitialised mbarrier-unpublished mbarrier-underflow mbarrier-phase mbarrier-reinitialised "
    "mbarrier-bytes mbarrier-invalidated missing-fence wgmma-unwaited "
    "deadlock endless false-hint device-assert division-by-zero loop-step broken-promise tiles unordered".split()
)

# Of a source, whose order of operations says what it means: what is missing is that the hardware keeps to it. It is told as the
# source's and the run goes on; after any other hazard there is nothing to compare with. A number of a tile that is not there may be divided
# by zero, of which nothing is used.
OF_ORDER = frozenset(
    "lds-in-flight lds-overwrite-in-flight lds-overwrite-source lds-overwrite-read lds-reuse-in-flight lds-race pipeline-stage "
    "cluster-start cluster-overwrite cluster-reuse mbarrier-unpublished mbarrier-reinitialised mbarrier-bytes mbarrier-invalidated missing-fence wgmma-unwaited division-by-zero".split()
)


@dataclass(frozen=True)
class Finding:
    """One hazard or note: what (`kind` is one of KINDS), at which op and source line, in which program."""

    kind: str
    message: str
    op: str = ""
    file: str = ""
    line: int = 0
    column: int = 0
    program: tuple[int, ...] = ()

    def __post_init__(self):
        assert self.kind in KINDS, f"bug in gluonize: {self.kind} is not in KINDS"

    def __str__(self) -> str:
        place = f"{shown(self.file)}:{self.line}:{self.column}: " if self.line else ""
        where = f" in program {self.program}" if self.program else ""
        return f"{place}{self.op}: {self.message}{where} [{self.kind}]"

    def as_json(self) -> dict:
        return asdict(self)


class Hazard(Exception):
    """The kernel did what no correct kernel does. `finding` is completed by the engine with op, place and program."""

    def __init__(self, kind: str, message: str):
        super().__init__(message)
        assert kind in KINDS, f"bug in gluonize: {kind} is not in KINDS"
        self.kind = kind
        self.message = message
        self.finding: Finding | None = None

    def at(self, op_name: str, place: Place, program: tuple[int, ...]) -> "Hazard":
        """This hazard, located; the innermost op wins."""
        if self.finding is None:
            self.finding = Finding(self.kind, self.message, op_name, place.file, place.line, place.column, program)
        return self


Report = Callable[[Hazard], None]


def stop(hazard: Hazard) -> None:
    """What is done about a hazard of a translation. Raises: Hazard."""
    raise hazard


class NotRunnable(Exception):
    """Something that the machine does not model, by name."""

    def __init__(self, op: str, why: str = "the reference machine has no such op"):
        super().__init__(f"{op}: {why}")
        self.op = op
        self.why = why


class TooLong(NotRunnable):
    """A program ran more ops than it is given."""


class WaitsForever(NotRunnable):
    """A program spins until another one does something, and none runs beside it."""
