"""The review as one HTML page."""
