# The start of a machine in namespaces: $1 is its root file system, $2 its name. Ends as its first process, the SSH server.
set -eu
cd "$1"
hostname "$2"

mount -t proc -o nosuid,nodev,noexec proc proc
mount -t sysfs -o nosuid,nodev,noexec,ro sysfs sys
mount -t tmpfs -o mode=755,size=1m dev dev
for device in null zero full random urandom tty; do
    touch "dev/$device"
    mount --bind "/dev/$device" "dev/$device"
done
mkdir dev/pts dev/shm
mount -t devpts -o newinstance,ptmxmode=0666,mode=620,gid=5 devpts dev/pts
mount -t tmpfs -o nosuid,nodev,mode=1777 shm dev/shm
ln -s pts/ptmx dev/ptmx
ln -s /proc/self/fd dev/fd
ln -s fd/0 dev/stdin
ln -s fd/1 dev/stdout
ln -s fd/2 dev/stderr
# Where the first process prints, which its keeper writes down.
ln -s /proc/1/fd/2 dev/console
mount -t tmpfs -o nosuid,nodev,mode=755 run run
mkdir -p run/sshd run/lock
chmod 1777 run/lock

# Against accidents, not against malice: the settings, modules, clock and disks of the host are nobody's here.
mount --bind proc/sys proc/sys
mount -o remount,bind,ro proc/sys
[ ! -e proc/sysrq-trigger ] || mount --bind dev/null proc/sysrq-trigger

pivot_root . mnt
umount -l /mnt
exec setpriv --bounding-set=-sys_module,-sys_rawio,-sys_time,-mknod,-syslog /usr/sbin/sshd -D -e </dev/null
