# Acts that a process box must not be able to do. Each runs in a child of its own and prints one line:
# its name, then "did" or the errno's name. Words: the scratch directory, a pid outside, a file that is not granted, a file
# of a read-only grant.
import ctypes, errno, os, platform, socket, stat, struct, sys

work, outside_pid, hidden, readonly, shm = sys.argv[1], int(sys.argv[2]), sys.argv[3], sys.argv[4], sys.argv[5]
libc = ctypes.CDLL(None, use_errno=True)
X86 = platform.machine() == "x86_64"
# number on x86_64, number on aarch64
NR = {"keyctl": (250, 219), "add_key": (248, 217), "userfaultfd": (323, 282), "ptrace": (101, 117), "process_vm_readv": (310, 270),
      "unshare": (272, 97), "kcmp": (312, 272), "personality": (135, 92), "fsopen": (430, 430), "open_tree": (428, 428),
      "io_uring_setup": (425, 425), "clone3": (435, 435), "seccomp": (317, 277), "bpf": (321, 280), "quotactl": (179, 60),
      "perf_event_open": (298, 241), "settimeofday": (164, 170), "syslog": (103, 116), "name_to_handle_at": (303, 264),
      "openat2": (437, 437)}


def call(name, *args):
    ctypes.set_errno(0)
    r = libc.syscall(ctypes.c_long(NR[name][0 if X86 else 1]), *[a if isinstance(a, (bytes, ctypes._SimpleCData, ctypes.Array)) or a is None else ctypes.c_long(a) for a in args])
    if r < 0:
        raise OSError(ctypes.get_errno(), "")
    return r


def sock(*args):
    socket.socket(*args).close()


def fast_open():
    server = socket.create_server(("127.0.0.1", 0))
    socket.socket().sendto(b"x", 0x20000000, server.getsockname())


def make(path, mode):
    os.close(os.open(path, os.O_CREAT | os.O_WRONLY | os.O_EXCL, mode))


def notifier():
    libc.prctl(38, 1, 0, 0, 0)
    code = struct.pack("HBBI", 6, 0, 0, 0x7FFF0000)
    buffer = ctypes.create_string_buffer(code)
    program = ctypes.create_string_buffer(struct.pack("HxxxxxxP", 1, ctypes.addressof(buffer)))
    call("seccomp", 1, 8, program)


ACTS = {
    "A01 io_uring": lambda: call("io_uring_setup", 4, ctypes.create_string_buffer(256)),
    "A06 user namespace": lambda: call("unshare", 0x10000000),
    "A07 fsopen": lambda: call("fsopen", b"tmpfs", 0),
    "A07 open_tree": lambda: call("open_tree", -100, b"/", 1),
    "A09 ptrace": lambda: call("ptrace", 0x4206, os.getppid(), 0, 0),
    "A10 memory of pid 1": lambda: open("/proc/1/mem", "rb"),
    "A15 keyring": lambda: call("keyctl", 0, -3, 1),
    "A16 userfaultfd": lambda: call("userfaultfd", 1),
    "A18 alg": lambda: sock(38, 5, 0),
    "A19 packet": lambda: sock(17, 3, 0),
    "A21 vsock": lambda: sock(40, 1, 0),
    "A22 mptcp": lambda: sock(2, 1, 262),
    "A24 fast open": fast_open,
    "A25 ping": lambda: sock(2, 2, 1),
    "A25 raw": lambda: sock(2, 3, 1),
    "A29 listener": notifier,
    "A42 personality": lambda: call("personality", 0x0040000),
    "A42 kcmp": lambda: call("kcmp", os.getpid(), os.getpid(), 0, 0, 0),
    "A42 syslog": lambda: call("syslog", 10, None, 0),
    "A42 handle": lambda: call("name_to_handle_at", -100, b"/", ctypes.create_string_buffer(struct.pack("Ii", 64, 0) + bytes(64)), ctypes.create_string_buffer(8), 0),
    "B09 core_pattern": lambda: open("/proc/sys/kernel/core_pattern", "r+").close(),
    "B09 sysrq": lambda: open("/proc/sysrq-trigger", "wb").close(),
    "B12 signal outside": lambda: os.kill(outside_pid, 0),
    "B18 shared memory of the host": lambda: open(shm).close(),
    "B19 device": lambda: os.mknod(work + "/node", stat.S_IFCHR | 0o666, os.makedev(1, 1)),
    "B21 chmod": lambda: os.chmod(readonly, 0o640),
    "B21 times": lambda: os.utime(readonly, (1, 1)),
    "B22 stat": lambda: os.stat(hidden),
    "set-id chmod": lambda: (make(work + "/s", 0o755), os.chmod(work + "/s", 0o4755)),
    "set-id open": lambda: make(work + "/t", 0o4755),
    "set-id mkdir": lambda: libc_mkdir(work + "/u"),
    "read /proc/kcore": lambda: open("/proc/kcore", "rb").close(),
    # Kept as controls: what a box may do is done.
    "may: socketpair": lambda: socket.socketpair(),
    "may: own file": lambda: make(work + "/own", 0o755),
    "may: tcp": lambda: sock(2, 1, 0),
    "may: memfd": lambda: os.memfd_create("m"),
}


def libc_mkdir(path):
    if libc.mkdir(path.encode(), 0o2755) != 0:
        raise OSError(ctypes.get_errno(), "")


for name, act in ACTS.items():
    sys.stdout.flush()
    child = os.fork()
    if child == 0:
        try:
            act()
            code = 0
        except OSError as e:
            code = e.errno or 255
        os._exit(code)
    status = os.waitpid(child, 0)[1]
    code = os.waitstatus_to_exitcode(status)
    print(name + ": " + ("did" if code == 0 else errno.errorcode.get(code, str(code))))
