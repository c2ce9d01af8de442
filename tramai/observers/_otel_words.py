"""How runs, steps and models are called in OpenTelemetry's conventions."""

from __future__ import annotations

from typing import Any

RESULTS = {
    "completed": "success",
    "succeeded": "success",
    "recovered": "success",
    "failed": "failure",
    "cancelled": "cancellation",
    "skipped": "skip",
    "blocked": "error",
}
"""`cicd.pipeline.result` of what is over."""
_PROVIDERS = {"google": "gcp.gemini", "azure": "azure.ai.openai", "bedrock": "aws.bedrock", "mistral": "mistral_ai"}
_MAKERS = {"codex": "openai", "claude": "anthropic", "hermes": "nous_research"}


def result(status: str, error: Any) -> str:
    """The result of a run or step that ended so."""
    if status == "failed" and isinstance(error, dict) and error.get("type") == "timeout":
        return "timeout"
    return RESULTS.get(status, "cancellation")


def chat(about: dict[str, Any]) -> tuple[str, dict[str, Any]]:
    """The name and the attributes of a call of a model. Which model is told as a digest: a run may compute its name."""
    provider = str(about.get("provider"))
    return "chat", _model("chat", _PROVIDERS.get(provider, provider), about)


def agent(about: dict[str, Any]) -> tuple[str, dict[str, Any]]:
    """The name and the attributes of the work of an agent."""
    name = str(about.get("agent"))
    given = _model("invoke_agent", _MAKERS.get(name, name), about)
    return f"invoke_agent {name}", {**given, "gen_ai.agent.name": name}


def tool(about: dict[str, Any]) -> dict[str, Any]:
    """The attributes of a call that a model made."""
    given = {"gen_ai.operation.name": "execute_tool", "tramai.tool.digest": about.get("tool_digest")}
    given["tramai.tool.source"] = about.get("source")
    if about.get("failed"):
        given["error.type"] = "_OTHER"
    return {word: value for word, value in given.items() if value is not None}


def used(about: dict[str, Any]) -> dict[str, Any]:
    """What is known at the end of a call."""
    given = {
        "gen_ai.usage.input_tokens": about.get("input_tokens"),
        "gen_ai.usage.output_tokens": about.get("output_tokens"),
        "gen_ai.response.finish_reasons": about.get("finish_reason") and (str(about["finish_reason"]),),
    }
    return {word: value for word, value in given.items() if value is not None}


def _model(operation: str, provider: str, about: dict[str, Any]) -> dict[str, Any]:
    given = {"gen_ai.operation.name": operation, "gen_ai.provider.name": provider}
    if about.get("model_digest") is not None:
        given["tramai.model.digest"] = str(about["model_digest"])
    return given
