"""MultiKueue seen from the management cluster: where a job runs, what can be seen of it, and whether the fleet fits.

`workers` reaches the workers as MultiKueue does and `placement` says which of them has a job; everything else stands on
these two. `check` and `sync` are for the admin, before a job is sent. docs/architecture/hub.md has the map.
"""
