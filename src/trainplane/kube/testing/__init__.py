"""Doubles for tests of any room: a fake API server that misbehaves on request, and fake time.

Nothing here is imported by the product.
"""
