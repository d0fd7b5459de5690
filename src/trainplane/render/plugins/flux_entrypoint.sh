# Runs in the training container: starts this node's Flux broker. The first node then runs the training on all nodes, or,
# without a command, waits for someone who logs in; the others serve until it is done.
# Set above: lead, resources, tasks. $1 is the training's command, as a line for a shell.
set -euo pipefail

command=${1:-}
root=/mnt/flux
config=$root/config

# Flux comes last in PATH: a Python of the image must stay the one that the training finds.
export PATH=$PATH:$root/view/bin
cp -R "$root"/software/. /opt/software/
site=$(find "$root/view/lib" -maxdepth 1 -type d -name 'python3*' -print -quit)
if [ -n "$site" ]; then
  export PYTHONPATH=${PYTHONPATH:+$PYTHONPATH:}$site/site-packages
  python=$(basename "$site")
  if [ -e "$root/view/bin/$python" ]; then
    ln -sfn "$python" "$root/view/bin/python3"
  fi
fi
export FLUX_RC_EXTRA=$root/view/etc/flux/rc1.d

# For whoever logs in: `. /mnt/flux/flux-view.sh; flux proxy $fluxsocket bash`.
cat > "$root/flux-view.sh" << VIEW
export PATH=$PATH
export PYTHONPATH=${PYTHONPATH:-}
export LD_LIBRARY_PATH=${LD_LIBRARY_PATH:-}:$root/view/lib
export fluxsocket=local://$config/run/flux/local
VIEW

# A broker takes no certificate that others can read, and a mounted one belongs to root.
install -m 0400 /curve/curve.cert "$config/etc/curve/curve.cert"

# shellcheck disable=SC2154,SC2086  # set above; options are words
flux R encode --hosts="$(cat "$config/etc/flux/system/hostlist")" $resources > "$config/etc/flux/system/R"

options=(
  --config-path="$config/etc/flux/config"
  -Scron.directory="$config/etc/flux/system/cron.d"
  -Stbon.fanout=256
  -Srundir="$config/run/flux"
  -Sstatedir="$config/var/lib/flux"
  -Slocal-uri="local://$config/run/flux/local"
  -Slog-stderr-level=0
  -Slog-stderr-mode=local
)

# shellcheck disable=SC2154,SC2086  # as above
if [ "$(hostname)" != "$lead" ]; then
  # The first node may come later than this one; a follower that lost it looks for it again.
  until flux broker "${options[@]}"; do
    echo "the broker ended; trying again in 5 seconds" >&2
    sleep 5
  done
elif [ -z "$command" ]; then
  exec flux broker "${options[@]}"
else
  exec flux broker "${options[@]}" flux run $tasks /bin/sh -c "$command"
fi
