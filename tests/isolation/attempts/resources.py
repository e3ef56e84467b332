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

# %% shared mapping [limit=memory]
import mmap
held = []
for _ in range(16):
    m = mmap.mmap(-1, 32 << 20)
    for offset in range(0, 32 << 20, 4096):
        m[offset] = 1
    held.append(m)

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
