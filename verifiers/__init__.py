"""Verifiers: each decides whether a completion is right. `verifiers.registry` lists them.

This file imports nothing: modules below it are also loaded inside sandboxes, which have only the standard library.
"""
