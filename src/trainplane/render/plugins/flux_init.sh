# Runs in the init container, whose image has Flux as a Spack view: copies Flux to where the training container finds
# it, and writes the configuration of this node's broker. Set above: hosts, device, port, subdomain, queue_policy.
set -euo pipefail

root=/mnt/flux
config=$root/config
mkdir -p "$root/view" "$config"/{etc/curve,etc/flux/config,etc/flux/system/cron.d,run/flux,var/lib/flux}

echo "$hosts" > "$config/etc/flux/system/hostlist"

cat > "$config/etc/flux/config/broker.toml" << TOML
[access]
allow-guest-user = true
allow-root-owner = true

[resource]
path = "$config/etc/flux/system/R"

[bootstrap]
curve_cert = "$config/etc/curve/curve.cert"
default_port = $port
default_bind = "tcp://$device:%p"
default_connect = "tcp://%h.$subdomain:%p"
hosts = [{ host = "$hosts" }]

[archive]
dbpath = "$config/var/lib/flux/job-archive.sqlite"
period = "1m"
busytimeout = "50s"

[sched-fluxion-qmanager]
queue-policy = "$queue_policy"
TOML

# /opt/view leads to the one view below; its links lead into /opt/software, which the other script puts back.
for view in /opt/views/._view/*; do
  cp -R "$view"/. "$root/view/"
done
cp -R /opt/software "$root/"

# The training may run as another user.
chmod -R a+rwX "$config" "$root/view/bin"
