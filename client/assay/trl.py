"""A reward function for TRL's `GRPOTrainer`: `TrlReward`, and `assay.trl.reward` for the command line.

    trainer = GRPOTrainer(model, reward_funcs=[TrlReward({"verifier": "math"}, columns={"reference": "solution"})], …)
    trl grpo --reward_funcs assay.trl.reward …   # with ASSAY_URL, and ASSAY_TRL='{"task": {"verifier": "math"}}'

TRL itself is not imported; any trainer that calls reward functions with its keyword arguments can use this.
"""

import json
import logging
import os
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from assay.async_client import AsyncAssay, OnError
from assay.errors import ServiceFailure, Ungraded
from assay.reward import RewardSpec
from assay.tasks import FormatSpec
from assay.verdict import Verdict

logger = logging.getLogger("assay")

_SOLUTION = {"reference": "solution"}
Text = str | Sequence[Mapping[str, Any]]
"""A completion as TRL has it: a text, or the messages of a conversation."""


class TrlReward:
    """Grades each batch of completions in one asynchronous call; TRL runs it beside its other asynchronous functions.

    Where the grading failed the reward is None: TRL leaves that sample out of its group's mean, and its advantage is 0.
    The object can be pickled, as TRL's worker processes need.
    """

    def __init__(
        self,
        task: Mapping[str, Any],
        *,
        columns: Mapping[str, str] = _SOLUTION,
        json_columns: Sequence[str] = (),
        reward: Mapping[str, Any] | None = None,
        format: Mapping[str, Any] | None = None,
        on_error: OnError = "none",
        name: str = "assay",
        **client: Any,
    ) -> None:
        """Prepare; nothing is connected yet.

        Args:
            task: what all tasks have in common: `verifier`, and `options` where wanted.
            columns: the dataset's column for each field of a task that differs.
            json_columns: those of these columns that hold JSON as text, as columns of tests often do.
            reward: fields of a `RewardSpec`.
            format: fields of a `FormatSpec`; no format score when left out.
            on_error: what stands for a reward where the grading failed, as in `AsyncAssay.rewards`.
            name: names the metric `rewards/NAME/mean` and those logged beside it.
            client: arguments of `AsyncAssay`, such as `url` and `deadline_seconds`.

        Raises:
            ValueError: `task` names no verifier and no column does, or the client's arguments are wrong.
        """
        if "verifier" not in task and "verifier" not in columns:
            raise ValueError('task names no verifier: give {"verifier": "math"}, or a column for it')
        if "completion" in task or "completion" in columns:
            raise ValueError("the completion is the trainer's to give: leave it out of task and columns")
        self.__name__ = name
        self._task = dict(task)
        self._columns = dict(columns)
        self._json_columns = frozenset(json_columns)
        self._reward = RewardSpec.model_validate(reward or {})
        self._format = None if format is None else FormatSpec.model_validate(format)
        self._on_error = on_error
        self._client = AsyncAssay(**client)

    async def __call__(
        self,
        prompts: Sequence[Any],
        completions: Sequence[Text],
        *,
        log_extra: Callable[[str, list[Any]], None] | None = None,
        log_metric: Callable[[str, float], None] | None = None,
        **batch: Any,
    ) -> list[float | None]:
        """Return one reward a completion; None where its reference is None, or the grading failed.

        Args:
            prompts: not used.
            completions: texts, or messages, of which the last of the assistant counts.
            log_extra: TRL's; given the reasons of the verdicts as a column.
            log_metric: TRL's; given the mean accuracy and format score, and the share of errors.
            batch: the dataset's columns, and whatever else TRL passes.

        Raises:
            ValueError: a column is missing.
            Refused: the service refused a task, or the key.
            Ungraded, ServiceFailure: under the policy `raise`.
        """
        del prompts
        rows = [self._fields(batch, position) for position in range(len(completions))]
        positions = [position for position, row in enumerate(rows) if row is not None]
        tasks = [{**(rows[position] or {}), "completion": _text(completions[position])} for position in positions]
        verdicts: list[Verdict | None] = [None] * len(completions)
        try:
            graded = await self._client.grade(tasks, reward=self._reward, format=self._format)
            for position, verdict in zip(positions, graded, strict=True):
                verdicts[position] = verdict
        except ServiceFailure as failure:
            if self._on_error == "raise":
                raise
            logger.warning("%d completions have no reward: %s", len(tasks), failure)
        failed = [verdict for verdict in verdicts if verdict is not None and verdict.reward is None]
        if failed and self._on_error == "raise":
            raise Ungraded(failed)
        self._log(verdicts, [verdicts[position] for position in positions], log_extra, log_metric)
        wanted = set(positions)
        return [
            verdict.reward
            if verdict is not None and verdict.reward is not None
            else self._substitute(position in wanted)
            for position, verdict in enumerate(verdicts)
        ]

    def _substitute(self, was_asked: bool) -> float | None:
        return None if not was_asked or isinstance(self._on_error, str) else float(self._on_error)

    def _fields(self, batch: Mapping[str, Any], position: int) -> dict[str, Any] | None:
        """Return a task without its completion; None when the row has nothing to grade against."""
        fields = dict(self._task)
        for field, column in self._columns.items():
            if column not in batch:
                raise ValueError(
                    f"the dataset has no column {column!r} for {field!r}; it has: {', '.join(sorted(batch))}"
                )
            value = batch[column][position]
            if value is None:
                return None
            fields[field] = json.loads(value) if column in self._json_columns else value
        return fields

    def _log(
        self,
        verdicts: Sequence[Verdict | None],
        asked: Sequence[Verdict | None],
        log_extra: Callable[[str, list[Any]], None] | None,
        log_metric: Callable[[str, float], None] | None,
    ) -> None:
        if log_extra is not None:
            log_extra(f"{self.__name__}_reason", [_reason(verdict) for verdict in verdicts])
        if log_metric is None or not asked:
            return
        log_metric(f"{self.__name__}/errors", sum(v is None or v.reward is None for v in asked) / len(asked))
        for score in ("accuracy", "format"):
            known = [value for v in asked if v is not None and (value := getattr(v, score)) is not None]
            if known:
                log_metric(f"{self.__name__}/{score}", sum(known) / len(known))


def _reason(verdict: Verdict | None) -> str:
    if verdict is None:
        return "none"
    return f"error: {verdict.error.kind}" if verdict.error else str(verdict.reason)


def _text(completion: Text) -> str:
    """Return the text to grade; of a conversation, the last message of the assistant that has text."""
    if isinstance(completion, str):
        return completion
    for message in reversed(completion):
        if message.get("role", "assistant") == "assistant" and (text := _content(message.get("content"))):
            return text
    return ""


def _content(content: Any) -> str:
    if isinstance(content, str):
        return content
    return "".join(part.get("text") or "" for part in content or () if isinstance(part, Mapping))


def __getattr__(name: str) -> TrlReward:
    if name != "reward":
        raise AttributeError(name)
    try:
        arguments = json.loads(os.environ["ASSAY_TRL"])
    except (KeyError, ValueError):
        raise ValueError('set ASSAY_TRL to the arguments of TrlReward, as {"task": {"verifier": "math"}}') from None
    return TrlReward(**arguments)
