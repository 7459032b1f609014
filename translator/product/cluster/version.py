"""Whether two machines would give the same answer to a job."""

from __future__ import annotations

import functools
import sys

from gluonize import __version__
from gluonize.product.project.cache.results import own_digest
from gluonize.versions import triton_version


@functools.cache
def version() -> tuple[str, ...]:
    """gluonize, the digest of its code, Triton and Python."""
    python = ".".join(map(str, sys.version_info[:2]))
    return (f"gluonize {__version__}", own_digest()[:12], f"Triton {triton_version()}", f"Python {python}")
