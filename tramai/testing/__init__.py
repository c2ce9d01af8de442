"""What authors of steps, stores and workflows test with: a clock that stands still, contracts as pytest classes."""
