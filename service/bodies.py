"""Reading a request's body: JSON only, bounded while it streams in."""

from email.message import Message

from starlette.requests import Request

from service.errors import BodyTooLarge, UnsupportedMediaType


async def read_json_body(request: Request, max_bytes: int) -> bytes:
    """Return the body.

    Raises:
        UnsupportedMediaType: the content type, charset or encoding is not plain JSON in UTF-8.
        BodyTooLarge: there is more than `max_bytes`; raised as soon as that shows, without reading the rest.
    """
    _check_media_type(request)
    announced = request.headers.get("content-length", "")
    if announced.isdigit() and int(announced) > max_bytes:
        raise _too_large(max_bytes)
    parts: list[bytes] = []
    size = 0
    async for part in request.stream():
        size += len(part)
        if size > max_bytes:
            raise _too_large(max_bytes)
        parts.append(part)
    return b"".join(parts)


def _check_media_type(request: Request) -> None:
    encoding = request.headers.get("content-encoding", "identity")
    if encoding.lower() != "identity":
        raise UnsupportedMediaType(f"Content-Encoding {encoding[:40]!r} is not supported; send the JSON as it is")
    content_type = request.headers.get("content-type")
    if not content_type:
        return
    header = Message()
    header["content-type"] = content_type
    if not (content_type.isascii() and content_type.isprintable()) or "*" in content_type:
        raise UnsupportedMediaType(f"Content-Type is {content_type[:80]!r}; send `Content-Type: application/json`")
    media_type = header.get_content_type()
    if media_type != "application/json" and not media_type.endswith("+json"):
        raise UnsupportedMediaType(
            f"Content-Type is {content_type[:80]!r}; send `Content-Type: application/json` (curl: -H or --json)"
        )
    charset = header.get_content_charset("utf-8")
    if charset not in {"utf-8", "utf8"}:
        raise UnsupportedMediaType(f"charset {charset[:40]!r} is not supported; send UTF-8")


def _too_large(max_bytes: int) -> BodyTooLarge:
    return BodyTooLarge(
        f"the body is larger than {max_bytes} bytes; send fewer tasks at a time, or raise ASSAY_MAX_BODY_BYTES"
    )
