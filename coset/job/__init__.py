"""What is asked for: the job, the rules that take part, the user's own rules, the local machine, JSON answers."""
