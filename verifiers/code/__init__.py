"""The code verifier. This file imports nothing, since modules of this folder are loaded inside sandboxes."""
