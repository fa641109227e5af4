#!/bin/sh
# Turns a freshly bootstrapped Debian into our guest. Runs inside it (chroot), as root, after the overlay was unpacked.
set -eu

systemctl="systemctl --quiet"

useradd --create-home --uid 1000 --shell /bin/bash --password '*' agent
printf '127.0.0.1 localhost\n127.0.1.1 deploybench\n' >/etc/hosts
echo deploybench >/etc/hostname
echo 'nameserver 10.0.2.3' >/etc/resolv.conf
echo '/dev/vda / ext4 noatime 0 0' >/etc/fstab
ln -sf /usr/share/zoneinfo/UTC /etc/localtime

# sshd gets its host key, and its start, from the identity script.
$systemctl disable ssh.service
rm -f /etc/ssh/ssh_host_* /etc/update-motd.d/* /etc/motd
$systemctl enable systemd-networkd.service deploybench-grow.service deploybench-identity.service

# No timer and no login prompt: an idle machine stays idle, and a cold boot under emulation stays short.
$systemctl mask apt-daily.timer apt-daily-upgrade.timer dpkg-db-backup.timer e2scrub_all.timer fstrim.timer \
    systemd-tmpfiles-clean.timer getty.target serial-getty@ttyS0.service getty@tty1.service e2scrub_reap.service \
    systemd-networkd-wait-online.service systemd-udev-settle.service systemd-pstore.service

if ls /usr/local/share/ca-certificates/*.crt >/dev/null 2>&1; then
    update-ca-certificates >/dev/null
fi

cp "$(ls /boot/vmlinuz-*)" /tmp/kernel
cp "$(ls /boot/initrd.img-*)" /tmp/initrd
