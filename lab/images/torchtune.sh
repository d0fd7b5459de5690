# Finish the torchtune image: its command, which pip would have written with the Python of the machine that builds; and
# what takes a GPU for granted: three lines of torchtune 0.6, and in torch 2.6 the streams that FSDP2 waits for, which on
# a CPU have nothing to wait for (2.7 has these two methods).
set -eu
cat > /usr/local/bin/tune <<'PYTHON'
#!/usr/bin/python3
from torchtune._cli.tune import main

main()
PYTHON
chmod +x /usr/local/bin/tune
python3 - <<'PYTHON'
import pathlib

OURS, TORCH = pathlib.Path("/usr/local/lib/python3.13/dist-packages"), pathlib.Path("/usr/lib/python3/dist-packages/torch")
RECIPE, MEMORY = OURS / "recipes/lora_finetune_distributed.py", OURS / "torchtune/training/memory.py"
STREAMS = TORCH / "cpu/__init__.py"
WAITING = "    def wait_stream(self, stream) -> None:\n        pass\n"
RECORDING = "    def record_event(self, event=None):\n        return event or Event()\n"
NONE = '{"peak_memory_active": 0, "peak_memory_alloc": 0, "peak_memory_reserved": 0}'
for path, old, new in (
    (RECIPE, '"cuda:nccl,cpu:gloo"', "training.get_distributed_backend(cfg.device)"),
    (MEMORY, 'raise ValueError("Logging memory stats is not supported on CPU devices")', f"return {NONE}"),
    (MEMORY, "    gc.collect()\n", "    gc.collect()\n    if not torch.cuda.is_available():\n        return\n"),
    (STREAMS, WAITING, f"{WAITING}\n{WAITING.replace('wait_stream', 'wait_event')}\n{RECORDING}"),
):
    text = path.read_text()
    assert text.count(old) == 1, f"{path}: look at it again, {old!r} is there {text.count(old)} times"
    path.write_text(text.replace(old, new))
PYTHON
