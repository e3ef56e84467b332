# %% fork bomb [limit=processes]
import os
while True:
    os.fork()

# %% thread bomb [limit=processes]
import threading, time
for _ in range(10_000):
    threading.Thread(target=time.sleep, args=(60,), daemon=True).start()

# %% see processes of the host [not process-old: without Landlock, /proc shows all]
import os
escaped = len([p for p in os.listdir("/proc") if p.isdigit()]) > 2

# %% kill everything, then go on
import os, signal
try:
    os.kill(1, signal.SIGKILL)
except PermissionError:
    pass
os.kill(-1, 0) if False else None
escaped = not os.path.exists("/proc/1")

# %% stop the warden
import os, signal, time
for s in (signal.SIGSTOP, signal.SIGTERM, signal.SIGINT, signal.SIGUSR1):
    try:
        os.kill(1, s)
    except PermissionError:
        pass
state = open("/proc/1/stat").read().rpartition(")")[2].split()[0]
escaped = state in "TZX"

# %% stop and kill the parent in every way there is
import ctypes, os, signal, threading
libc = ctypes.CDLL(None, use_errno=True)
x86 = os.uname().machine == "x86_64"
parent = (os.getppid() or 1)
info = (ctypes.c_int * 32)(signal.SIGKILL, 0, -1)
for number, arguments in (
    (62 if x86 else 129, (parent, signal.SIGSTOP)),
    (62 if x86 else 129, (parent, signal.SIGKILL)),
    (200 if x86 else 130, (parent, signal.SIGKILL)),
    (234 if x86 else 131, (parent, parent, signal.SIGKILL)),
    (129 if x86 else 138, (parent, signal.SIGKILL, info)),
    (297 if x86 else 240, (parent, parent, signal.SIGKILL, info)),
    (62 if x86 else 129, (-1, signal.SIGKILL)),
):
    libc.syscall(number, *arguments)
try:
    signal.pidfd_send_signal(os.pidfd_open(parent), signal.SIGKILL)
except OSError:
    pass
escaped = False

# %% have a pipe signal the parent
import ctypes, fcntl, os, signal
reading, writing = os.pipe()
try:
    fcntl.fcntl(reading, 10, signal.SIGKILL)
    fcntl.fcntl(reading, fcntl.F_SETOWN, (os.getppid() or 1))
    fcntl.fcntl(reading, fcntl.F_SETFL, os.O_ASYNC | os.O_NONBLOCK)
finally:
    os.write(writing, b"x")
escaped = False

# %% become a child of the warden's
import ctypes, os
libc = ctypes.CDLL(None, use_errno=True)
pid = libc.syscall({"x86_64": 56, "aarch64": 220}[os.uname().machine], 0x8000 | 17, 0, 0, 0, 0)
if pid == 0:
    import time
    time.sleep(600)
escaped = False

# %% trace the warden
import ctypes
libc = ctypes.CDLL(None, use_errno=True)
escaped = libc.ptrace(16, 1, 0, 0) == 0

# %% read the warden's memory by system call
import ctypes
libc = ctypes.CDLL(None, use_errno=True)
buffer = ctypes.create_string_buffer(8)
iov = (ctypes.c_void_p * 2)(ctypes.addressof(buffer), 8)
remote = (ctypes.c_void_p * 2)(0x400000, 8)
escaped = libc.process_vm_readv(1, iov, 1, remote, 1, 0) > 0

# %% change the warden's bounds
import resource
escaped = resource.prlimit(1, resource.RLIMIT_NOFILE, (0, 0))

# %% raise one's own bounds
import resource
try:
    resource.setrlimit(resource.RLIMIT_NPROC, (10_000, 10_000))
    escaped = True
except ValueError:  # "not allowed to raise maximum limit"
    escaped = False

# %% become root
import os
os.setuid(0)
escaped = True

# %% become another user
import os
other = 1002 if os.getuid() == 1001 else 1001
os.setresuid(other, other, other)
escaped = True

# %% capabilities
status = dict(line.split(":\t", 1) for line in open("/proc/self/status").read().splitlines() if ":\t" in line)
escaped = [k for k in ("CapInh", "CapPrm", "CapEff", "CapAmb") if int(status[k], 16)] or status["NoNewPrivs"] != "1"

# %% bounding set of capabilities [not process: only root can empty it] [not process-old: the same]
status = dict(line.split(":\t", 1) for line in open("/proc/self/status").read().splitlines() if ":\t" in line)
escaped = int(status["CapBnd"], 16)

# %% no system-call filter
status = dict(line.split(":\t", 1) for line in open("/proc/self/status").read().splitlines() if ":\t" in line)
escaped = status["Seccomp"] != "2"

# %% raise priority
import os
os.nice(-5)
escaped = True

# %% real-time scheduling
import os
os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(1))
escaped = True

# %% set-uid programs have no power on any mount [not process-old: the mounts are the host's; no-new-privileges holds]
lines = [line.split() for line in open("/proc/self/mountinfo")]
escaped = [line[4] for line in lines if "nosuid" not in line[5].split(",")]

# %% all but the work folder is read-only [not process-old: the mounts are the host's; file modes hold]
import os
lines = [line.split() for line in open("/proc/self/mountinfo")]
writable = {line[4] for line in lines if "rw" in line[5].split(",")}
escaped = writable - {"/work", "/proc"} - {f"/dev/{name}" for name in ("null", "full", "random", "urandom")}
