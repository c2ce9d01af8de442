"""The model services an `ai` step can ask: one file a provider."""
