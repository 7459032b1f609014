"""What writing one function has at hand: its facts and decisions, its variables, the names that are taken."""
