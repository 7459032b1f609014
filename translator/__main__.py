"""`python -m gluonize`: the command, with the Python that is named."""

from gluonize.product.cli import main

main()
