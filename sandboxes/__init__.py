"""Sandboxes: where the code that a completion wrote is run. `sandboxes.base` is the interface."""
