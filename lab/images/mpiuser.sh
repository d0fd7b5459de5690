# Finish an image whose pods are MPI nodes of a plain user, as the images of deepspeed- and mlx-distributed are: sshd's
# own configuration lies in the user's home, above the ports that root keeps, and ssh knows that port.
set -eu
useradd --create-home --uid 1000 --shell /bin/bash mpiuser
mkdir -p /run/sshd
rm -f /etc/ssh/ssh_host_*
cat > /home/mpiuser/.sshd_config <<'SETTINGS'
Port 2222
HostKey /home/mpiuser/.ssh/id_rsa
PidFile /home/mpiuser/sshd.pid
StrictModes no
SETTINGS
printf 'Host *\n  Port 2222\n' > /etc/ssh/ssh_config.d/port.conf
# MLX loads MPI by the name without a version, which Debian has for those who compile.
ln -sf libmpi.so.40 /usr/lib/x86_64-linux-gnu/libmpi.so
# DeepSpeed compiles an operator for ranks that share a node's memory. Here is no compiler, and each rank is a pod.
backend=/usr/local/lib/python3.13/dist-packages/deepspeed/comm/torch.py
if [ -e "$backend" ]; then
  grep -q '^    shm_cpp_module = builder.load()$' "$backend"
  sed -i 's/^    shm_cpp_module = builder.load()$/    return None/' "$backend"
fi
