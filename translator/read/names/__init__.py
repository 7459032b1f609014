"""Which names a file binds, where, and what they are looked up in."""
