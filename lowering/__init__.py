"""From a `Program` to text or files for other tools; no device and no optional package is needed to produce text."""
