"""A whole launch: trip counts, workgroups over compute units, traffic."""
