"""The memory of the reference machine: guarded global memory, LDS, barriers, tensor memory."""
