# Turns a freshly bootstrapped Debian into our guest. Runs inside it (chroot), as root, after the overlay was unpacked.
set -eu

useradd --create-home --uid 1000 --shell /bin/bash --password '*' agent
printf '127.0.0.1 localhost\n127.0.1.1 deploybench\n' >/etc/hosts
echo deploybench >/etc/hostname
echo 'nameserver 10.0.2.3' >/etc/resolv.conf
echo '# / is mounted by the kernel, with the options on its command line.' >/etc/fstab

# sshd gets its host key, and its start, from the identity program.
systemctl --quiet disable ssh.service
# What a login runs through: Debian's modules for mail, message of the day and SELinux do nothing here, and make each
# login under emulation half as long again.
dpkg-divert --quiet --local --rename --divert /etc/pam.d/sshd.debian /etc/pam.d/sshd
cat >/etc/pam.d/sshd <<'PAM'
auth     required pam_deny.so
account  required pam_permit.so
session  required pam_limits.so
session  required pam_env.so
session  required pam_env.so envfile=/etc/default/locale
PAM
rm -f /etc/ssh/ssh_host_* /etc/update-motd.d/* /etc/motd
systemctl --quiet enable deploybench-grow.service deploybench-network.service deploybench-identity.service

# An idle machine stays idle, and a cold boot under emulation stays short: no timer, no login prompt, nothing that merely
# loads what the kernel loads on demand.
systemctl --quiet set-default multi-user.target
systemctl --quiet mask \
    apt-daily.timer apt-daily-upgrade.timer dpkg-db-backup.timer e2scrub_all.timer e2scrub_reap.service fstrim.timer \
    systemd-tmpfiles-clean.timer getty.target serial-getty@ttyS0.service getty@tty1.service systemd-pstore.service \
    systemd-network-generator.service modprobe@configfs.service modprobe@dm_mod.service modprobe@drm.service \
    modprobe@efi_pstore.service modprobe@loop.service sys-kernel-config.mount
# These two still start when somebody calls them.
rm -f /lib/systemd/system/multi-user.target.wants/dbus.service \
    /lib/systemd/system/multi-user.target.wants/systemd-logind.service

update-ca-certificates >/dev/null 2>&1

# The package indexes stay, with apt's digest of them: to unpack them again would cost an emulated machine minutes.
apt-cache gencaches

cp /boot/vmlinuz-* /tmp/kernel
cp /boot/initrd.img-* /tmp/initrd
