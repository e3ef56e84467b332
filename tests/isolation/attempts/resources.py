# %% memory hog [limit=memory]
held = []
while True:
    held.append(bytearray(1 << 20))

# %% one huge allocation [limit=memory]
x = bytearray(1 << 40)

# %% memory of many processes [limit=memory]
import os, time
for _ in range(6):
    if os.fork() == 0:
        x = bytearray(100 << 20)
        time.sleep(60)
time.sleep(60)

# %% shared mapping that belongs to no file
import mmap
escaped = mmap.mmap(-1, 1 << 20)

# %% shared mapping of a device [not process-old: without Landlock, /dev/zero is open to every user]
import mmap, os
escaped = mmap.mmap(os.open("/dev/zero", os.O_RDWR), 1 << 20)

# %% larger socket buffers
import socket
a, b = socket.socketpair()
a.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 4 << 20)
escaped = True

# %% children that vanish with their CPU time
import signal
signal.signal(signal.SIGCHLD, signal.SIG_IGN)
escaped = True

# %% cpu of children that nobody waits for [limit=cpu_timeout]
import os, time
for _ in range(20):
    if os.fork() == 0:
        if os.fork() == 0:
            end = time.process_time() + 0.1
            while time.process_time() < end:
                pass
        os._exit(0)
    os.wait()
time.sleep(2.5)

# %% private mapping of a file in the work folder is fine
import mmap
with open("f", "wb") as f:
    f.write(b"x" * 4096)
escaped = mmap.mmap(open("f", "r+b").fileno(), 4096)[0] != 120

# %% memory file
import os
fd = os.memfd_create("x")
escaped = True

# %% cpu burner [limit=cpu_timeout]
while True:
    pass

# %% cpu burner in threads [limit=cpu_timeout]
import hashlib, threading
def burn():
    while True:
        hashlib.pbkdf2_hmac("sha256", b"x", b"y", 1_000_000)
threads = [threading.Thread(target=burn) for _ in range(4)]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()

# %% cpu burner in children [limit=cpu_timeout]
import os, time
for _ in range(3):
    if os.fork() == 0:
        while True:
            pass
time.sleep(60)

# %% cpu burner that ignores signals [limit=cpu_timeout]
import signal
for s in (signal.SIGTERM, signal.SIGXCPU, signal.SIGALRM):
    signal.signal(s, signal.SIG_IGN)
while True:
    pass

# %% one long computation in C [limit=cpu_timeout]
x = 9 ** (9 ** 8)
str(x)

# %% sleeper [limit=wall_timeout]
import time
time.sleep(60)

# %% waiting for input that never comes [limit=wall_timeout]
import os
r, w = os.pipe()
os.read(r, 1)

# %% huge output [limit=output]
while True:
    print("x" * 10_000)

# %% huge error output [limit=output]
import sys
while True:
    sys.stderr.write("x" * 10_000)

# %% output from children [limit=output]
import os, time
if os.fork() == 0:
    while True:
        os.write(1, b"x" * 10_000)
time.sleep(60)

# %% open files [limit=open_files]
held = []
while True:
    held.append(open("/dev/null"))

# %% deep recursion
import sys
sys.setrecursionlimit(10**9)
def f(n):
    return f(n + 1) + 1
pid = __import__("os").fork()
if pid == 0:
    f(0)
escaped = False
