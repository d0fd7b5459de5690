"""The built-in plugins, one file each; none knows another.

Their order is declared in `pipeline`.
"""
