"""The stores: one file a kind, named as the scheme of its URL."""
