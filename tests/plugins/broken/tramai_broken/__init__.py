"""A package of which nothing works."""
