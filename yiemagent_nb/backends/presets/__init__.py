"""The habits of servers that ``OpenAICompatible`` has a preset for, one module a server."""
