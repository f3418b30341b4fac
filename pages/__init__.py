"""What the site of docs/ needs beside its Markdown: generated pages of reference, and links that lead out of docs/."""
