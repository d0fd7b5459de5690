"""May this object exist? Empty today.

Here will live pure defaulting and validation per kind, with what plugins add, called by the webhook.
"""
