"""The command line, `gluonize`."""

from __future__ import annotations


def main() -> None:
    """Entry point of the console script: run the command line and leave with its exit status."""
    import signal
    import sys

    from gluonize.product.cli.edge import run

    # A polite kill cleans up like Ctrl-C: children end, temporary files go.
    signal.signal(signal.SIGTERM, lambda number, _: sys.exit(128 + number))
    sys.exit(run(sys.argv[1:]))
