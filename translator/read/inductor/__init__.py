"""Kernels that Inductor wrote: what their decorators state of a launch, and what `torch._inductor.runtime` means in them."""
