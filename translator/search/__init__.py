"""Other choices, compiled and ranked by predicted cycles."""
