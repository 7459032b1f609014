"""The reference machine: runs TTIR and TTGIR on the CPU, compares source and translation, finds hazards."""

from __future__ import annotations

import os

# Matrix products here are small and many processes run at once: threads of the BLAS library would only spin.
for _name in ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS"):
    os.environ.setdefault(_name, "1")

__all__ = ["validate_launch"]


def validate_launch(
    source, output, spec, target, search_path=(), import_hosts=False, inputs=None, variants=True, most=None, prove=False
) -> dict:
    """Compile and validate one launch, with `prove` prove it too, in a worker process: `gluonize.judge.verdict.run.validate_job` with arguments."""
    from gluonize.judge.verdict.run import validate_job

    job = {"source": source, "output": output, "launch": spec, "target": target, "inputs": inputs, "variants": variants}
    return validate_job(job | {"most": most, "prove": prove, "search_path": search_path, "import_hosts": import_hosts})
