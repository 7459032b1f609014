"""What is shown at places of a text: hovers, hints, lenses, findings."""
