"""What goes wrong at a model service, in our types of error. No text of a model or a key gets into a message."""

from __future__ import annotations

from typing import Any

from pydantic_ai import exceptions as theirs

from ..step import StepError

_TYPES: tuple[tuple[type[Exception], str, str, str | None], ...] = (
    (theirs.ModelQuotaExceededError, "refused", "says that the account's quota or credit is used up", None),
    (theirs.ModelRateLimitError, "rate_limited", "takes no more requests for now", None),
    (theirs.ModelAuthenticationError, "auth", "refused the key", "look at the key, and at what it may be used for"),
    (theirs.ModelTimeoutError, "timeout", "did not answer in time", None),
    (theirs.ModelRequestTimeout, "timeout", "did not answer in time", None),
    (theirs.ModelUnavailableError, "network", "is not available", None),
    (theirs.ModelServerError, "network", "failed", None),
    (theirs.ModelConnectionError, "network", "cannot be reached, or broke off its answer", None),
    (theirs.ModelContextWindowExceededError, "refused", "cannot take a prompt this long", "shorten the prompt"),
    (theirs.ModelNotFoundError, "refused", "does not know this model, or has nothing at this address", None),
    (theirs.ModelRequestRejectedError, "refused", "refused the request", None),
    (theirs.ContentFilterError, "refused", "refused to answer", None),
    (theirs.UserError, "refused", "cannot be asked this", None),
)
"""Theirs, ours, what is said after the service's name, and a hint. The first that fits counts."""
_LONGEST = 300


def of(error: Exception, service: str, model: str, key: str | None) -> StepError:
    """The failed attempt. Only why a request was refused is told in the service's own words, without the key."""
    if isinstance(error, StepError):
        return error
    for kind, sort, said, hint in _TYPES:
        if isinstance(error, kind):
            message = f"{service} {said}{_status(error)}{_words(error, key)} ({service}:{model})"
            return StepError(sort, message, hint=hint, retry_after=_seconds(getattr(error, "retry_after", None)))
    if isinstance(error, theirs.ModelHTTPError):
        sort = "network" if error.status_code >= 500 else "refused"
        return StepError(sort, f"{service} answered with status {error.status_code} ({service}:{model})")
    if type(error) is theirs.ModelAPIError and "finish_reason" in str(error):
        return early(service, model)
    if isinstance(error, TimeoutError):
        return StepError("timeout", f"{service} did not answer in time ({service}:{model})")
    what = f"broke off, or answered with something that is no answer: {type(error).__name__}"
    return StepError("network", f"{service} {what} ({service}:{model})")


def early(service: str, model: str) -> StepError:
    """A stream that closed before its last word."""
    return StepError("network", f"the stream of {service} ended early ({service}:{model})")


def _status(error: Exception) -> str:
    status = getattr(error, "status_code", None)
    return f" (status {status})" if status is not None else ""


def _words(error: Exception, key: str | None) -> str:
    """Why a request was refused, as the service says it. What it says about keys and failures may quote them."""
    if not isinstance(error, theirs.ModelRequestRejectedError) or isinstance(error, theirs.ModelAuthenticationError):
        return ""
    said = _message(getattr(error, "body", None))
    if key:
        said = said.replace(key, "***")
    return f": {said[:_LONGEST]}" if said else ""


def _message(body: Any) -> str:
    if isinstance(body, dict):
        inner = body.get("error", body)
        found = inner.get("message") if isinstance(inner, dict) else inner
        return " ".join(str(found).split()) if isinstance(found, str) else ""
    return ""


def _seconds(wait: Any) -> float | None:
    return float(wait) if isinstance(wait, int | float) and wait >= 0 else None
