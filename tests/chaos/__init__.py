"""Chaos: real workers over a real PostgreSQL, all of it harmed at random, and an auditor that looks at what is left."""
