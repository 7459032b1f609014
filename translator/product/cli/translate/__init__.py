"""The command that makes translations."""
