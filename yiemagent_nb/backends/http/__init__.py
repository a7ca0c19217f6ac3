"""HTTP to a model server: connections, retries, typed errors, and no key in anything that is shown."""
