"""The plan of a pipelined loop: which loads run ahead, how deep, in which order."""
