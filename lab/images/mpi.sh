# Finish the MPI image: a plain user beside root, and no host keys, since those of a TrainJob are its own.
set -eu
useradd --create-home --uid 1000 --shell /bin/bash mpiuser
mkdir -p /run/sshd
rm -f /etc/ssh/ssh_host_*
