# %% tcp to a host's loopback service
import socket
s = socket.create_connection(("127.0.0.1", HOST_PORT), timeout=2)
escaped = s.recv(10)

# %% tcp to an outside address
import socket
s = socket.create_connection(("192.0.2.1", 80), timeout=2)
escaped = True

# %% tcp over ipv6 loopback
import socket
s = socket.create_connection(("::1", HOST_PORT), timeout=2)
escaped = True

# %% udp
import socket
s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
escaped = s.sendto(b"x", ("127.0.0.1", 53))

# %% name resolution
import socket
escaped = socket.getaddrinfo("localhost.example", 80)

# %% raw socket
import socket
escaped = socket.socket(socket.AF_INET, socket.SOCK_RAW, socket.IPPROTO_ICMP)

# %% packet socket
import socket
escaped = socket.socket(socket.AF_PACKET, socket.SOCK_RAW)

# %% netlink
import socket
escaped = socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, 0)

# %% vsock
import socket
escaped = socket.socket(socket.AF_VSOCK, socket.SOCK_STREAM)

# %% kernel crypto socket
import socket
escaped = socket.socket(socket.AF_ALG, socket.SOCK_SEQPACKET)

# %% abstract unix socket of the host
import socket
s = socket.socket(socket.AF_UNIX)
s.connect("\0" + HOST_ABSTRACT)
escaped = s.recv(10)

# %% unix socket in the host's file system
import socket
s = socket.socket(socket.AF_UNIX)
s.connect(HOST_SOCKET)
escaped = s.recv(10)

# %% a datagram to a unix socket of the host
import socket
left, right = socket.socketpair(socket.AF_UNIX, socket.SOCK_DGRAM)
escaped = left.sendto(b"x", HOST_DATAGRAM) or left.sendto(b"x", "\0" + HOST_ABSTRACT + "-datagram")

# %% listen on loopback
import socket
s = socket.socket()
s.bind(("127.0.0.1", 0))
s.listen()
escaped = True
