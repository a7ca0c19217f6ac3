"""Hooks that a person writes while an agent runs: compiled, tried, guarded, and kept in versions."""
