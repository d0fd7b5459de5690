"""A training loop that reports, as it is shipped to pods."""


def train() -> None:
    """Report four steps: the first goes out, the next are too soon, the last goes out again."""
    from trainplane import progress  # noqa: PLC0415 shipped with the function

    for step in range(1, 5):
        print("step", step, progress.report(step, of=4, loss=1 / step))  # noqa: T201 its log
