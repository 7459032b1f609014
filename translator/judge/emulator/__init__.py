"""Machine code in a public AMD instruction emulator: both code objects of a launch, beside the reference machine."""

__all__ = ["validate_emulated"]


def validate_emulated(source, output, spec, target, search_path, import_hosts, checkout, seconds, **how) -> dict:
    """`validate_launch`, and its inputs in the emulator: `gluonize.judge.emulator.job.emulated_job` for worker processes."""
    from gluonize.judge.emulator.job import emulated_job

    return emulated_job(source, output, spec, target, search_path, import_hosts, checkout, seconds, **how)
