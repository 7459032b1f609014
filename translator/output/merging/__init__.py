"""Translations of one kernel for several launches, as one."""
