"""The function_call verifier."""
