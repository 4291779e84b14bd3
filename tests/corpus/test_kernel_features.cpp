// What programs ask of the kernel beyond files and processes.
#include "tests/corpus/corpus.hpp"

using namespace h5i::test;

namespace {

void many_threads(TierBox& box) {
  box.profile()["resources"]["procs"] = 1200;
  // Where no cgroup counts memory, each thread's whole stack counts when it is made.
  box.profile()["resources"]["mem"] = 9ull << 30;
}
void unix_sockets(TierBox& box) { box.profile()["net"]["unix"] = true; }

}  // namespace

TEST_CASE("1,000 threads at once, where the profile allows so many") {
  same_result({"threads", {"gcc"}, R"sh(
cat > t.c <<'.'
#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
static pthread_barrier_t all;
static void* wait_for_all(void* x) { pthread_barrier_wait(&all); return x; }
int main(void) {
  pthread_t t[1000];
  pthread_barrier_init(&all, NULL, 1001);
  for (long i = 0; i < 1000; i++) {
    int e = pthread_create(&t[i], NULL, wait_for_all, (void*)i);
    if (e) { printf("%ld: %s\n", i, strerror(e)); return 1; }
  }
  pthread_barrier_wait(&all);
  long sum = 0; void* r;
  for (int i = 0; i < 1000; i++) { pthread_join(t[i], &r); sum += (long)r; }
  printf("%ld\n", sum);
  return 0;
}
.
gcc -pthread t.c -o t
./t
)sh",
               many_threads});
}

TEST_CASE("inotify: each event of a file's life, and a queue for a tree") {
  same_result({"inotify", {"python3"}, R"sh(
cat > i.py <<'.'
import ctypes, os, select, struct
libc = ctypes.CDLL(None, use_errno=True)
names = {0x2: "modify", 0x4: "attrib", 0x8: "close-write", 0x20: "open", 0x40: "moved-from", 0x80: "moved-to", 0x100: "create", 0x200: "delete", 0x400: "delete-self", 0x8000: "ignored"}
fd = libc.inotify_init1(os.O_CLOEXEC | os.O_NONBLOCK)
os.mkdir("d"); os.mkdir("d/below")
w = [libc.inotify_add_watch(fd, b"d", 0x7ee), libc.inotify_add_watch(fd, b"d/below", 0x7ee)]
open("d/f", "w").write("x"); os.chmod("d/f", 0o600); os.rename("d/f", "d/below/g"); os.unlink("d/below/g"); os.rmdir("d/below")
while select.select([fd], [], [], 0.2)[0]:
    data = os.read(fd, 65536)
    while data:
        wd, mask, cookie, length = struct.unpack("iIII", data[:16])
        print(w.index(wd), names.get(mask & 0xffff, hex(mask)), "dir" if mask & 0x40000000 else "", data[16:16 + length].rstrip(b"\0").decode(), bool(cookie))
        data = data[16 + length:]
print(libc.inotify_rm_watch(fd, w[0]), libc.inotify_add_watch(fd, b"none", 2), os.strerror(ctypes.get_errno()))
.
python3 i.py
)sh"});
}

TEST_CASE("locks between processes: flock, POSIX, open file description") {
  same_result({"locks", {"python3"}, R"sh(
cat > l.py <<'.'
import fcntl, functools, os, struct
print = functools.partial(print, flush=True)
OFD_SETLK, OFD_SETLKW = 37, 38
def record(kind, start=0, length=0): return struct.pack("hhqqi4x", kind, os.SEEK_SET, start, length, 0)
def ofd(how, kind): return lambda f: fcntl.fcntl(f, how, record(kind))
ways = {
    "flock": (lambda f: fcntl.flock(f, fcntl.LOCK_EX), lambda f: fcntl.flock(f, fcntl.LOCK_EX | fcntl.LOCK_NB), lambda f: fcntl.flock(f, fcntl.LOCK_UN)),
    "posix": (lambda f: fcntl.lockf(f, fcntl.LOCK_EX), lambda f: fcntl.lockf(f, fcntl.LOCK_EX | fcntl.LOCK_NB), lambda f: fcntl.lockf(f, fcntl.LOCK_UN)),
    "ofd": (ofd(OFD_SETLKW, fcntl.F_WRLCK), ofd(OFD_SETLK, fcntl.F_WRLCK), ofd(OFD_SETLK, fcntl.F_UNLCK)),
}
for name, (take, attempt, release) in ways.items():
    f = open(name, "w+"); f.write("0123456789"); f.flush(); take(f)
    (r, w), (r2, w2) = os.pipe(), os.pipe()
    child = os.fork()
    if child == 0:
        g = open(name, "r+")
        try: attempt(g); print(name, "taken twice")
        except OSError as e: print(name, "held:", e.strerror)
        os.write(w, b"x")
        take(g); print(name, "after:", os.read(r2, 1))
        os._exit(0)
    os.read(r, 1)
    os.write(w2, b"!"); release(f)
    print(name, "child", os.waitpid(child, 0)[1])
f = open("posix", "r+"); fcntl.lockf(f, fcntl.LOCK_EX, 4, 2)
if os.fork() == 0:
    g = open("posix", "r+"); fcntl.lockf(g, fcntl.LOCK_EX | fcntl.LOCK_NB, 2, 0)
    held = struct.unpack("hhqqi4x", fcntl.fcntl(g, fcntl.F_GETLK, record(fcntl.F_WRLCK)))
    print("range", held[2], held[3], held[4] == os.getppid()); os._exit(0)
print(os.wait()[1])
.
python3 l.py
exec 9> shell
flock -n 9
{ flock -n shell true || echo "flock(1) $?"; }
)sh"});
}

TEST_CASE("sparse files: holes are found, made and kept") {
  same_result({"sparse", {"python3", "cp", "du"}, R"sh(
truncate -s 64M big
stat -c '%s %b' big
cat > s.py <<'.'
import ctypes, errno, os
def attempt(what, f):
    try: print(what, f())
    except OSError as e: print(what, e.strerror)
fd = os.open("big", os.O_RDWR)
os.pwrite(fd, b"x" * 65536, 32 << 20)
attempt("data", lambda: os.lseek(fd, 0, os.SEEK_DATA)); attempt("hole", lambda: os.lseek(fd, 32 << 20, os.SEEK_HOLE))
attempt("no data", lambda: os.lseek(fd, 40 << 20, os.SEEK_DATA))
libc = ctypes.CDLL(None, use_errno=True)
def fallocate(mode, at, n):
    if libc.fallocate(fd, mode, ctypes.c_long(at), ctypes.c_long(n)) != 0: raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))
    return os.fstat(fd).st_blocks
attempt("allocated", lambda: fallocate(0, 0, 1 << 20)); attempt("kept size", lambda: fallocate(1, 64 << 20, 1 << 20)); attempt("punched", lambda: fallocate(3, 0, 1 << 20))
attempt("zeroed", lambda: fallocate(16, 32 << 20, 4096))
print(os.fstat(fd).st_size)
new = os.open("copied", os.O_RDWR | os.O_CREAT)
attempt("copy_file_range", lambda: os.copy_file_range(fd, new, 65536, 32 << 20, 0)); attempt("sendfile", lambda: os.sendfile(new, fd, 32 << 20, 100))
def name_it():
    t = os.open(".", os.O_TMPFILE | os.O_RDWR, 0o600)
    if libc.linkat(-100, b"/proc/self/fd/%d" % t, -100, b"named", 0x400) != 0: raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))
    return os.path.exists("named")
attempt("without a name, then with one", name_it)
.
python3 s.py
cp --sparse=always big small
cmp big small
du -k small | cut -f1
du -k --apparent-size small | cut -f1
)sh"});
}

TEST_CASE("unix sockets in the work tree, where the profile grants them: names, long names, abstract names, passed descriptors") {
  same_result({"unix-sockets", {"python3"}, R"sh(
cat > u.py <<'.'
import array, os, socket, struct, threading
def attempt(what, f):
    try: print(what, f())
    except OSError as e: print(what, e.strerror or e)
def talk(kind, name):
    s = socket.socket(socket.AF_UNIX, kind); s.bind(name); s.listen(1)
    c = socket.socket(socket.AF_UNIX, kind); c.connect(name)
    a, _ = s.accept(); c.send(b"hello"); got = a.recv(9)
    pid, uid, gid = struct.unpack("3i", a.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, 12))
    return got, pid == os.getpid(), uid == os.getuid(), gid == os.getgid()
attempt("stream", lambda: talk(socket.SOCK_STREAM, "s")); attempt("seqpacket", lambda: talk(socket.SOCK_SEQPACKET, "q"))
attempt("unicode", lambda: talk(socket.SOCK_STREAM, "\u00e9\U0001f980"))
attempt("107 bytes", lambda: talk(socket.SOCK_STREAM, "n" * 107)); attempt("108 bytes", lambda: talk(socket.SOCK_STREAM, "m" * 109))
attempt("abstract", lambda: talk(socket.SOCK_STREAM, "\0corpus-%d" % os.getpid()))
attempt("in use", lambda: talk(socket.SOCK_STREAM, "s")); attempt("nobody", lambda: socket.socket(socket.AF_UNIX).connect("none"))
d = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM); d.bind("d")
e = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM); e.sendto(b"datagram", "d"); print(d.recv(20))
deep = "x" * 100 + "/" + "y" * 100; os.makedirs(deep); os.chdir(deep)
attempt("deep, by a relative name", lambda: talk(socket.SOCK_STREAM, "s"))
a, b = socket.socketpair(); r, w = os.pipe()
socket.send_fds(a, [b"x"], [r]); os.write(w, b"passed"); print(os.read(socket.recv_fds(b, 1, 1)[1][0], 9))
.
python3 u.py
stat -c '%F' s
rm s q d
)sh",
               unix_sockets});
}

TEST_CASE("names: composed, decomposed, beyond the plane, 255 bytes, no UTF-8, and everything that a shell would see") {
  same_result({"names", {"python3"}, R"sh(
cat > n.py <<'.'
import os, unicodedata
def attempt(what, f):
    try: print(what, f())
    except OSError as e: print(what, e.strerror)
nfc, nfd = "caf\u00e9", unicodedata.normalize("NFD", "caf\u00e9")
names = [nfc, nfd, "\U0001f980\u200d\U0001f525", "\u202etxt", "\u0646\u0635", "\u4e2d" * 85, "a" * 255, " ", "-rf", "a\nb", "*", "\\", "'\"", "~", "CON", "x."]
os.mkdir("n")
for i, name in enumerate(names): open("n/" + name, "w").write(str(i))
open(b"n/\xff\xfe", "w").write("raw")
print(sorted(os.listdir(b"n")), [open("n/" + n).read() for n in names])
attempt("256 bytes", lambda: open("n/" + "a" * 256, "w")); attempt("86 characters of 3 bytes", lambda: open("n/" + "\u4e2d" * 86, "w"))
os.rename("n/" + nfc, "n/\u00c9"); os.symlink("\U0001f980", "n/l"); print(os.readlink("n/l"), os.path.exists("n/" + nfd), os.path.exists("n/" + nfc))
deep = "n"
for i in range(30): deep += "/" + "d" * 100; os.mkdir(deep)
open(deep + "/f", "w").write("deep"); print(len(deep), open(deep + "/f").read())
attempt("a path of 4096", lambda: os.stat("n/" + "./" * 2048))
.
python3 n.py
ls n | wc -l
find n -depth -delete
ls
)sh"});
}

TEST_CASE("what else programs ask for: memory, timers, terminals, System V's objects, other files") {
  same_result({"calls", {"gcc"}, R"sh(
cat > a.c <<'.'
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <pty.h>
#include <sched.h>
#include <semaphore.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/ipc.h>
#include <sys/mman.h>
#include <sys/msg.h>
#include <sys/random.h>
#include <sys/resource.h>
#include <sys/sem.h>
#include <sys/shm.h>
#include <sys/signalfd.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/timerfd.h>
#include <sys/wait.h>
#include <sys/xattr.h>
#include <time.h>
#include <unistd.h>
#define SAY(x) do { errno = 0; long r_ = (long)(x); printf("%s: %s\n", #x, r_ == -1 ? strerror(errno) : "works"); } while (0)
int main(void) {
  setvbuf(stdout, NULL, _IOLBF, 0);
  int f = open("f", O_RDWR | O_CREAT, 0600), e = eventfd(1, 0), t = timerfd_create(CLOCK_MONOTONIC, 0), p = epoll_create1(0);
  SAY(f); SAY(e); SAY(t); SAY(p);
  struct epoll_event ev = {.events = EPOLLIN};
  SAY(epoll_ctl(p, EPOLL_CTL_ADD, e, &ev)); SAY(epoll_wait(p, &ev, 1, 0));
  SAY(ftruncate(f, 8192)); SAY(mmap(NULL, 8192, PROT_READ | PROT_WRITE, MAP_SHARED, f, 0));
  SAY(mmap(NULL, 4096, PROT_READ | PROT_WRITE | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
  SAY(memfd_create("m", 0)); SAY(setxattr("f", "user.x", "1", 1, 0)); SAY(mlock(&f, sizeof f)); SAY(madvise(NULL, 0, MADV_DONTNEED));
  SAY(shmget(IPC_PRIVATE, 4096, 0600)); SAY(semget(IPC_PRIVATE, 1, 0600)); SAY(msgget(IPC_PRIVATE, 0600));
  SAY(sem_open("/corpus", O_CREAT, 0600, 1) == SEM_FAILED ? -1 : 0); SAY(sem_unlink("/corpus")); SAY(shm_open("/corpus", O_RDWR | O_CREAT, 0600)); SAY(shm_unlink("/corpus"));
  sigset_t set; sigemptyset(&set); sigaddset(&set, SIGUSR1); sigprocmask(SIG_BLOCK, &set, NULL);
  SAY(signalfd(-1, &set, 0)); SAY(kill(getpid(), SIGUSR1)); SAY(sigwaitinfo(&set, NULL));
  timer_t timer; SAY(timer_create(CLOCK_REALTIME, NULL, &timer)); cpu_set_t cpus; SAY(sched_getaffinity(0, sizeof cpus, &cpus)); SAY(sched_setaffinity(0, sizeof cpus, &cpus));
  int master, slave; SAY(openpty(&master, &slave, NULL, NULL, NULL)); SAY(write(slave, "x", 1));
  SAY(getpriority(PRIO_PROCESS, 0)); SAY(setpriority(PRIO_PROCESS, 0, 5)); struct rlimit none = {0, 0}; SAY(setrlimit(RLIMIT_CORE, &none));
  SAY(posix_fallocate(f, 0, 65536)); SAY(posix_fadvise(f, 0, 0, POSIX_FADV_DONTNEED)); SAY(sync_file_range(f, 0, 0, 2)); SAY(syncfs(f));
  SAY(link("f", "g")); SAY(syscall(SYS_renameat2, AT_FDCWD, "f", AT_FDCWD, "g", 2)); SAY(mkfifo("p", 0600)); SAY(mknod("r", S_IFREG | 0600, 0));
  int pipes[2]; SAY(pipe(pipes)); SAY(fcntl(pipes[0], F_SETPIPE_SZ, 65536)); loff_t at = 0; SAY(splice(f, &at, pipes[1], NULL, 100, 0)); SAY(tee(pipes[0], pipes[1], 1, SPLICE_F_NONBLOCK));
  pid_t c = fork(); if (c == 0) { setpgid(0, 0); pause(); _exit(0); }
  int fd = (int)syscall(SYS_pidfd_open, c, 0); SAY(fd); SAY(syscall(SYS_pidfd_send_signal, fd, SIGKILL, NULL, 0)); SAY(waitid(P_PIDFD, fd, NULL, WEXITED));
  void* stack = malloc(65536); SAY(stack != NULL); SAY(getrandom(stack, 16, 0)); SAY(syscall(SYS_membarrier, 0, 0, 0)); SAY(vfork() == 0 ? (_exit(0), 0) : 0);
  return 0;
}
.
gcc -w a.c -o a -lutil -lrt -pthread
./a
)sh"});
}
