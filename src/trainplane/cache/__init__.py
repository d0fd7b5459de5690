"""The distributed data cache on Arrow, which runs inside user pods. Empty today.

`pyarrow` is imported here and nowhere else.
"""
