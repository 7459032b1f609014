"""What `gluonize validate` is asked to do."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class ValidateOptions:
    """The options of `gluonize validate`, as given. inputs: a file with `make_inputs`. device: auto, hip, cuda or cpu.
    variants: also inputs of other sizes. emulator: machine code too. timeout: seconds for one launch."""

    source: str
    out: str
    target: str
    launches: str
    kernels: tuple[str, ...] = ()
    inputs: str | None = None
    json: str | None = None
    device: str = "cpu"
    variants: bool = True
    jobs: int = 0
    timeout: float = 120.0
    import_hosts: bool = False
    format: str = "text"
    cache: bool = True
    emulator: bool = False
    cluster: str | None = None
