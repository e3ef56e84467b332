# Pairs of cells: the first leaves something, the second, a job of its own in the same sandbox, looks for it.
# %% file: leave
for folder in (".", "/work", "/tmp", "/var/tmp", "/dev/shm"):
    try:
        open(f"{folder}/left", "w").write("x")
    except OSError:
        pass
escaped = False

# %% file: look
import os
escaped = os.listdir(".") + [f for f in ("/work", "/tmp", "/var/tmp", "/dev/shm") if os.path.exists(f"{f}/left")]

# %% folder: leave
import os
for folder in (".", "/tmp", "/dev/shm"):
    try:
        os.makedirs(f"{folder}/left2/{'deep/' * 50}")
        os.symlink("/", f"{folder}/left2/deep/link")
        os.chmod(f"{folder}/left2", 0)
    except OSError:
        pass
escaped = False

# %% folder: look
import os
escaped = os.listdir(".") + [f for f in ("/work", "/tmp", "/dev/shm") if os.path.exists(f"{f}/left2")]

# %% shared memory: leave
import multiprocessing.shared_memory as sm
block = sm.SharedMemory("left", create=True, size=100)
from multiprocessing import resource_tracker
escaped = False

# %% shared memory: look
import os
escaped = [name for name in os.listdir("/dev/shm") if "left" in name]

# %% environment: leave
import os
os.environ["LEFT"] = "x"
escaped = False

# %% environment: look
import os
escaped = "LEFT" in os.environ

# %% background process: leave
import ctypes, os, time
ctypes.CDLL(None).prctl(15, b"left", 0, 0, 0)
if os.fork() == 0:
    os.setsid()
    if os.fork() == 0:
        for fd in range(3):
            os.close(fd)
        time.sleep(600)
    os._exit(0)
os.wait()
escaped = False

# %% background process: look
import os
found = []
for p in os.listdir("/proc"):
    if p.isdigit():
        try:
            found += [p] if open(f"/proc/{p}/comm").read() == "left\n" else []
        except OSError:
            pass
escaped = found

# %% subreaper: leave
import ctypes, os, time
ctypes.CDLL(None).prctl(36, 1, 0, 0, 0)
ctypes.CDLL(None).prctl(15, b"left", 0, 0, 0)
if os.fork() == 0:
    if os.fork() == 0:
        time.sleep(600)
    os._exit(0)
escaped = False

# %% subreaper: look
import os
found = []
for p in os.listdir("/proc"):
    if p.isdigit():
        try:
            found += [p] if open(f"/proc/{p}/comm").read() == "left\n" else []
        except OSError:
            pass
escaped = found

# %% patched modules: leave
import json, os, random, sys
json.dumps = lambda *a, **k: "patched"
os._exit_original, sys.left = os._exit, True
import sandboxes.runner.child as child
child.left = True
escaped = False

# %% patched modules: look
import json, os, sys
import sandboxes.runner.child as child
escaped = json.dumps(1) != "1" or hasattr(sys, "left") or hasattr(os, "_exit_original") or hasattr(child, "left")

# %% abstract socket: leave
import os, socket, time
s = socket.socket(socket.AF_UNIX)
s.bind("\0left")
s.listen()
if os.fork() == 0:
    time.sleep(600)
escaped = False

# %% abstract socket: look
import socket
s = socket.socket(socket.AF_UNIX)
s.connect("\0left")
escaped = True

# %% timer: leave
import signal, time
signal.signal(signal.SIGALRM, signal.SIG_IGN)
signal.setitimer(signal.ITIMER_REAL, 0.05)
escaped = False

# %% timer: look
import time
time.sleep(0.1)
escaped = False

# %% descriptors in flight
import array, os, socket
a, b = socket.socketpair()
a.sendmsg([b"x"], [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", [b.fileno()]))])
escaped = True

# %% lock on a file of all sandboxes
import fcntl
fcntl.flock(open("/dev/null"), fcntl.LOCK_EX)
escaped = True

# %% the harness's protocol on inherited descriptors
import json, os, struct
body = json.dumps({"outcomes": []}).encode()
wrote = []
for fd in range(3, 300):
    try:
        if os.write(fd, struct.pack("!I", len(body)) + body):
            wrote.append(fd)
    except OSError:
        pass
escaped = [fd for fd in wrote if fd > 3]

# %% an empty work folder with an attribute, closed to its owner
import os
try:
    os.setxattr(".", "user.a", b"x")
except OSError:
    pass  # an older kernel, or a place that refuses it
os.chmod(".", 0o500)
escaped = False

# %% a work folder that nobody may read
import os
open("file", "w").close()
os.mkdir("folder")
try:
    os.setxattr(".", "user.a", b"x")
    os.setxattr("folder", "user.b", b"x")
except OSError:
    pass
os.chmod("folder", 0)
os.chmod(".", 0o100)
escaped = False

# %% a large work folder, closed and deep
import os
for i in range(50):
    os.mkdir("d" * 200)
    os.chdir("d" * 200)
for i in range(3900):
    open(f"f{i}", "w").close()
for i in range(50):
    os.chmod(".", 0o500)
    os.chdir("..")
os.chmod(".", 0)
escaped = False
