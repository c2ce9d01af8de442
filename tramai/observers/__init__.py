"""Observers that come with tramai: one module each, named by the setting `observers`."""
