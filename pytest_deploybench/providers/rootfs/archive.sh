# What is mounted inside (/proc, /dev...) does not belong into the archive. A machine has a /dev and a kernel of its own.
tar --create --one-file-system --numeric-owner --directory="$1" --exclude='./dev/*' --exclude=./boot \
    --exclude=./lib/modules --exclude=./usr/lib/modules . >"/proc/self/fd/$DISK_FD"
