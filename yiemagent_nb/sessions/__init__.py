"""Conversations beyond a kernel: kept as files that people read."""
