# %% fork bomb [limit=processes]
import os
while True:
    os.fork()

# %% thread bomb [limit=processes]
import threading, time
for _ in range(10_000):
    threading.Thread(target=time.sleep, args=(60,), daemon=True).start()

# %% see processes of the host
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
os.setresuid(1001, 1001, 1001)
escaped = True

# %% capabilities
status = dict(line.split(":\t", 1) for line in open("/proc/self/status").read().splitlines() if ":\t" in line)
escaped = [k for k in ("CapInh", "CapPrm", "CapEff", "CapBnd", "CapAmb") if int(status[k], 16)] or status["NoNewPrivs"] != "1"

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

# %% set-uid programs have no power on any mount
lines = [line.split() for line in open("/proc/self/mountinfo")]
escaped = [line[4] for line in lines if "nosuid" not in line[5].split(",")]

# %% all but the work folder is read-only
import os
lines = [line.split() for line in open("/proc/self/mountinfo")]
writable = {line[4] for line in lines if "rw" in line[5].split(",")}
escaped = writable - {"/work", "/proc"} - {f"/dev/{name}" for name in ("null", "full", "random", "urandom")}
