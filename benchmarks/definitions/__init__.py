"""What ops mean, against the runtimes that compute them: nodes and terms that are drawn, and who computes them besides us."""
