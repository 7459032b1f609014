"""Calls by which a kernel says that an argument is an address."""

# The argument of each that is an address; `make_*` have it first or as `base`.
ADDRESS_CALLS = frozenset(
    "load store atomic_add atomic_max atomic_min atomic_and atomic_or atomic_xor atomic_xchg atomic_cas prefetch".split()
)
POINTER_MAKERS = frozenset({"make_block_ptr", "make_tensor_descriptor", "advance"})
DESCRIPTOR_METHODS = frozenset({"load", "store", "gather", "scatter", "atomic_add", "atomic_min", "atomic_max"})
