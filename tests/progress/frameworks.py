"""Three steps with each framework that calls back, as users write them; shipped to pods whose images have them."""

from __future__ import annotations

# ruff: noqa: PLC0415 the packages are in the pods alone
from typing import Any


def with_transformers() -> None:
    """Train with our callback, and with Transformers' own turned off."""
    from trainplane import progress

    _train_with_transformers("none", [progress.for_transformers()])


def with_transformers_own() -> None:
    """Train with nothing of ours: Transformers sees that it is in a TrainJob."""
    _train_with_transformers("kubeflow", [])


def _train_with_transformers(report_to: str, callbacks: list[Any]) -> None:
    import torch
    from transformers import Trainer, TrainingArguments  # type: ignore[import-not-found]

    class Line(torch.nn.Module):  # type: ignore[misc]
        def __init__(self) -> None:
            super().__init__()
            self.inner = torch.nn.Linear(1, 1)

        def forward(self, x: Any, labels: Any) -> dict[str, Any]:
            return {"loss": (self.inner(x) - labels).square().mean()}

    rows = [{"x": torch.ones(1), "labels": torch.ones(1)} for _ in range(6)]
    arguments = TrainingArguments(
        output_dir="/tmp/out",
        max_steps=3,
        logging_steps=1,
        per_device_train_batch_size=2,
        report_to=report_to,
        save_strategy="no",
        use_cpu=True,
        disable_tqdm=True,
    )
    Trainer(model=Line(), args=arguments, train_dataset=rows, callbacks=callbacks).train()


def with_lightning() -> None:
    """Train with Lightning."""
    import lightning  # type: ignore[import-not-found]
    import torch

    from trainplane import progress

    class Line(lightning.LightningModule):  # type: ignore[misc]
        def __init__(self) -> None:
            super().__init__()
            self.inner = torch.nn.Linear(1, 1)

        def training_step(self, batch: Any, _: int) -> Any:
            loss = self.inner(batch).square().mean()
            self.log("loss", loss)
            return loss

        def configure_optimizers(self) -> Any:
            return torch.optim.SGD(self.parameters(), 0.1)

    trainer = lightning.Trainer(
        max_steps=3,
        accelerator="cpu",
        logger=False,
        enable_checkpointing=False,
        enable_progress_bar=False,
        callbacks=[progress.for_lightning()],
    )
    trainer.fit(Line(), torch.utils.data.DataLoader(torch.ones(6, 1), batch_size=2))


def with_keras() -> None:
    """Train with Keras."""
    import keras  # type: ignore[import-not-found]

    from trainplane import progress

    model = keras.Sequential([keras.layers.Dense(1)])
    model.compile(optimizer="sgd", loss="mse")
    ones = keras.ops.ones((6, 1))
    model.fit(ones, ones, batch_size=2, verbose=0, callbacks=[progress.for_keras()])
