"""What authors of steps, stores and workflows test with."""
