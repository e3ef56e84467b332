"""The math verifier. This file imports nothing, since `verifiers.math.engine` is loaded inside sandboxes."""
