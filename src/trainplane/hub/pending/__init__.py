"""Why does a TrainJob wait, and what would let it start?"""
