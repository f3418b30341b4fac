"""One file a format: each makes a `Program` of a foreign graph."""
