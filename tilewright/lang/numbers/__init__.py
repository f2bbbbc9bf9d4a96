"""Numbers: the numeric types, their promotion and arithmetic, and what is known of a run-time integer."""
