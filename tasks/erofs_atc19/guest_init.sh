#!/bin/busybox sh
# The guest's first program. It tells on the console what the kernel makes of the two images, section by section.
b=/bin/busybox
$b mount -t devtmpfs dev /dev
$b mount -t proc proc /proc
exec < /dev/console > /dev/console 2>&1
# From here on the kernel keeps off the console, so that lines stay whole.
$b dmesg -n 1

section() { echo; echo "== @NONCE@ $1"; }

section version
$b cat /proc/version
section cmdline
$b cat /proc/cmdline
section mounting-plain
$b mount -t erofs -o ro /dev/vda /plain
section mounting-packed
$b mount -t erofs -o ro /dev/vdb /packed
section mounts
$b cat /proc/mounts
section plain-files
cd /plain && $b find . -type f -exec $b sha256sum {} +
cd /packed
section reads
while read -r offset length path; do
    $b dd if="$path" bs=65536 iflag=skip_bytes,count_bytes skip="$offset" count="$length" 2> /dev/null | $b sha256sum
done < /reads
section packed-files
$b find . -type f -exec $b sha256sum {} +
section entries
$b find . -mindepth 1 -exec $b stat -c '%f %s %n' {} +
section links
$b find . -type l -exec $b sh -c 'for link; do echo "$(/bin/busybox readlink "$link") $link"; done' sh {} +
section writing
echo new > new-file
section removing
$b find . -type f -exec $b rm -f {} +
section log
$b dmesg | $b grep -i erofs
section end
echo
$b reboot -f
