"""The regex verifier."""
