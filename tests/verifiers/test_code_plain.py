"""What crosses between the two processes of an assert-style run: values unchanged, and garbage never as an answer."""

import collections
import contextlib
import datetime as dt
import decimal
import fractions
import json
import random
import socket
import struct
from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from verifiers.code.channel import ChannelClosed, Violation
from verifiers.code.plain import Decoder, Encoder, MalformedError, NotPlainError, replace_content
from verifiers.code.session import Session


def refuse(value: Any) -> Any:
    raise NotPlainError(type(value).__name__)


def across(value: Any) -> Any:
    """Send a value over, as JSON text."""
    return Decoder({}).decode(json.loads(json.dumps(Encoder(refuse).encode(value))))


keys = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text() | st.binary(max_size=9),
    lambda inner: st.tuples(inner, inner) | st.frozensets(inner, max_size=3),
    max_leaves=4,
)
values: st.SearchStrategy[Any] = st.recursive(
    keys | st.complex_numbers(allow_nan=False) | st.fractions() | st.decimals(allow_nan=False) | st.dates(),
    lambda inner: (
        st.lists(inner, max_size=4)
        | st.dictionaries(keys, inner, max_size=4)
        | st.sets(keys, max_size=4)
        | st.tuples(inner)
        | st.builds(collections.deque, st.lists(inner, max_size=3), st.integers(3, 5))
    ),
    max_leaves=12,
)


def exact(value: Any) -> Any:
    """Return the value with the type of each part, so that 1, 1.0 and True differ."""
    if isinstance(value, (list, tuple, collections.deque)):
        return type(value).__name__, [exact(part) for part in value]
    if isinstance(value, dict):
        return type(value).__name__, [(exact(key), exact(part)) for key, part in value.items()]
    if isinstance(value, (set, frozenset)):
        return type(value).__name__, sorted(repr(exact(part)) for part in value)
    return type(value).__name__, repr(value)


@given(values)
def test_values_cross_unchanged(value: Any) -> None:
    assert exact(across(value)) == exact(value)


@given(st.text(alphabet="ab\ud800\udc00\ud83d\ude00\U0001f600", max_size=6))
def test_surrogates_cross_unchanged(text: str) -> None:
    assert across([text, {text: text}]) == [text, {text: text}]


class Loud(list[Any]):
    def __iter__(self) -> Any:
        return iter(["wrong"])

    def __len__(self) -> int:
        return 99

    def __eq__(self, other: object) -> bool:
        return True

    __hash__ = None


class LoudNumber(int):
    def __eq__(self, other: object) -> bool:
        return True

    def __index__(self) -> int:
        return 7

    __hash__ = int.__hash__


class LoudText(str):
    __slots__ = ()

    def __str__(self) -> str:
        return "wrong"

    def __iter__(self) -> Any:
        return iter("wrong")


class LoudDict(dict[str, int]):
    def items(self) -> Any:
        return [("wrong", 1)]

    def __iter__(self) -> Any:
        return iter("wrong")


@pytest.mark.parametrize(
    ("value", "plain"),
    [
        (Loud([1, 2]), [1, 2]),
        (LoudNumber(3), 3),
        (LoudText("ab"), "ab"),
        (LoudDict(a=1), {"a": 1}),
        (collections.Counter("aab"), collections.Counter(a=2, b=1)),
        (collections.OrderedDict(b=1, a=2), collections.OrderedDict(b=1, a=2)),
        (collections.defaultdict(None, {1: 2}), {1: 2}),
        (dt.datetime(2024, 1, 2, 3, tzinfo=dt.UTC), dt.datetime(2024, 1, 2, 3, tzinfo=dt.UTC)),
        (dt.timedelta(1, 2, 3), dt.timedelta(1, 2, 3)),
        (decimal.Decimal("1.10"), decimal.Decimal("1.10")),
        (fractions.Fraction(1, 3), fractions.Fraction(1, 3)),
        (range(1, 9, 2), range(1, 9, 2)),
        (slice(1, None, 2), slice(1, None, 2)),
        (int, int),
        (NotImplemented, NotImplemented),
    ],
)
def test_subclasses_and_library_values(value: Any, plain: Any) -> None:
    crossed = across(value)
    assert crossed == plain
    assert type(crossed) in (type(plain), collections.defaultdict)


def cyclic() -> Any:
    value: list[Any] = []
    value.append(value)
    return value


def nested(depth: int) -> Any:
    value: Any = 0
    for _ in range(depth):
        value = [value]
    return value


def doubled(times: int) -> Any:
    value: Any = [0]
    for _ in range(times):
        value = [value, value]
    return value


@pytest.mark.parametrize("value", [cyclic(), nested(101), nested(100_000), doubled(40), object(), [lambda: 0]])
def test_what_cannot_cross_is_refused(value: Any) -> None:
    with pytest.raises(NotPlainError):
        Encoder(refuse).encode(value)


def test_a_container_met_twice_stays_one() -> None:
    row = [0]
    encoder = Encoder(refuse, track=True)
    form = encoder.encode([row, row, {"k": row}])
    decoder = Decoder({}, track=True)
    grid = decoder.decode(json.loads(json.dumps(form)))
    assert grid[0] is grid[1] is grid[2]["k"]
    assert [type(c) for c in decoder.containers] == [type(c) for c in encoder.containers] == [list, list, dict]


forms = st.recursive(
    st.none() | st.booleans() | st.integers(-3, 3) | st.floats() | st.text(max_size=3),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(st.sampled_from([*Decoder._BUILDERS, "object", "handle", "x"]), inner, min_size=1, max_size=2)
    ),
    max_leaves=10,
)


@settings(max_examples=1000)
@given(forms)
def test_any_form_is_a_value_or_malformed(form: Any) -> None:
    try:
        Decoder({}).decode(form)
    except MalformedError:
        return


def test_a_container_takes_on_content_of_its_own_type_only() -> None:
    held = [1]
    replace_content(held, [2, 3])
    assert held == [2, 3]
    with pytest.raises(MalformedError):
        replace_content(held, {})


@contextlib.contextmanager
def answered_by(answers: bytes) -> Iterator[Session]:
    """Give a session whose other end has said these bytes, whatever it will be asked, and nothing more."""
    ours, theirs = socket.socketpair()
    with ours, theirs:
        theirs.sendall(answers)
        theirs.shutdown(socket.SHUT_WR)
        session = Session(ours, "__main__")
        session.wait_until_loaded()
        yield session


def frame(message: Any) -> bytes:
    body = json.dumps(message).encode()
    return struct.pack("!I", len(body)) + body


@settings(max_examples=300, deadline=None)
@given(
    st.dictionaries(st.sampled_from(["value", "raised", "changed", "callback", "args", "kwargs", "unsendable"]), forms)
)
def test_any_answer_gives_a_value_or_ends_the_session(answer: dict[str, Any]) -> None:
    with answered_by(frame({"ready": True}) + frame(answer) * 3) as session:
        try:
            session.lookup("f", live=False)
        except BaseException:
            assert session.failure is not None or "raised" in answer


@pytest.mark.parametrize("seed", range(40))
def test_garbage_ends_the_session(seed: int) -> None:
    with answered_by(frame({"ready": True}) + random.Random(seed).randbytes(200)) as session:
        with pytest.raises((ChannelClosed, Violation)):
            session.lookup("f", live=False)
        assert session.failure is not None
        with pytest.raises(type(session.failure)):
            session.lookup("g", live=False)
