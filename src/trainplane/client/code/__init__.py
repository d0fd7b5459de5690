"""Shipping code: a function or a script with what belongs to it becomes a command line that any image can run."""
