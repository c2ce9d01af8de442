"""The step types: one file a verb, named as its users type it."""
