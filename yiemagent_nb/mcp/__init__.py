"""MCP: servers of tools, over stdio, HTTP, NATS, in process, or by any callable.

``server`` has ``McpServer``, what a person holds; ``connection`` keeps it connected; ``links`` has a
module for each way to reach a server, behind the one form that ``link`` defines. ``registry`` gives
an agent the tools of its servers. ``config`` reads the configuration files of other hosts.
"""
