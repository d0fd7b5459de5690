# Finish the torch image. Debian builds torch without libuv; torchrun's stores ask for it unless every call says no.
set -eu
python3 - /usr/lib/python3/dist-packages/torch/distributed <<'PYTHON'
import ast, pathlib, sys

root = pathlib.Path(sys.argv[1])
changed = 0
for path in sorted(root.rglob("*.py")):
    text = path.read_text()
    if "TCPStore(" not in text:
        continue
    lines = text.splitlines(keepends=True)
    calls = [
        node
        for node in ast.walk(ast.parse(text))
        if isinstance(node, ast.Call) and getattr(node.func, "id", getattr(node.func, "attr", "")) == "TCPStore"
    ]
    for call in sorted(calls, key=lambda node: -node.lineno):
        given = [keyword.value for keyword in call.keywords if keyword.arg == "use_libuv"]
        if given:
            line, start, end = given[0].lineno - 1, given[0].col_offset, given[0].end_col_offset
            lines[line] = lines[line][:start] + "False" + lines[line][end:]
        else:
            line, end = call.end_lineno - 1, call.end_col_offset - 1
            before = "".join(lines[call.lineno - 1 : line]) + lines[line][:end]
            comma = "" if before.rstrip().endswith((",", "(")) else ", "
            lines[line] = lines[line][:end] + comma + "use_libuv=False" + lines[line][end:]
        changed += 1
    ast.parse("".join(lines))
    path.write_text("".join(lines))
assert changed >= 5, f"only {changed} TCPStore calls found: look at torch.distributed again"
PYTHON
mkdir -p /run/sshd
python3 -c 'import torch; assert torch.distributed.is_gloo_available(); print("torch", torch.__version__)'
