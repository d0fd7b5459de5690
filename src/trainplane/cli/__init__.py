"""The command line, empty today: one file per command; heavy imports stay inside commands."""
