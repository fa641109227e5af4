#!/usr/bin/env bash
# The mistake: building a kernel takes long here, and Debian's has EROFS too. It boots in the machine of the experiment and
# says so; that its file system and its disks are modules, which nothing loads there, shows only when an image is mounted.
set -euo pipefail

sudo apt-get update -q
sudo DEBIAN_FRONTEND=noninteractive apt-get install -qy --no-install-recommends \
    gcc libc6-dev binutils liblz4-dev busybox-static cpio xz-utils qemu-system-x86

mkdir -p ~/bin ~/boot

cd ~/extra/erofs-utils
{
    echo "#define PACKAGE_VERSION \"$(head -n 1 VERSION)\""
    printf '#define %s 1\n' LZ4_ENABLED LZ4HC_ENABLED \
        HAVE_{FALLOCATE,LGETXATTR,LLISTXATTR,MEMRCHR,PREAD64,PWRITE64,TMPFILE64,STRUCT_STAT_ST_ATIM} \
        HAVE_{LINUX_FALLOC,LINUX_TYPES,SYS_IOCTL,SYS_SYSMACROS,UNISTD}_H
} > config.h
rm lib/compressor_liblzma.c
gcc -O2 -DHAVE_CONFIG_H -include config.h -I. -Iinclude -o ~/bin/mkfs.erofs mkfs/main.c lib/*.c -llz4

# Only the kernel itself is taken out of the package, so nothing of this machine's own boot changes.
cd "$(mktemp -d)"
kernel=$(apt-cache depends linux-image-amd64 | sed -n 's/.*Depends: \(linux-image-.*\)/\1/p' | head -n 1)
apt-get download -q "$kernel"
dpkg-deb --fsys-tarfile "$kernel"_*.deb | tar -x --wildcards './boot/vmlinuz-*' './boot/config-*'
grep EROFS boot/config-*
cat boot/vmlinuz-* > ~/boot/bzImage
sh ~/artifact/scripts/extract-vmlinux ~/boot/bzImage > ~/boot/vmlinux

mkdir -p ~/initramfs/bin
cp /bin/busybox ~/initramfs/bin/
(cd ~/initramfs && find . | cpio --quiet -o -H newc > ~/boot/initramfs)

echo 'export PATH="$HOME/bin:$PATH"' > ~/env.sh
echo "mkfs.erofs is in ~/bin, the kernel ($kernel) and its initramfs are in ~/boot." > ~/RUNBOOK.md

. ~/env.sh
mkdir tree work
cp ~/artifact/COPYING ~/artifact/CREDITS tree/
mkfs.erofs -zlz4hc packed.erofs tree
cat > work/init <<'INIT'
#!/bin/busybox sh
/bin/busybox mkdir -p /dev /proc
/bin/busybox mount -t devtmpfs dev /dev
/bin/busybox mount -t proc proc /proc
/bin/busybox cat /proc/version > /dev/console
/bin/busybox reboot -f
INIT
chmod 755 work/init
(cd work && echo init | cpio --quiet -o -H newc) | cat ~/boot/initramfs - > initrd
timeout 1800 qemu-system-x86_64 -M microvm,acpi=off -accel tcg -m 128 \
    -nodefaults -no-user-config -no-reboot -display none -serial file:console.txt \
    -kernel ~/boot/bzImage -initrd initrd -append "console=ttyS0 panic=-1 reboot=t rdinit=/init" \
    -drive id=packed,if=none,format=raw,readonly=on,file=packed.erofs -device virtio-blk-device,drive=packed
tail -n 20 console.txt
grep 'Linux version 6.1' console.txt
echo "Success: mkfs.erofs makes compressed images, and a Linux 6.1 with EROFS boots in QEMU."
