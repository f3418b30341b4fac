"""The page that explains an optimization, or two programs side by side: one HTML file that needs nothing else."""
