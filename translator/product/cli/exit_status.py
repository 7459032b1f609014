"""Exit statuses, in one place; `docs` and `--help` quote them."""

DONE = 0
CHECK_FAILED = 1
REFUSED = 2
BUG = 3
INTERRUPTED = 130
