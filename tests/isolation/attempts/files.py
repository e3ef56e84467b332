# %% read a file of the host
escaped = open(HOST_FILE).read()

# %% host accounts [not process-old: without Landlock, what every user may read is readable]
escaped = open("/etc/passwd").read()

# %% host folders are not there
import os
escaped = [name for name in ("etc", "home", "root", "var", "mnt", "srv", "opt", "boot", "run", "sys") if os.listdir(f"/{name}")]

# %% list the root [not process-old: as above]
import os
escaped = set(os.listdir("/")) - set(ALLOWED_ROOT)

# %% the project's own folder [not process-old: as above]
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
import sandboxes.runner.frames as module
open(module.__file__, "a").write("x")
escaped = True

# %% empty a file of the standard library by opening it to read
import os
os.open(os.__file__, os.O_RDONLY | os.O_TRUNC)
escaped = True

# %% truncate a file of the host
import os
os.truncate(HOST_FILE, 1)
escaped = True

# %% change the mode of a file of the host
import os
before = os.stat(HOST_FILE).st_mode
os.chmod(HOST_FILE, 0o777)
escaped = os.stat(HOST_FILE).st_mode != before

# %% change the times of a file of the host
import os
os.utime(HOST_FILE, (1, 1))
escaped = os.stat(HOST_FILE).st_mtime == 1

# %% put an attribute on a file of the host
import os
os.setxattr(HOST_FILE, "user.left", b"x")
escaped = True

# %% watch a folder of the host
import ctypes, os
libc = ctypes.CDLL(None, use_errno=True)
descriptor = libc.inotify_init()
escaped = libc.inotify_add_watch(descriptor, os.path.dirname(HOST_FILE).encode(), 0xFFF) >= 0

# %% by way of the own root
escaped = open("/proc/self/root" + HOST_FILE).read()

# %% make a file beside the work folder
import os
open(os.environ["HOME"] + "/../left", "w")
escaped = True

# %% remove the work folder
import os
os.rmdir(os.environ["HOME"])
escaped = True

# %% write into the standard library
import os
open(os.__file__, "a").write("x")
escaped = True

# %% create a file in the root
open("/x", "w")
escaped = True

# %% create a file in the library folder
import os, sandboxes
open(os.path.dirname(os.path.dirname(sandboxes.__file__)) + "/sitecustomize.py", "w")
escaped = True

# %% make a device node
import os, stat
os.mknod("disk", 0o600 | stat.S_IFBLK, os.makedev(8, 0))
escaped = True

# %% open a device of the host [not process-old: without Landlock, a new terminal may be opened]
found = []
for name in ("mem", "kmsg", "vda", "sda", "kvm", "fuse", "net/tun", "port", "tty", "ptmx"):
    for mode in ("rb", "wb"):
        try:
            found.append(open(f"/dev/{name}", mode, buffering=0))
        except OSError:
            pass
escaped = found

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

# %% cgroup files [not process-old: as above]
import os
escaped = os.listdir("/sys/fs/cgroup")

# %% an inherited descriptor
import os
escaped = [fd for fd in os.listdir("/proc/self/fd") if int(fd) > 3 and os.path.exists(f"/proc/self/fd/{fd}")]
