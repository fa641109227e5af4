#!/usr/bin/env bash
# mkfs.erofs, and the smallest kernel for the machine of the experiment: no option but those named below.
set -euo pipefail

sudo apt-get update -q
sudo DEBIAN_FRONTEND=noninteractive apt-get install -qy --no-install-recommends \
    gcc libc6-dev make flex bison bc libelf-dev liblz4-dev busybox-static cpio qemu-system-x86

mkdir -p ~/bin ~/boot

# mkfs.erofs without autotools: this is what configure would find on this machine.
cd ~/extra/erofs-utils
{
    echo "#define PACKAGE_VERSION \"$(head -n 1 VERSION)\""
    printf '#define %s 1\n' LZ4_ENABLED LZ4HC_ENABLED \
        HAVE_{FALLOCATE,LGETXATTR,LLISTXATTR,MEMRCHR,PREAD64,PWRITE64,TMPFILE64,STRUCT_STAT_ST_ATIM} \
        HAVE_{LINUX_FALLOC,LINUX_TYPES,SYS_IOCTL,SYS_SYSMACROS,UNISTD}_H
} > config.h
rm lib/compressor_liblzma.c
gcc -O2 -DHAVE_CONFIG_H -include config.h -I. -Iinclude -o ~/bin/mkfs.erofs mkfs/main.c lib/*.c -llz4

# The kernel. EXPERT shows the options that are otherwise on without being asked for.
cd ~/artifact
cat > ~/boot/options <<'OPTIONS'
CONFIG_LOCALVERSION="-erofs-atc19"
CONFIG_EXPERT=y
CONFIG_64BIT=y
CONFIG_PROCESSOR_SELECT=y
CONFIG_HZ_100=y
CONFIG_UNWINDER_GUESS=y
CONFIG_MULTIUSER=y
CONFIG_PRINTK=y
CONFIG_TTY=y
CONFIG_SERIAL_8250=y
CONFIG_SERIAL_8250_CONSOLE=y
CONFIG_BLK_DEV_INITRD=y
CONFIG_RD_GZIP=y
CONFIG_BINFMT_ELF=y
CONFIG_BINFMT_SCRIPT=y
CONFIG_PROC_FS=y
CONFIG_DEVTMPFS=y
CONFIG_BLOCK=y
CONFIG_PARTITION_ADVANCED=y
CONFIG_BLK_DEV=y
CONFIG_VIRTIO_MENU=y
CONFIG_VIRTIO_MMIO=y
CONFIG_VIRTIO_MMIO_CMDLINE_DEVICES=y
CONFIG_VIRTIO_BLK=y
CONFIG_MISC_FILESYSTEMS=y
CONFIG_EROFS_FS=y
CONFIG_EROFS_FS_ZIP=y
OPTIONS
make KCONFIG_ALLCONFIG="$HOME/boot/options" allnoconfig
make -s -j"$(nproc)" bzImage
cp arch/x86/boot/bzImage vmlinux ~/boot/

# The initramfs: BusyBox, and nothing else.
mkdir -p ~/initramfs/bin
cp /bin/busybox ~/initramfs/bin/
(cd ~/initramfs && find . | cpio --quiet -o -H newc > ~/boot/initramfs)

echo 'export PATH="$HOME/bin:$PATH"' > ~/env.sh
cat > ~/RUNBOOK.md <<'TEXT'
# EROFS in a kernel of our own

Set-up: compiler, kernel build tools, liblz4, busybox-static and qemu-system-x86 from Debian. `mkfs.erofs` was compiled
by one gcc call with a hand-written config.h. The kernel's options are `~/boot/options`, given to `make allnoconfig` as
KCONFIG_ALLCONFIG; `make bzImage` in `~/artifact`. `~/boot/initramfs` holds `/bin/busybox`.

Run: `. ~/env.sh`, make images by `mkfs.erofs`, and boot `~/boot/bzImage` in QEMU's microvm as TASK.md says.
TEXT

# The proof: the kernel mounts a compressed image and gives back a file of it.
. ~/env.sh
cd "$(mktemp -d)"
mkdir tree work
cp ~/artifact/COPYING ~/artifact/CREDITS tree/
mkfs.erofs -zlz4hc packed.erofs tree
cat > work/init <<'INIT'
#!/bin/busybox sh
/bin/busybox mkdir /dev /mnt
/bin/busybox mount -t devtmpfs dev /dev
/bin/busybox mount -t erofs -o ro /dev/vda /mnt
/bin/busybox sha256sum /mnt/CREDITS > /dev/console
/bin/busybox reboot -f
INIT
chmod 755 work/init
(cd work && echo init | cpio --quiet -o -H newc) | cat ~/boot/initramfs - > initrd
timeout 1800 qemu-system-x86_64 -M microvm,acpi=off -accel tcg -m 128 \
    -nodefaults -no-user-config -no-reboot -display none -serial file:console.txt \
    -kernel ~/boot/bzImage -initrd initrd -append "console=ttyS0 panic=-1 reboot=t rdinit=/init" \
    -drive id=packed,if=none,format=raw,readonly=on,file=packed.erofs -device virtio-blk-device,drive=packed
tail -n 20 console.txt
grep "$(sha256sum < tree/CREDITS | cut -d ' ' -f 1)" console.txt
