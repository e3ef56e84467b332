"""Plain data as JSON and back: exact builtin values, and a few immutable ones of the standard library.

Runs inside the sandbox, on both sides of the channel. Nothing is ever unpickled, no code of the sender is run. JSON
arrays are lists, JSON scalars are themselves; everything else is an object with one key, the tag: `{"tuple": […]}`.
An instance of a subclass of a plain type is sent as its base type, read with the base type's own methods, so that
whatever it overrides decides nothing. What is not plain goes to a hook of the caller.
"""

import builtins
import collections
import datetime as dt
import decimal
import fractions
import re
from collections.abc import Callable, Iterable, Mapping
from typing import Any, NoReturn

Json = Any
Hook = Callable[[Any], Json]

MAX_DEPTH = 100
MAX_VALUES = 2_000_000
_SMALL = 1 << 63
_SCALARS = {type(None), bool, float}
_FLAT = {*_SCALARS, int, str}
_SURROGATE = re.compile("[\ud800-\udfff]")
_DICT_VIEWS = {type({}.keys()): "keys", type({}.values()): "values", type({}.items()): "items"}
_TIMES = {dt.datetime, dt.date, dt.time}
BUILTIN_TYPES = {name: kind for name, kind in vars(builtins).items() if type(kind) is type}
"""Types that both sides have anyway; each crosses as its name."""
_BUILTIN_NAMES = {kind: name for name, kind in BUILTIN_TYPES.items()}
_CONSTANTS = {"NotImplemented": NotImplemented, "Ellipsis": Ellipsis}
PLAIN_NAMES = frozenset(
    name
    for kind in (
        int,
        float,
        complex,
        str,
        bytes,
        bytearray,
        list,
        tuple,
        dict,
        set,
        frozenset,
        range,
        collections.deque,
    )
    for name in dir(kind)
)
"""Attributes of plain values."""
MUTABLE = (list, dict, set, bytearray, collections.deque)
"""Types whose instances can be changed in place; each one in a message has a number, counted from 0 as they appear."""


class NotPlainError(Exception):
    """The value cannot be sent."""


class OversizeError(NotPlainError):
    """The value is of a kind that can be sent, but too deep or too large."""


class MalformedError(Exception):
    """The received form stands for no value."""


class Encoder:
    """Turns values into JSON. One for each message; `containers` then lists the message's mutable ones in order."""

    def __init__(
        self,
        hook: Hook,
        known: Iterable[Any] = (),
        *,
        track: bool = False,
        is_object: Callable[[Any], bool] | None = None,
    ) -> None:
        """Prepare for one message.

        Args:
            hook: called with what is not plain; returns its form or raises `NotPlainError`.
            is_object: tells of an instance of a subclass of a plain type whether it goes to the hook as well.
            known: containers that the other side has, sent as references to their place in this sequence.
            track: number the containers met, and send one that appears again as a reference, so that it stays one.
        """
        self.containers: list[Any] = list(known)
        self._numbers = {id(container): number for number, container in enumerate(self.containers)}
        self._hook = hook
        self._is_object = is_object
        self._track = track
        self._open: set[int] = set()
        self._values = 0

    def encode(self, value: Any) -> Json:
        """Return the value's form.

        Raises:
            NotPlainError: it has none.
        """
        kind = type(value)
        if kind in _FLAT:
            return value if _as_itself(value) else _spelled(value)
        if id(value) in self._numbers:
            return {"ref": self._numbers[id(value)]}
        if self._is_object is not None and self._is_object(value):
            return self._hook(value)
        return self._encode_container(value)

    def content(self, container: Any) -> Json:
        """Return the form of a known container itself, its elements that are known as references."""
        number = self._numbers.pop(id(container))
        form = self.encode(container)
        self._numbers[id(container)] = number
        return form

    def _encode_container(self, value: Any) -> Json:
        if id(value) in self._open:
            raise OversizeError("the value contains itself")
        if len(self._open) >= MAX_DEPTH:
            raise OversizeError(f"the value is nested more than {MAX_DEPTH} deep")
        if self._track and issubclass(type(value), MUTABLE):
            self._numbers[id(value)] = len(self.containers)
            self.containers.append(value)
        self._open.add(id(value))
        form = self._form(value)
        self._open.discard(id(value))
        return form

    def _form(self, value: Any) -> Json:  # noqa: PLR0911 - one line a kind
        kind = type(value)
        if issubclass(kind, list):
            return self._items(list.__iter__(value), list.__len__(value))
        if issubclass(kind, tuple):
            items = self._items(tuple.__iter__(value), tuple.__len__(value))
            fields = getattr(kind, "_fields", None)
            if kind is not tuple and type(fields) is tuple and all(type(field) is str for field in fields):
                return {"namedtuple": [kind.__name__, list(fields), items]}
            return {"tuple": items}
        if issubclass(kind, dict):
            return self._dict(value)
        if issubclass(kind, (set, frozenset)):
            base: Any = set if issubclass(kind, set) else frozenset
            items = self._items(base.__iter__(value), base.__len__(value))
            return {base.__name__: items}
        if kind in _DICT_VIEWS:
            return {_DICT_VIEWS[kind]: self._items(iter(value), len(value))}
        if issubclass(kind, collections.deque):
            items = self._items(collections.deque.__iter__(value), collections.deque.__len__(value))
            return {"deque": [items, value.maxlen]}
        return self._scalar(value)

    def _scalar(self, value: Any) -> Json:  # noqa: PLR0911, PLR0912 - one line a kind
        kind = type(value)
        if issubclass(kind, int):
            return self.encode(int.__index__(value))
        if issubclass(kind, float):
            return float.__float__(value)
        if issubclass(kind, str):
            return self.encode("".join(str.__iter__(value)))
        if issubclass(kind, bytes):
            return {"bytes": bytes.hex(value)}
        if issubclass(kind, bytearray):
            return {"bytearray": bytearray.hex(value)}
        if issubclass(kind, complex):
            exact = complex.__pos__(value)
            return {"complex": [exact.real, exact.imag]}
        if kind is range:
            return {"range": [self.encode(part) for part in (value.start, value.stop, value.step)]}
        if kind is slice:
            return {"slice": [self.encode(part) for part in (value.start, value.stop, value.step)]}
        if kind is fractions.Fraction:
            return {"fraction": [self.encode(value.numerator), self.encode(value.denominator)]}
        if kind is decimal.Decimal:
            return {"decimal": str(value)}
        if kind is dt.timedelta:
            return {"timedelta": [value.days, value.seconds, value.microseconds]}
        if kind in _TIMES:
            return {kind.__name__: value.isoformat()}
        if kind is type and value in _BUILTIN_NAMES:
            return {"builtin": _BUILTIN_NAMES[value]}
        if value is NotImplemented or value is Ellipsis:
            return {"constant": repr(value)}
        return self._hook(value)

    def _items(self, items: Iterable[Any], count: int) -> list[Json]:
        self._values += count
        if self._values > MAX_VALUES:
            raise OversizeError(f"more than {MAX_VALUES} values")
        held = list(items)
        if not set(map(type, held)) - _FLAT and all(map(_as_itself, held)):
            return held
        return [self.encode(item) for item in held]

    def _dict(self, value: Any) -> Json:
        items = [
            [self.encode(key), self.encode(item)] for key, item in self._counted(dict.items(value), dict.__len__(value))
        ]
        if issubclass(type(value), collections.Counter):
            return {"counter": items}
        if issubclass(type(value), collections.OrderedDict):
            return {"ordered": items}
        if issubclass(type(value), collections.defaultdict):
            try:
                return {
                    "default": [None if value.default_factory is None else self._hook(value.default_factory), items]
                }
            except NotPlainError:
                return {"default": [None, items]}
        return {"dict": items}

    def _factory(self, factory: Any) -> Json:
        try:
            return None if factory is None else self._hook(factory)
        except NotPlainError:
            return None  # the dictionary then still holds what it holds

    def _counted(self, items: Iterable[Any], count: int) -> Iterable[Any]:
        self._values += count
        if self._values > MAX_VALUES:
            raise OversizeError(f"more than {MAX_VALUES} values")
        return items


class Decoder:
    """Builds values from JSON. `containers` lists the mutable ones, numbered as the sender's `Encoder` numbers them."""

    def __init__(self, hooks: Mapping[str, Hook], known: Iterable[Any] = (), *, track: bool = False) -> None:
        """Prepare for one message.

        Args:
            hooks: for each tag that is not plain data, what builds its value.
            known: containers that references of the message point to.
            track: number the containers built.
        """
        self.containers: list[Any] = list(known)
        self._hooks = hooks
        self._track = track
        self._depth = 0

    def decode(self, form: Json) -> Any:
        """Return the value.

        Raises:
            MalformedError: the form stands for none.
        """
        kind = type(form)
        if kind in _FLAT:
            return form
        self._depth += 1
        if self._depth > 2 * MAX_DEPTH:
            raise MalformedError("nested too deep")
        value = self._list(form) if kind is list else self._tagged(form)
        self._depth -= 1
        return value

    def _list(self, form: Json) -> list[Any]:
        held: list[Any] = self._numbered([])
        held.extend(self._items(form))
        return held

    def _items(self, form: Json) -> list[Any]:
        if type(form) is not list:
            raise MalformedError("a list was expected")
        if not set(map(type, form)) - _FLAT:
            return form
        return [self.decode(item) for item in form]

    def _numbered(self, container: Any) -> Any:
        if self._track:
            self.containers.append(container)
        return container

    def _tagged(self, form: Json) -> Any:
        if type(form) is not dict or len(form) != 1:
            raise MalformedError("a tag was expected")
        ((tag, body),) = form.items()
        if tag in self._hooks:
            return self._hooks[tag](body)
        try:
            return self._BUILDERS[tag](self, body)
        except (MalformedError, MemoryError):
            raise
        except Exception:
            raise MalformedError(f"not a value: {tag!r:.40}") from None

    def _ref(self, body: Json) -> Any:
        if type(body) is not int or not 0 <= body < len(self.containers):
            raise MalformedError("a reference to nothing")
        return self.containers[body]

    def _fill_dict(self, empty: Any, items: Json) -> Any:
        held = self._numbered(empty)
        for key, item in self._pairs(items):
            decoded = self.decode(key)
            dict.__setitem__(held, decoded, self.decode(item))
        return held

    def _default(self, body: Json) -> Any:
        factory, items = body
        held: Any = collections.defaultdict()
        self._fill_dict(held, items)
        held.default_factory = self.decode(factory)
        return held

    def _fill_set(self, items: Json) -> set[Any]:
        held: set[Any] = self._numbered(set())
        held.update(self._items(items))
        return held

    def _fill_deque(self, body: Json) -> Any:
        items, maxlen = body
        held: Any = self._numbered(collections.deque(maxlen=maxlen))
        held.extend(self._items(items))
        return held

    def _namedtuple(self, body: Json) -> Any:
        name, fields, items = body
        return _namedtuple_type(name, tuple(fields))(*self._items(items))

    def _view(self, items: Json, view: str) -> Any:
        if view == "items":
            return dict(self._items(items)).items()
        if view == "keys":
            return dict.fromkeys(self._items(items)).keys()
        return dict(enumerate(self._items(items))).values()

    @staticmethod
    def _pairs(items: Json) -> Iterable[tuple[Json, Json]]:
        if type(items) is not list:
            refuse("pairs were expected")
        for pair in items:
            if type(pair) is not list or len(pair) != 2:
                refuse("a pair was expected")
            yield pair[0], pair[1]

    _BUILDERS: Mapping[str, Callable[["Decoder", Json], Any]] = {
        "ref": lambda self, body: self._ref(body),
        "int": lambda _, body: int(body, 16),
        "str": lambda _, body: bytes.fromhex(body).decode("utf-32-le", "surrogatepass"),
        "tuple": lambda self, body: tuple(self._items(body)),
        "namedtuple": lambda self, body: self._namedtuple(body),
        "dict": lambda self, body: self._fill_dict({}, body),
        "counter": lambda self, body: self._fill_dict(collections.Counter(), body),
        "ordered": lambda self, body: self._ordered(body),
        "default": lambda self, body: self._default(body),
        "set": lambda self, body: self._fill_set(body),
        "frozenset": lambda self, body: frozenset(self._items(body)),
        "keys": lambda self, body: self._view(body, "keys"),
        "values": lambda self, body: self._view(body, "values"),
        "items": lambda self, body: self._view(body, "items"),
        "deque": lambda self, body: self._fill_deque(body),
        "bytes": lambda _, body: bytes.fromhex(body),
        "bytearray": lambda self, body: self._numbered(bytearray.fromhex(body)),
        "complex": lambda _, body: complex(float(body[0]), float(body[1])),
        "range": lambda self, body: range(*self._items(body)),
        "slice": lambda self, body: slice(*self._items(body)),
        "fraction": lambda self, body: fractions.Fraction(*self._items(body)),
        "decimal": lambda _, body: decimal.Decimal(body),
        "timedelta": lambda _, body: dt.timedelta(*body),
        "datetime": lambda _, body: dt.datetime.fromisoformat(body),
        "builtin": lambda _, body: BUILTIN_TYPES[body],
        "constant": lambda _, body: _CONSTANTS[body],
        "date": lambda _, body: dt.date.fromisoformat(body),
        "time": lambda _, body: dt.time.fromisoformat(body),
    }

    def _ordered(self, body: Json) -> Any:
        held: Any = self._numbered(collections.OrderedDict())
        for key, item in self._pairs(body):
            held[self.decode(key)] = self.decode(item)
        return held


def refuse(what: str) -> NoReturn:
    """Raise `MalformedError`."""
    raise MalformedError(what)


def replace_content(container: Any, content: Any) -> None:
    """Make the container hold what `content`, of the same type, holds.

    Raises:
        MalformedError: the types differ.
    """
    if not any(isinstance(container, base) and isinstance(content, base) for base in MUTABLE):
        raise MalformedError("a container cannot change its type")
    if isinstance(container, (list, bytearray)):
        container[:] = content
    elif isinstance(container, (dict, set)):
        container.clear()
        container.update(content)
    else:
        container.clear()
        container.extend(content)


_namedtuple_types: dict[tuple[str, tuple[str, ...]], type] = {}


def _namedtuple_type(name: str, fields: tuple[str, ...]) -> type:
    if type(name) is not str or not all(type(field) is str for field in fields) or len(fields) > 64:
        raise MalformedError("not a named tuple")
    key = (name, fields)
    if key not in _namedtuple_types:
        _namedtuple_types[key] = collections.namedtuple(name, fields)
    return _namedtuple_types[key]


def _as_itself(value: Any) -> bool:
    """Whether JSON carries this scalar unchanged: no huge integer, no lone surrogate."""
    if type(value) is int:
        return -_SMALL < value < _SMALL
    return type(value) is not str or value.isascii() or not _SURROGATE.search(value)


def _spelled(value: int | str) -> Json:
    if isinstance(value, int):
        return {"int": hex(value)}
    return {"str": value.encode("utf-32-le", "surrogatepass").hex()}
