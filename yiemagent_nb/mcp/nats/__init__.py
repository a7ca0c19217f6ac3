"""MCP over NATS: what goes over the wire, and the service that puts a server there."""
