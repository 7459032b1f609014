"""The command line, `gluonize`."""

from __future__ import annotations


def main() -> None:
    """Entry point of the console script: run the command line and leave with its exit status."""
    import sys

    from translator.cli.edge import run

    sys.exit(run(sys.argv[1:]))
