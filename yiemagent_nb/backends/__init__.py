"""Backends: what can be given to an agent as ``llm_call``, one module a server."""
