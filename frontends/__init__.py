"""One folder a format: each makes a `Program` of a foreign graph."""
