"""Child processes that run the compiler on generated code, with limits."""
