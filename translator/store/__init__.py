"""Named entries of bytes that several machines share: whole or absent, checked when read, the oldest evicted."""
