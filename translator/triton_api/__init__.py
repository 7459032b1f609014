"""All that the tool knows of Triton's insides: one module per fact, one row per name.

Nothing else of the translator imports Triton (a contract in pyproject.toml), so that a Triton which has moved or renamed something is served
by one row: of `translator/triton_api/` for what the tool uses itself, of `rules/gluon.py` for what outputs say. What is imported is loaded
when it is asked for: `gluonize --help` does not import Triton.

| module | fact |
|---|---|
| `package`, `language` | the public package: `triton.cdiv`, `tl`, `tl.constexpr` |
| `jit_functions` | what `@triton.jit` makes, what autotuning wraps around it, and how a launch binds arguments |
| `front_end` | the code generator, what it compiles, and the errors that it raises |
| `libtriton` | the MLIR bindings: contexts, modules, builders, passes |
| `backend` | targets, the AMD backend's compiler and options, drivers, knobs |
| `gluon_language` | Gluon's namespaces, in the names of the vocabulary |
| `host_tensors` | descriptors that host code makes |
| `compile_cache` | Triton's cache on disk |
| `upstream_tool` | Triton's own translator to Gluon, for comparison |
| `differences` | what is done another way from one version to the next |
"""
