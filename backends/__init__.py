"""From text to something that runs, and how long it takes."""
