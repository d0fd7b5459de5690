# Finish the frameworks image. Wheels bring no bytecode, so each container would compile thousands of files anew. What
# cannot be compiled are templates of no use here.
set -eu
python3 -m compileall -qq -j 0 "/usr/local/lib/python$(python3 -c 'import sys; print(*sys.version_info[:2], sep=".")')" || true
