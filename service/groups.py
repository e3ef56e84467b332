"""`POST /v1/groups` and `POST /v1/pass_at_k`: bodies in, results out; tasks are checked as those of `/v1/grade` are."""

import re
from collections.abc import Callable, Sequence
from typing import Any, NoReturn, TypeVar

from assay.evaluation import evaluate_group, evaluate_prompts
from assay.groups import GroupsRequest, GroupsResponse, PassAtKRequest, PassAtKResponse
from assay.verdict import Verdict
from assay.wire import GradeRequest, ProblemField
from pydantic import BaseModel, ValidationError
from pydantic_core import to_json

from service.errors import MAX_FIELDS, BodyTooLarge, InvalidRequest, MalformedBody

M = TypeVar("M", bound=BaseModel)
_MAX_FACTORS = 2_000_000
"""Of all products of one request for pass@k; half a second."""
_TASK_FIELD = re.compile(r"tasks\[(\d+)\](?:\.(.*))?", re.DOTALL)


class GroupsBody:
    """A body of `POST /v1/groups`, checked, with its tasks laid out in one row."""

    def __init__(self, body: bytes, parse: Callable[[bytes], GradeRequest], max_bytes: int) -> None:
        """Read the body.

        Args:
            body: JSON.
            parse: what checks a body of `/v1/grade`.
            max_bytes: size that such a body may have: here each completion repeats its group's task.

        Raises:
            MalformedBody: the body is not JSON in UTF-8.
            BodyTooLarge: the tasks would be larger than `max_bytes` with their completions.
            InvalidRequest: fields are wrong; each is named as this body has it.
        """
        self.request = _read(GroupsRequest, body)
        self._check_lists()
        self._check_size(len(body), max_bytes)
        self._places = [
            (group, sample)
            for group, entry in enumerate(self.request.groups)
            for sample in range(len(entry.completions))
        ]
        self.graded = self._as_grade_request(parse)

    def results(self, verdicts: Sequence[Verdict]) -> GroupsResponse:
        """Return the answer for the verdicts of all tasks, in their order."""
        results = []
        start = 0
        for position, group in enumerate(self.request.groups):
            end = start + len(group.completions)
            name = group.id if group.id is not None else str(position)
            results.append(evaluate_group(group, name, verdicts[start:end], self.request))
            start = end
        return GroupsResponse.model_construct(groups=results, kept=sum(result.keep for result in results))

    def renamed(self, problem: InvalidRequest) -> InvalidRequest:
        """Return the problem with its fields named as this body has them."""
        return InvalidRequest.of([self._renamed(field) for field in problem.fields])

    def _as_grade_request(self, parse: Callable[[bytes], GradeRequest]) -> GradeRequest:
        tasks = [
            {**group.task, "id": f"{position}.{sample}", "completion": completion}
            for position, group in enumerate(self.request.groups)
            for sample, completion in enumerate(group.completions)
        ]
        common = self.request.model_dump(mode="json", include={"reward", "format", "deadline_seconds"})
        try:
            return parse(to_json({**common, "tasks": tasks}))
        except InvalidRequest as problem:
            raise self.renamed(problem) from None

    def _renamed(self, field: ProblemField) -> ProblemField:
        found = _TASK_FIELD.fullmatch(field.field)
        if found is None:
            return ProblemField(field="groups" if field.field == "tasks" else field.field, message=field.message)
        group, sample = self._places[int(found[1])]
        rest = found[2]
        place = f"completions[{sample}]" if rest == "completion" else f"task.{rest}" if rest else "task"
        return ProblemField(field=f"groups[{group}].{place}", message=field.message)

    def _check_size(self, body_bytes: int, max_bytes: int) -> None:
        """Refuse before anything is repeated: a large reference times many completions must not fill the memory."""
        size = body_bytes + sum(len(to_json(group.task)) * len(group.completions) for group in self.request.groups)
        if size > max_bytes:
            raise BodyTooLarge(
                f"with its task repeated for each completion the request has {size} bytes, more than {max_bytes}; send "
                "fewer groups at a time, or raise ASSAY_MAX_BODY_BYTES"
            )

    def _check_lists(self) -> None:
        wrong: list[ProblemField] = []
        seen: set[str] = set()
        needs_lengths = self.request.overlong is not None
        for position, group in enumerate(self.request.groups):
            path = f"groups[{position}]"
            name = group.id if group.id is not None else str(position)
            if name in seen:
                wrong.append(ProblemField(field=f"{path}.id", message=f"{name!r} is an earlier group's id"))
            seen.add(name)
            for field in ("completion", "id"):
                if field in group.task:
                    message = "give `completions` beside `task`" if field == "completion" else "give the group an `id`"
                    wrong.append(ProblemField(field=f"{path}.task.{field}", message=message))
            for field, values in (("lengths", group.lengths), ("finished", group.finished)):
                if values is not None and len(values) != len(group.completions):
                    message = f"{len(values)} entries for {len(group.completions)} completions"
                    wrong.append(ProblemField(field=f"{path}.{field}", message=message))
            if group.lengths is not None and min(group.lengths, default=0) < 0:
                wrong.append(ProblemField(field=f"{path}.lengths", message="lengths must be 0 or more"))
            if group.lengths is None and needs_lengths:
                wrong.append(ProblemField(field=f"{path}.lengths", message="required for `overlong`"))
            if self.request.mask_truncated and group.finished is None and not (group.lengths and needs_lengths):
                message = "required for `mask_truncated`, or `lengths` with `overlong`"
                wrong.append(ProblemField(field=f"{path}.finished", message=message))
            if len(wrong) >= MAX_FIELDS:
                break
        if wrong:
            raise InvalidRequest.of(wrong)


def pass_at_k(body: bytes) -> PassAtKResponse:
    """Return the answer to a body of `POST /v1/pass_at_k`.

    Raises:
        MalformedBody: the body is not JSON in UTF-8.
        InvalidRequest: fields are wrong; each is named.
    """
    request = _read(PassAtKRequest, body)
    pairs = {(prompt.samples, prompt.correct) for prompt in request.prompts}
    if sum(min(correct, k) for _, correct in pairs for k in request.k) > _MAX_FACTORS:
        message = f"counts and ks this large take more than {_MAX_FACTORS} factors; send fewer prompts or ks at a time"
        raise InvalidRequest.of([ProblemField(field="prompts", message=message)])
    return evaluate_prompts(request.prompts, request.k, request.confidence)


def _read(model: type[M], body: bytes) -> M:
    try:
        return model.model_validate_json(body)
    except ValidationError as error:
        _refuse(error)


def _refuse(error: ValidationError) -> NoReturn:
    if error.error_count() > 1000:
        raise InvalidRequest.of([ProblemField(field="body", message="more than 1000 wrong fields")])
    details: list[Any] = list(error.errors(include_url=False, include_input=False, include_context=False))[:MAX_FIELDS]
    if details[0]["type"] == "json_invalid":
        raise MalformedBody(f"the body is not valid JSON: {details[0]['msg']}")
    fields = []
    for detail in details:
        path = "".join(f"[{step}]" if isinstance(step, int) else f".{str(step)[:64]}" for step in detail["loc"])
        message = (
            "unknown field" if detail["type"] == "extra_forbidden" else detail["msg"].removeprefix("Value error, ")
        )
        fields.append(ProblemField(field=path.removeprefix(".") or "body", message=message[:500]))
    raise InvalidRequest.of(fields)
