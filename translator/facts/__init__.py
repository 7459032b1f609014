"""What is known of a kernel before anything is decided: definitions, ranges, signs, addresses, loops, callees, obligations."""
