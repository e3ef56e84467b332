"""Finding the answer: properties that no completion may break."""

import time

import pytest
from assay.tasks import MathOptions, MathSource
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from verifiers.math.extraction import find_answer

SOURCES: tuple[MathSource, ...] = ("boxed", "answer_tag", "marker", "phrase", "last_expression", "last_number")
PIECES = (
    *(r"\boxed{", r"\boxed", r"\fbox{", "}", "{", "\\", r"\{", "<answer>", "</answer>", "<think>", "</think>"),
    *("#### ", "A: ", "The answer is ", "answer: ", "Question: ", "答案是", "故选", "최종 답은 "),
    *("$", "$$", r"\(", r"\)", "**", "5", "1,234", ".", "x", "\n", " "),
)


@given(st.lists(st.sampled_from(PIECES), max_size=20).map("".join), st.sampled_from(SOURCES))
def test_an_answer_is_part_of_the_text_after_the_reasoning(text: str, source: MathSource) -> None:
    found = find_answer(text, MathOptions(extract=(source,)), None)
    if found.text is None:
        assert found.source in {"absent", "unfinished_reasoning", "unclosed", "empty"}
    else:
        assert found.source == source
        assert found.text.strip()
        assert found.text in text.rpartition("</think>")[2]


@given(st.lists(st.sampled_from(PIECES), max_size=12).map("".join))
def test_a_complete_last_box_wins(text: str) -> None:
    found = find_answer(f"{text}</think>\nSo \\boxed{{42}}", MathOptions(), None)
    assert (found.text, found.source) == ("42", "boxed")


@pytest.mark.parametrize("source", SOURCES)
@pytest.mark.parametrize("piece", PIECES)
def test_time_is_linear(piece: str, source: MathSource) -> None:
    def seconds(count: int) -> float:
        text = piece * count
        started = time.process_time()
        find_answer(text, MathOptions(extract=(source,)), None)
        return time.process_time() - started

    assert seconds(2_000_000 // len(piece)) < 6.0


def test_a_pattern_must_be_given_where_it_is_named() -> None:
    with pytest.raises(ValidationError, match="`pattern` is not given"):
        MathOptions(extract=("pattern",))
    assert MathOptions(pattern="x").sources[0] == "pattern"
    assert MathOptions(pattern="x", extract=("boxed", "pattern")).sources == ("boxed", "pattern")
