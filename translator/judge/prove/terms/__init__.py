"""Terms: how they are made, what is known of their numbers and conditions, and which are the same."""
