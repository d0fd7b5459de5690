"""What users write (trainers, initializers, options) and what they get (runtimes, jobs, events, log lines)."""
