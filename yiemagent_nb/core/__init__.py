"""The agent: messages, tools, hooks, channels, events and the loop.

It knows no HTTP, no NATS, no MCP and no notebook, and needs no package but pydantic. Every public
name of it can be imported from ``yiemagent_nb``.
"""
