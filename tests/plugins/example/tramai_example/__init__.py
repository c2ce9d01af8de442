"""An example of a package that adds a step type, a model provider, a store and an observer to tramai."""
