"""Dispatchers: how tasks get from the gateway to workers and verdicts come back. `base` is the interface."""
