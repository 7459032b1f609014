"""Proposing a launch from the evidence, and changing it where the front end refuses."""
