// Interpreters, with what their programs are made of: processes, threads, sockets, packages without a network.
#include "tests/corpus/corpus.hpp"

using namespace h5i::test;

TEST_CASE("python3: processes, threads, events, TLS, a database, memory that is shared") {
  same_result({"python3", {"python3"}, R"sh(
cat > a.py <<'.'
import asyncio, mmap, os, signal, socket, sqlite3, ssl, subprocess, tempfile, threading
print(subprocess.run(["cat"], input=b"x", stdout=subprocess.PIPE).stdout, subprocess.getstatusoutput("exit 3"))
total = []
threads = [threading.Thread(target=total.append, args=(i,)) for i in range(50)]
[t.start() for t in threads]; [t.join() for t in threads]
print(sum(total))
async def main():
    async def answer(r, w):
        w.write((await r.readline()).upper()); await w.drain(); w.close()
    server = await asyncio.start_server(answer, "127.0.0.1", 0)
    r, w = await asyncio.open_connection(*server.sockets[0].getsockname())
    w.write(b"over loopback\n"); print(await r.readline()); w.close()
    child = await asyncio.create_subprocess_exec("sh", "-c", "echo said; exit 4", stdout=asyncio.subprocess.PIPE)
    print((await child.communicate())[0], child.returncode)
asyncio.run(main())
print(ssl.create_default_context().verify_mode, len(ssl.RAND_bytes(4)))
db = sqlite3.connect("d.sqlite"); db.execute("create table t(x)"); db.execute("insert into t values (1)"); db.commit()
print(db.execute("select count(*) from t").fetchall())
with tempfile.TemporaryFile() as f: f.write(b"abc"); f.flush(); print(mmap.mmap(f.fileno(), 3)[:])
signal.signal(signal.SIGALRM, lambda *a: print("alarm")); signal.setitimer(signal.ITIMER_REAL, 0.01); signal.pause()
print(socket.gethostbyname("localhost"), os.cpu_count() == len(os.sched_getaffinity(0)), os.path.expanduser("~") == os.environ["HOME"])
.
python3 a.py
python3 -c 'raise SystemExit(9)' || echo $?
)sh"});
}

TEST_CASE("python3: multiprocessing, by fork and by spawn") {
  same_result({"python3", {"python3"}, R"sh(
cat > m.py <<'.'
import multiprocessing as mp, os, sys
from multiprocessing import shared_memory
def work(q, lock, value, name):
    with lock: value.value += 1
    block = shared_memory.SharedMemory(name=name, track=False) if sys.version_info >= (3, 13) else shared_memory.SharedMemory(name=name)
    q.put(bytes(block.buf[:2])); block.close()
def square(x): return x * x
if __name__ == "__main__":
    for way in ["fork", "spawn"]:
        c = mp.get_context(way)
        with c.Pool(3) as p: print(way, p.map(square, range(6)))
        q, lock, value = c.Queue(), c.Lock(), c.Value("i", 0)
        block = shared_memory.SharedMemory(create=True, size=100); block.buf[:2] = b"ok"
        ps = [c.Process(target=work, args=(q, lock, value, block.name)) for _ in range(3)]
        [p.start() for p in ps]; print([q.get() for _ in ps]); [p.join() for p in ps]
        print(value.value, [p.exitcode for p in ps]); block.close(); block.unlink()
    from concurrent.futures import ProcessPoolExecutor
    with ProcessPoolExecutor(2) as e: print(list(e.map(square, [7, 8])))
.
python3 m.py
)sh"});
}

// Its server listens on a unix socket, so the profile has to grant those.
TEST_CASE("python3: multiprocessing by a server of forks, where the profile grants unix sockets") {
  same_result({"python3", {"python3"}, R"sh(
cat > m.py <<'.'
import multiprocessing as mp
def square(x): return x * x
if __name__ == "__main__":
    with mp.get_context("forkserver").Pool(2) as p: print(p.map(square, range(6)))
    with mp.Manager() as m: d = m.dict(a=1); d["b"] = 2; print(dict(d))
.
python3 m.py
)sh",
               [](TierBox& box) { box.profile()["net"]["unix"] = true; }});
}

TEST_CASE("python3: a virtual environment with pip, and a wheel from a file") {
  same_result({"python3", {"python3"}, R"sh(
python3 -m venv v
v/bin/pip --version | sed 's/ from .* (/ (/'
cat > wheel.py <<'.'
import zipfile
with zipfile.ZipFile("thing-1.0-py3-none-any.whl", "w") as z:
    z.writestr("thing.py", "def main(): print('thing says so')\n")
    z.writestr("thing-1.0.dist-info/METADATA", "Metadata-Version: 2.1\nName: thing\nVersion: 1.0\n")
    z.writestr("thing-1.0.dist-info/WHEEL", "Wheel-Version: 1.0\nGenerator: x\nRoot-Is-Purelib: true\nTag: py3-none-any\n")
    z.writestr("thing-1.0.dist-info/entry_points.txt", "[console_scripts]\nthing = thing:main\n")
    z.writestr("thing-1.0.dist-info/RECORD", "thing.py,,\nthing-1.0.dist-info/METADATA,,\nthing-1.0.dist-info/WHEEL,,\nthing-1.0.dist-info/entry_points.txt,,\nthing-1.0.dist-info/RECORD,,\n")
.
v/bin/python wheel.py
v/bin/pip install -q --no-index ./thing-1.0-py3-none-any.whl
v/bin/thing
v/bin/python -c 'import sys; print(sys.prefix != sys.base_prefix)'
python3 -c 'import thing' 2> err || grep -c ModuleNotFound err
)sh"});
}

TEST_CASE("node: workers, children, a server and a client, watches, streams, workers of the loop") {
  same_result({"node", {"node"}, R"sh(
cat > a.js <<'.'
const fs = require("fs"), cp = require("child_process"), http = require("http"), zlib = require("zlib"), crypto = require("crypto"),
      dns = require("dns").promises, { Worker, isMainThread, parentPort } = require("worker_threads"), { pipeline } = require("stream/promises");
if (!isMainThread) { parentPort.on("message", x => { parentPort.postMessage(x * 2); parentPort.close(); }); return; }
if (process.send) { process.on("message", m => { process.send(m + 1); process.disconnect(); }); return; }
(async () => {
  console.log(cp.execSync("echo child").toString().trim(), cp.spawnSync("sh", ["-c", "exit 6"]).status);
  console.log("worker", await new Promise(done => { const w = new Worker(__filename); w.on("message", done); w.postMessage(21); }));
  console.log("fork", await new Promise(done => { const f = cp.fork(__filename); f.on("message", done); f.send(1); }));
  const server = http.createServer((q, r) => r.end("page " + q.url)).listen(0, "127.0.0.1");
  await new Promise(done => server.on("listening", done));
  console.log(await new Promise(done => http.get({ port: server.address().port, host: "127.0.0.1", path: "/x" }, r => { let t = ""; r.on("data", d => t += d); r.on("end", () => done(t)); })));
  server.close();
  fs.writeFileSync("plain", "z".repeat(100000));
  await pipeline(fs.createReadStream("plain"), zlib.createGzip(), fs.createWriteStream("packed"));
  console.log(zlib.gunzipSync(fs.readFileSync("packed")).length, crypto.pbkdf2Sync("a", "b", 1000, 16, "sha256").toString("hex"));
  console.log((await dns.lookup("localhost", { family: 4 })).address, require("os").networkInterfaces().lo.length > 0);
  const seen = new Promise(done => { const w = fs.watch(".", (kind, name) => { if (name === "made") { w.close(); done(name); } }); });
  fs.writeFileSync("made", ""); console.log("watched", await seen);
  process.exit(8);
})();
.
node a.js || echo $?
echo 'export const x = 5;' > m.mjs
node --input-type=module -e 'import { x } from "./m.mjs"; console.log(x)'
)sh"});
}

TEST_CASE("npm without a network: a folder, a tarball, a clean install, scripts") {
  same_result({"npm", {"npm", "node"}, R"sh(
export npm_config_offline=true npm_config_update_notifier=false npm_config_audit=false npm_config_fund=false npm_config_loglevel=silent
mkdir dep tool app
cat > dep/package.json <<'.'
{"name": "dep", "version": "1.0.0", "main": "i.js"}
.
echo 'module.exports = "dep";' > dep/i.js
cat > tool/package.json <<'.'
{"name": "tool", "version": "2.0.0", "bin": {"tool": "t.js"}}
.
cat > tool/t.js <<'.'
#!/usr/bin/env node
console.log("tool", require("dep"), require("fs").readdirSync(".").length);
.
cat > app/package.json <<'.'
{"name": "app", "version": "1.0.0", "scripts": {"test": "tool && echo tested", "postinstall": "echo post > post"}}
.
(cd tool && npm pack --silent)
cd app
npm install ../dep ../tool/tool-2.0.0.tgz
ls node_modules
npm test --silent
rm -rf node_modules
npm ci
cat post
node_modules/.bin/tool
npm install --loglevel error no-such-package-anywhere 2> log || grep -c ENOTCACHED log
)sh"});
}

TEST_CASE("perl: fork, pipes, signals, sockets, temporary files") {
  same_result({"perl", {"perl"}, R"sh(
cat > a.pl <<'.'
use strict; use warnings; use POSIX ":sys_wait_h"; use File::Temp "tempfile"; use IO::Socket::INET; use IPC::Open3; use Fcntl ":flock";
$| = 1;
my $p = fork; if (!$p) { exit 3 } waitpid $p, 0; print $? >> 8, "\n";
my $k = fork; if (!$k) { sleep 60 } kill "TERM", $k; waitpid $k, 0; print WTERMSIG($?), "\n";
my ($in, $out); my $c = open3($in, $out, undef, "tr a-z A-Z"); print $in "text\n"; close $in; print scalar <$out>; waitpid $c, 0;
my ($fh, $name) = tempfile(DIR => "."); print $fh "x"; close $fh; print -s $name, "\n";
my $s = IO::Socket::INET->new(Listen => 1, LocalAddr => "127.0.0.1") or die; my $port = $s->sockport;
my $q = fork; if (!$q) { my $d = IO::Socket::INET->new(PeerAddr => "127.0.0.1", PeerPort => $port) or die; print $d "hello\n"; exit 0 }
print scalar readline($s->accept); waitpid $q, 0;
open my $l, ">", "lock" or die; print flock($l, LOCK_EX | LOCK_NB) ? "locked\n" : "not\n";
local $SIG{ALRM} = sub { print "alarm\n" }; alarm 1; POSIX::pause();
print join(",", map { sprintf "%s", $_ } sort { $a <=> $b } map { $_ ** 2 } 1 .. 5), "\n";
.
perl a.pl
printf 'a b\nc d\n' | perl -lane 'print $F[1]'
perl -e 'exit 11' || echo $?
)sh"});
}
