"""A module for each way to reach a server."""
