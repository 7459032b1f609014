"""Pages and tables: what was decided, what it costs, what differs."""
