#!/usr/bin/env bash
# Install the Debian packages that the lab needs; does nothing when all are there.
set -euo pipefail

packages=(
  containerd runc containernetworking-plugins   # a node that runs real pods
  nftables iptables conntrack ipset ethtool     # kube-proxy and CNI
  iproute2 util-linux procps                    # namespaces: ip, nsenter, mount
  debootstrap                                   # root folders of images
  jq                                            # expressions of the GitOps page, as Argo CD runs them
  podman                                        # the container backend of the SDK
  chromium fonts-dejavu-core tmux pngquant      # pages and terminals looked at, and their pictures
  golang-go-or-newer python3-venv ca-certificates make git
)

missing=()
for package in "${packages[@]}"; do
  case $package in
    # Go comes with the machine or from elsewhere: Debian's is older than the engines want.
    golang-go-or-newer) command -v go >/dev/null || { echo "packages: install Go 1.26 or newer first" >&2; exit 1; } ;;
    # A Python with venv may come from elsewhere (pyenv).
    python3-venv) python3 -c 'import venv, ensurepip' 2>/dev/null || missing+=("$package") ;;
    *) dpkg-query -W -f '${db:Status-Status}' "$package" 2>/dev/null | grep -qx installed || missing+=("$package") ;;
  esac
done

if [ ${#missing[@]} -eq 0 ]; then
  echo "packages: all ${#packages[@]} are there"
  exit 0
fi
echo "packages: installing ${missing[*]}"
export DEBIAN_FRONTEND=noninteractive
# Never start a system-wide containerd: the lab runs its own.
policy=/usr/sbin/policy-rc.d
[ -e $policy ] || { printf '#!/bin/sh\nexit 101\n' >$policy && chmod +x $policy && trap 'rm -f $policy' EXIT; }
apt-get update -qq
apt-get install -y -qq --no-install-recommends "${missing[@]}" >/dev/null
echo "packages: done"
