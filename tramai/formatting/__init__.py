"""Workflow files rewritten without a change of meaning: put into canonical form, or into the other format."""
