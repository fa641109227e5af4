# What is mounted inside (/proc, /dev...) does not belong on the disk: a plain bind mount does not show it.
mount --bind "$1" "$1/mnt"
mke2fs -q -F -t ext4 -L deploybench -m 0 -b 4096 -E lazy_itable_init=1,lazy_journal_init=1,nodiscard \
    -d "$1/mnt" "/proc/self/fd/$DISK_FD"
umount "$1/mnt"
