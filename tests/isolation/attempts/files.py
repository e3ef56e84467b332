# %% read a file of the host
escaped = open(HOST_FILE).read()

# %% host accounts
escaped = open("/etc/passwd").read()

# %% host folders are not there
import os
escaped = [name for name in ("etc", "home", "root", "var", "mnt", "srv", "opt", "boot", "run", "sys") if os.listdir(f"/{name}")]

# %% list the root
import os
escaped = set(os.listdir("/")) - set(ALLOWED_ROOT)

# %% the project's own folder
import os
escaped = os.listdir(PROJECT)

# %% another process's root
import os
escaped = [p for p in os.listdir("/proc") if p.isdigit() and p != str(os.getpid()) and os.access(f"/proc/{p}/root/", os.R_OK)]

# %% another process's environment
import os
found = []
for p in os.listdir("/proc"):
    if p.isdigit() and p != str(os.getpid()):
        try:
            found.append(open(f"/proc/{p}/environ", "rb").read())
        except OSError:
            pass
escaped = found

# %% another process's memory
import os
found = []
for p in os.listdir("/proc"):
    if p.isdigit() and p != str(os.getpid()):
        try:
            found.append(open(f"/proc/{p}/mem", "r+b"))
        except OSError:
            pass
escaped = found

# %% the environment holds nothing of the host
import os
escaped = set(os.environ) - {"HOME", "TMPDIR", "PATH", "LANG", "PYTHONHASHSEED", "OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "LC_CTYPE"}

# %% symlink out of the work folder
import os
os.symlink(HOST_FILE, "link")
escaped = open("link").read()

# %% hard link to the interpreter
import os, sys
os.link("/usr/lib/os-release", "link")
escaped = True

# %% write into the library
open("/assay/lib/sandboxes/runner/frames.py", "a").write("x")
escaped = True

# %% write into the standard library
import os
open(os.__file__, "a").write("x")
escaped = True

# %% create a file in the root
open("/x", "w")
escaped = True

# %% create a file in the library folder
open("/assay/lib/sitecustomize.py", "w")
escaped = True

# %% make a device node
import os, stat
os.mknod("disk", 0o600 | stat.S_IFBLK, os.makedev(8, 0))
escaped = True

# %% open a device of the host
import os
escaped = [d for d in ("mem", "kmsg", "vda", "sda", "kvm", "fuse", "net/tun", "port", "tty", "ptmx") if os.path.exists(f"/dev/{d}")]

# %% mount a file system
import ctypes
libc = ctypes.CDLL(None, use_errno=True)
escaped = libc.mount(b"x", b"/work", b"tmpfs", 0, None) == 0

# %% remount the root writable
import ctypes
libc = ctypes.CDLL(None, use_errno=True)
escaped = libc.mount(None, b"/", None, 32 | 4096, None) == 0

# %% unmount
import ctypes
libc = ctypes.CDLL(None, use_errno=True)
escaped = libc.umount2(b"/work", 2) == 0 or libc.umount2(b"/proc", 2) == 0

# %% chroot
import os
os.chroot("/work")
escaped = True

# %% fill the disk [limit=file_size]
for i in range(1000):
    open(f"f{i}", "wb").write(b"x" * (1 << 20))
escaped = True

# %% one huge file [limit=file_size]
f = open("f", "wb")
for i in range(1000):
    f.write(b"x" * (1 << 20))
escaped = True

# %% sparse file [limit=file_size]
f = open("f", "wb")
f.truncate(1 << 40)
escaped = True

# %% exhaust the inodes [limit=file_size]
for i in range(100_000):
    open(f"f{i}", "w").close()
escaped = True

# %% kernel settings
open("/proc/sys/kernel/hostname", "w").write("x")
escaped = True

# %% core pattern
open("/proc/sys/kernel/core_pattern", "w").write("|/bin/sh")
escaped = True

# %% sysrq
open("/proc/sysrq-trigger", "w").write("b")
escaped = True

# %% cgroup files
import os
escaped = os.path.exists("/sys/fs/cgroup")

# %% an inherited descriptor
import os
escaped = [fd for fd in os.listdir("/proc/self/fd") if int(fd) > 3 and os.path.exists(f"/proc/self/fd/{fd}")]
