"""How often a schema is applied to one and the same value: references to references multiply. Inside sandboxes only.

Only references within the document are followed (`#`, `#/pointer`, `#anchor`); what lies behind others counts as one.
"""

from collections.abc import Iterator
from typing import Any
from urllib.parse import unquote

MAX_EXPANSION = 100_000
"""Subschemas applied to one value, each as often as it is reached."""

_LISTS = ("allOf", "anyOf", "oneOf")
_SINGLE = ("not", "if", "then", "else")
_MAPS = ("dependentSchemas", "dependencies")
_DRAFT_3 = ("extends", "disallow", "type")  # a schema, or a list that may hold schemas
_DOWN_SINGLE = (
    "additionalProperties",
    "additionalItems",
    "contains",
    "propertyNames",
    "unevaluatedItems",
    "unevaluatedProperties",
    "items",
)
_DOWN_MAPS = ("properties", "patternProperties")


class Unbounded(Exception):
    """The schema, applied to one value, never ends or takes too long; the message says why."""


def check_expansion(schema: Any, *, siblings_of_ref: bool) -> None:
    """Refuse a schema that is applied to one value without end, or more than MAX_EXPANSION times.

    Args:
        schema: the whole document.
        siblings_of_ref: whether keywords beside `$ref` count, as they do from 2019-09 on.

    Raises:
        Unbounded: it is.
    """
    _Expansion(schema, siblings_of_ref).check()


class _Expansion:
    def __init__(self, schema: Any, siblings_of_ref: bool) -> None:
        self._root = schema
        self._siblings_of_ref = siblings_of_ref
        self._anchors: dict[str, Any] = {}
        self._sizes: dict[int, int] = {}
        self._open: set[int] = set()

    def check(self) -> None:
        """Look at every subschema that is reached from the root."""
        seen: set[int] = set()
        pending = [self._root]
        while pending:
            node = pending.pop()
            if not isinstance(node, dict) or id(node) in seen:
                continue
            seen.add(id(node))
            self._size(node)
            pending += [*self._in_place(node), *_down(node)]

    def _size(self, node: Any) -> int:
        if not isinstance(node, dict):
            return 1
        known = self._sizes.get(id(node))
        if known is not None:
            return known
        if id(node) in self._open:
            raise Unbounded("it refers to itself for the same value, without end")
        self._open.add(id(node))
        size = 1 + sum(map(self._size, self._in_place(node)))
        self._open.discard(id(node))
        if size > MAX_EXPANSION:
            raise Unbounded(f"its references multiply to more than {MAX_EXPANSION} subschemas for one value")
        self._sizes[id(node)] = size
        return size

    def _in_place(self, node: dict[str, Any]) -> Iterator[Any]:
        """Yield the subschemas that are applied to the same value as this one."""
        reference = node.get("$ref")
        if isinstance(reference, str):
            yield self._target(reference)
            if not self._siblings_of_ref:
                return
        for name in (*_LISTS, *_DRAFT_3):
            inner = node.get(name)
            yield from inner if isinstance(inner, list) else [inner]
        for name in _SINGLE:
            yield node.get(name)
        for name in _MAPS:
            inner = node.get(name)
            yield from inner.values() if isinstance(inner, dict) else ()

    def _target(self, reference: str) -> Any:
        if not reference.startswith("#"):
            return None
        fragment = unquote(reference[1:])
        if fragment and not fragment.startswith("/"):
            return self._anchor(fragment)
        node = self._root
        for step in fragment.split("/")[1:]:
            key = step.replace("~1", "/").replace("~0", "~")
            if isinstance(node, dict):
                node = node.get(key)
            elif isinstance(node, list) and key.isdecimal() and int(key) < len(node):
                node = node[int(key)]
            else:
                return None
        return node

    def _anchor(self, name: str) -> Any:
        if not self._anchors:
            self._anchors = {"": None}
            pending = [self._root]
            while pending:
                node = pending.pop()
                if isinstance(node, dict):
                    for keyword in ("$anchor", "$dynamicAnchor"):
                        if isinstance(node.get(keyword), str):
                            self._anchors.setdefault(node[keyword], node)
                    pending += node.values()
                elif isinstance(node, list):
                    pending += node
        return self._anchors.get(name)


def _down(node: dict[str, Any]) -> Iterator[Any]:
    """Yield the subschemas that are applied to what is inside a value."""
    for name in (*_DOWN_SINGLE, "prefixItems"):
        inner = node.get(name)
        yield from inner if isinstance(inner, list) else [inner]
    for name in _DOWN_MAPS:
        inner = node.get(name)
        yield from inner.values() if isinstance(inner, dict) else ()
