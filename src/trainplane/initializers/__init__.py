"""What fetches datasets and models inside user pods before training starts: `python -m trainplane.initializers model`.

A scheme lists files and reads ranges of them (`source`, `schemes/`); everything else is the same for all of them and
stands here once: which names are safe (`paths`), which files are wanted (`selection`), how bytes arrive whole
(`transfer`), what survives a kill (`journal`), who may write (`lock`), and what people read (`console`, `progress`).
docs/data.md is the page.
"""
