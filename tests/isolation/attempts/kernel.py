# %% new user namespace
import ctypes
libc = ctypes.CDLL(None, use_errno=True)
escaped = libc.unshare(0x10000000) == 0

# %% new mount namespace
import ctypes
libc = ctypes.CDLL(None, use_errno=True)
escaped = libc.unshare(0x00020000) == 0

# %% clone into a user namespace
import ctypes, os
libc = ctypes.CDLL(None, use_errno=True)
pid = libc.syscall({"x86_64": 56, "aarch64": 220}[os.uname().machine], 0x10000000 | 17, 0, 0, 0, 0)
if pid == 0:
    os._exit(0)
escaped = pid > 0

# %% clone3
import ctypes
libc = ctypes.CDLL(None, use_errno=True)
args = (ctypes.c_uint64 * 11)(0x10000000)
escaped = libc.syscall(435, args, 88) >= 0

# %% enter another namespace
import ctypes, os
libc = ctypes.CDLL(None, use_errno=True)
fd = os.open("/proc/self/ns/mnt", os.O_RDONLY)
escaped = libc.setns(fd, 0) == 0

# %% bpf
import ctypes, os
libc = ctypes.CDLL(None, use_errno=True)
attr = (ctypes.c_uint32 * 16)(1, 4, 4, 1)
escaped = libc.syscall({"x86_64": 321, "aarch64": 280}[os.uname().machine], 0, attr, 64) >= 0

# %% perf events
import ctypes, os
libc = ctypes.CDLL(None, use_errno=True)
attr = (ctypes.c_uint32 * 32)(1, 128)
escaped = libc.syscall({"x86_64": 298, "aarch64": 241}[os.uname().machine], attr, 0, -1, -1, 0) >= 0

# %% keyrings
import ctypes, os
libc = ctypes.CDLL(None, use_errno=True)
escaped = libc.syscall({"x86_64": 250, "aarch64": 219}[os.uname().machine], 0, -3, 1) >= 0

# %% io_uring
import ctypes
libc = ctypes.CDLL(None, use_errno=True)
params = (ctypes.c_uint32 * 30)()
escaped = libc.syscall(425, 8, params) >= 0

# %% userfaultfd
import ctypes, os
libc = ctypes.CDLL(None, use_errno=True)
escaped = libc.syscall({"x86_64": 323, "aarch64": 282}[os.uname().machine], 1) >= 0

# %% a call newer than the filter
import ctypes
libc = ctypes.CDLL(None, use_errno=True)
escaped = libc.syscall(443, 0, 0, 0, 0) >= 0 or ctypes.get_errno() != 38

# %% open by handle
import ctypes, os
libc = ctypes.CDLL(None, use_errno=True)
escaped = libc.open_by_handle_at(-100, None, 0) >= 0 or ctypes.get_errno() != 1

# %% kernel log
import ctypes
libc = ctypes.CDLL(None, use_errno=True)
buffer = ctypes.create_string_buffer(100)
escaped = libc.klogctl(3, buffer, 100) >= 0

# %% clock
import time
time.clock_settime(time.CLOCK_REALTIME, 0)
escaped = True

# %% host name
import socket
socket.sethostname("x")
escaped = True

# %% the host's name is not shown [not process: it has no namespace for names] [not process-old: the same]
import os
escaped = os.uname().nodename != "sandbox"

# %% personality
import ctypes
libc = ctypes.CDLL(None, use_errno=True)
escaped = libc.personality(0x0040000) >= 0

# %% executable code of another architecture ends the process
import ctypes, mmap, os
if os.uname().machine == "x86_64":
    # mov eax, 20 (getpid of i386); int 0x80; ret
    code = mmap.mmap(-1, 4096, prot=mmap.PROT_READ | mmap.PROT_WRITE | mmap.PROT_EXEC)
    code.write(b"\xb8\x14\x00\x00\x00\xcd\x80\xc3")
    address = ctypes.addressof(ctypes.c_char.from_buffer(code))
    pid = os.fork()
    if pid == 0:
        ctypes.CFUNCTYPE(ctypes.c_int)(address)()
        os._exit(0)
    escaped = os.WIFEXITED(os.waitpid(pid, 0)[1])
else:
    escaped = False

# %% system V shared memory
import ctypes
libc = ctypes.CDLL(None, use_errno=True)
escaped = libc.shmget(1234, 4096, 0o1666) >= 0

# %% posix message queue
import ctypes
libc = ctypes.CDLL("librt.so.1", use_errno=True)
escaped = libc.mq_open(b"/x", 0o102, 0o600, None) >= 0
