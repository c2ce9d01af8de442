"""Tests of what `tramai.testing` gives to others."""
