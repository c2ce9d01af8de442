"""The expression language: Jinja2's grammar in `${{ … }}`, evaluated by a small bounded evaluator of our own."""

from .evaluation import dec_hook, enc_hook, evaluate, render_text, schema_hook, test
from .fields import Condition, Expression, Parsed, Prompt, Site, Template, Text, Use, Value
from .parse import known, remember
from .values import ExpressionError, Missing, suggest

__all__ = [
    "Condition",
    "Expression",
    "ExpressionError",
    "Missing",
    "Parsed",
    "Prompt",
    "Site",
    "Template",
    "Text",
    "Use",
    "Value",
    "dec_hook",
    "enc_hook",
    "evaluate",
    "known",
    "remember",
    "render_text",
    "schema_hook",
    "suggest",
    "test",
]
