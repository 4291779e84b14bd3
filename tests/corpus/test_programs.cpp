// Programs that a script calls: archives, a database, a client and its server, the shell's own tools.
#include "tests/corpus/corpus.hpp"

using namespace h5i::test;

TEST_CASE("tar: every kind of entry out and in again") {
  same_result({"tar", {"tar", "gzip"}, R"sh(
mkdir -p t/d
echo x > t/f
ln -s f t/link
ln t/f t/hard
mkfifo t/pipe
chmod 640 t/f
chmod 751 t/d
truncate -s 1M t/sparse
printf end >> t/sparse
touch -d 2001-02-03T04:05:06Z t/f t/d/ t/sparse t/pipe
touch -h -d 2001-02-03T04:05:06Z t/link
touch -d 2001-02-03T04:05:06Z t/d t
tar --sort=name --owner=0 --group=0 --numeric-owner -cf a.tar t
sha256sum a.tar
tar -cSf s.tar t/sparse
stat -c %s a.tar s.tar
gzip -n a.tar
sha256sum a.tar.gz
mkdir out
tar -xpf a.tar.gz -C out
tar -xf s.tar -C out
(cd out/t && stat -c '%n %F %a %s %h %Y' d f hard pipe sparse && readlink link && sha256sum sparse && du -k sparse | cut -f1)
(cd out && tar -cf - t | tar -tf - | sort)
echo broken > b.tar
{ tar -xf b.tar 2> err || echo $?; }
)sh"});
}

TEST_CASE("sqlite3: a journal, a log with readers beside a writer, two writers, a dump") {
  same_result({"sqlite3", {"sqlite3"}, R"sh(
sqlite3 a.db "create table t(x integer primary key, y text); insert into t values (1, 'one'), (2, 'two'); select * from t;"
sqlite3 a.db "pragma journal_mode = wal; create table n(i); pragma mmap_size = 1048576;"
sqlite3 a.db ".timeout 20000" "begin; select count(*) from n;" ".shell sqlite3 a.db 'insert into n values (100)'" "select count(*) from n; commit; select count(*) from n;"
for w in 1 2 3; do
  (for i in $(seq 20); do sqlite3 -cmd '.timeout 20000' a.db "insert into n values ($w * 1000 + $i)"; done) &
done
wait
sqlite3 a.db "select count(*), sum(i) from n; pragma integrity_check;"
sqlite3 a.db .dump | sqlite3 b.db
sqlite3 b.db "select count(*) from n"
sqlite3 b.db "vacuum; pragma page_count;"
sqlite3 a.db "begin exclusive;" ".shell sqlite3 a.db 'insert into n values (0)' || echo locked" 2>&1
sqlite3 a.db "select wrong" 2> err || echo "refused $?"
)sh"});
}

// Each box has a network of its own with nothing but loopback on it.
TEST_CASE("curl against a server on loopback, by name and by address") {
  same_result({"curl", {"curl", "python3"}, R"sh(
cat > s.py <<'.'
import http.server, socket, subprocess, sys, threading
class Six(http.server.ThreadingHTTPServer): address_family = socket.AF_INET6
class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    def do_GET(self): self.answer(404 if self.path == "/none" else 200, b"got " + self.path.encode())
    def do_POST(self): self.answer(200, b"took %d" % len(self.rfile.read(int(self.headers["Content-Length"]))))
    def answer(self, status, body):
        self.send_response(status); self.send_header("Content-Length", str(len(body))); self.end_headers(); self.wfile.write(body)
    def log_message(self, *a): pass
http.server.ThreadingHTTPServer.handle_error = lambda *a: None  # a client that hangs up is none
def serve(s): threading.Thread(target=s.serve_forever, daemon=True).start(); return s.server_port
four = serve(http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler))
curl = ["curl", "-sS", "--noproxy", "*", "-w", " %{http_code}\n"]
def say(*words): sys.stdout.flush(); print(subprocess.call(curl + list(words)), flush=True)
say("http://127.0.0.1:%d/a" % four, "http://127.0.0.1:%d/b" % four)
say("http://localhost:%d/name" % four)
say("--data-binary", "z" * 100000, "http://127.0.0.1:%d/" % four)
say("-f", "http://127.0.0.1:%d/none" % four)
say("--no-progress-meter", "--parallel", *["http://127.0.0.1:%d/p" % four, "-o", "part"] * 6)
if socket.has_dualstack_ipv6(): say("-g", "http://[::1]:%d/six" % serve(Six(("::1", 0), Handler)))
.
python3 s.py 2>&1
curl -sS file://$PWD/s.py | wc -l
)sh"});
}

TEST_CASE("the shell's own tools: pipes, jobs, traps, here-documents, files of every kind") {
  same_result({"bash", {"bash", "awk", "sed", "find", "xargs", "diff", "ps"}, R"sh(
seq 9 | cat | sed s/1/2/ | sort -rn | awk '{s += $1} END {print s}'
mkfifo p
(echo through > p &)
cat p
sleep 60 & kill $!
{ wait $! || echo $?; }
(trap 'echo trapped' TERM; kill -TERM $(sh -c 'echo $PPID'); echo on)
mkdir -p a/b
touch a/b/1 a/b/2
find a -type f -print0 | sort -z | xargs -0 -n1 -P2 basename | sort
echo one > x
cp x y
diff x y
echo two >> y
{ diff x y || echo $?; }
bash -c 'shopt -s lastpipe; coproc cat; echo co >&${COPROC[1]}; read -r l <&${COPROC[0]}; echo $l; diff <(echo 1) <(echo 2); exec 3<>/dev/null; echo ${BASH_VERSINFO[0]} $(ulimit -c)'  || echo $?
timeout 0.1 sleep 60 || echo $?
nice -n 5 nice
env -i A=1 /usr/bin/env
ps -o comm= -p $$
chmod 600 x
stat -c %a x
install -m 755 x z
stat -c %a z
ln z zz
stat -c %h z
touch -d @1000000000 z
date -u -r z +%F
dd if=/dev/zero of=big bs=64K count=20 status=none
split -b 512K big part.
cat part.* | cmp - big
ls part.* | wc -l
printf 'b\na\n' | sort -o sorted
cat sorted | tee copy | wc -l
comm -3 sorted copy
paste -d, sorted copy
tac sorted | rev
mktemp -d > /dev/null
head -c 4 /dev/urandom | wc -c
yes | head -2
test -t 0 || echo no terminal
)sh"});
}
