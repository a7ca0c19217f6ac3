"""What stands behind ``ToolInspector``: forms, warnings, calls by hand, and servers."""
