"""What all backends over HTTP share; what one kind of server wants otherwise stands in its habits."""
