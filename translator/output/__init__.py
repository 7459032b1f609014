"""One file for all launches: contracts, merged kernels, the author's file."""
