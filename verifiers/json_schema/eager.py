"""Finds what jsonschema would only notice when a value reaches it: references and patterns. Inside sandboxes only."""

import re
from typing import Any

import referencing
import referencing.exceptions
from referencing.jsonschema import DRAFT3

_DATA = ("enum", "default")


def unresolved_in_draft_3(schema: Any, registry: "referencing.Registry[Any]") -> str | None:
    """Return a reference of a schema of draft 3 that leads nowhere, where there is one."""
    pending = [(schema, registry.resolver_with_root(DRAFT3.create_resource(schema)))]
    while pending:
        node, resolver = pending.pop()
        if isinstance(node, list):
            pending += [(inner, resolver) for inner in node]
        if not isinstance(node, dict):
            continue
        if isinstance(node.get("id"), str) and node is not schema:
            resolver = resolver.in_subresource(DRAFT3.create_resource(node))
        reference = node.get("$ref")
        if isinstance(reference, str):
            try:
                resolver.lookup(reference)
            except referencing.exceptions.Unresolvable:
                return reference
        pending += [(inner, resolver) for name, inner in node.items() if name not in _DATA]
    return None


def pattern_python_refuses(*schemas: Any) -> str | None:
    """Return a pattern of schemas that Python's engine cannot use, where there is one."""
    pending = list(schemas)
    while pending:
        node = pending.pop()
        if isinstance(node, list):
            pending += node
        if not isinstance(node, dict):
            continue
        keyed = node.get("patternProperties")
        for pattern in (node.get("pattern"), *(keyed if isinstance(keyed, dict) else ())):
            if isinstance(pattern, str) and not _compiles(pattern):
                return pattern
        pending += [inner for name, inner in node.items() if name not in _DATA]
    return None


def _compiles(pattern: str) -> bool:
    try:
        re.compile(pattern)
    except (re.error, OverflowError, RecursionError):
        return False
    return True
