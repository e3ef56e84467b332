"""From what the sandbox says of a batch to judgements; whose fault a broken limit is."""

from collections.abc import Callable, Iterator, Sequence
from typing import Any

from assay.tasks import FormatSpec

from sandboxes.base import Sandboxes
from verifiers.base import Failure, Judgement
from verifiers.reasoning import after_reasoning, without_end_of_turn
from verifiers.structured.together import Checked, Item, check_together, failure_of

Judge = Callable[[int, dict[str, Any], Checked], Judgement]
"""Makes a judgement of an item, by its position, and what the guest function returned for it."""


def grade_together(
    guest: str, items: Sequence[Item], sandboxes: Sandboxes, judge: Judge
) -> Iterator[Judgement | Failure]:
    """Yield one judgement or failure per item, in order.

    A result that has `bad_reference` is that failure. A check that breaks a limit is the completion's fault, unless its
    spec alone (an item `{"probe": True}`) is bad or breaks a limit as well.
    """
    checked = check_together(guest, items, sandboxes)
    broken = [item for item, check in zip(items, checked, strict=True) if check.result is None]
    probes = [Item(item.spec, item.key, {"probe": True}) for item in broken]
    probed = iter(check_together(guest, probes, sandboxes, alone=True))
    for position, check in enumerate(checked):
        if check.result is None:
            yield _judge_broken(check, next(probed))
        elif "bad_reference" in check.result:
            yield _bad_reference(check.result)
        else:
            yield judge(position, check.result, check)


def answer_part(completion: str, form: FormatSpec) -> str | None:
    """Return the part of a completion in which its answer stands; None when its reasoning does not end.

    A completion that starts with JSON has no reasoning: a tag within its strings is text.
    """
    if not form.think_prefilled and completion.lstrip()[:1] in ("{", "["):
        return without_end_of_turn(completion)
    return after_reasoning(completion, form)


def _judge_broken(check: Checked, probed: Checked) -> Judgement | Failure:
    failure = failure_of(check) or failure_of(probed)
    if failure is not None:
        return failure
    if probed.result is None:
        return Failure("bad_reference", f"reference: using it broke a limit of the sandbox ({probed.limit})")
    if "bad_reference" in probed.result:
        return _bad_reference(probed.result)
    return Judgement(
        check.limit,
        accuracy=0.0,
        cpu_seconds=check.outcome.cpu_seconds,
        peak_memory_bytes=check.outcome.peak_memory_bytes,
    )


def _bad_reference(result: dict[str, Any]) -> Failure:
    message = str(result["bad_reference"])
    named = message if message.startswith(("reference", "tools", "fingerprint")) else f"reference: {message}"
    return Failure("bad_reference", named)
