"""The parses verifier."""
