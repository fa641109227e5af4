# Makes the disk of the finished guest. Runs outside of it, $1 is its root folder, file descriptor $DISK_FD the disk.
# The descriptor spares the (perhaps mapped) root of the build any access to the folders of the user who builds.
set -eu

rm -f "$1/usr/sbin/policy-rc.d" "$1/etc/apt/apt.conf.d/00mmdebstrap"
if [ -e "$1/sbin/start-stop-daemon.REAL" ]; then
    mv "$1/sbin/start-stop-daemon.REAL" "$1/sbin/start-stop-daemon"
fi
rm -rf "$1"/var/cache/apt/archives/*.deb "$1"/tmp/* "$1"/var/lib/dbus/machine-id
find "$1/var/log" -type f -delete
: >"$1/etc/machine-id"

# Tells systemd that /etc and /var suit this /usr, so that no boot sets them up again.
touch "$1/etc/.updated" "$1/var/.updated"

