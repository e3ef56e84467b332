"""The json_schema verifier."""
