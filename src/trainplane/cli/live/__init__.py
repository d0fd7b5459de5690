"""What `watch` and `top` show: pure functions of facts, a clock and the size of a screen; `screen` prints them.

A view is a list of lines that fit: none wider than the screen, not more than it has rows. What matters most comes
first and is given room first. Nothing is told by colour alone, so `NO_COLOR` and a picture in grey lose nothing.
"""
