#include <cstdio>

#include "tests/tiers/box.hpp"

using namespace h5i;
using namespace h5i::test;

namespace {

struct Tool {
  const char* id;
  const char* program;  // what must be installed
  const char* script;   // run in $WORK; exits 0 when the tool did its work
};

const Tool kTools[] = {
    {"gcc", "gcc",
     "printf '#include <stdio.h>\\nint main(){puts(\"c\");}' > a.c && gcc -O1 a.c -o a && test \"$(./a)\" = c"},
    {"g++", "g++",
     "printf '#include <iostream>\\n#include <thread>\\nint main(){std::thread t([]{std::cout<<1;});t.join();}' > "
     "b.cpp && "
     "g++ -pthread b.cpp -o b && test \"$(./b)\" = 1"},
    {"make", "make", "printf 'all: x y\\nx y:\\n\\techo $@ > $@\\n' > Makefile && make -j4 && test -s x && test -s y"},
    {"cmake", "cmake",
     "mkdir -p cm && printf 'int main(){return 0;}' > cm/m.c && printf 'cmake_minimum_required(VERSION "
     "3.10)\\nproject(p C)\\n"
     "add_executable(p m.c)\\n' > cm/CMakeLists.txt && cmake -S cm -B cm/b > /dev/null && cmake --build cm/b > "
     "/dev/null && cm/b/p"},
    {"python3", "python3",
     "python3 -c 'import subprocess, threading, multiprocessing, tempfile, sqlite3, ssl, asyncio\n"
     "t=threading.Thread(target=print); t.start(); t.join()\n"
     "assert subprocess.check_output([\"echo\",\"x\"])==b\"x\\n\"\n"
     "with multiprocessing.Pool(2) as p: assert p.map(abs,[-1,2])==[1,2]\n"
     "async def f(): await asyncio.sleep(0)\n"
     "asyncio.run(f()); tempfile.NamedTemporaryFile().write(b\"x\")\n"
     "sqlite3.connect(\"d.sqlite\").execute(\"create table t(x)\")'"},
    {"node", "node",
     "node -e 'const "
     "fs=require(\"fs\"),cp=require(\"child_process\"),w=require(\"worker_threads\"),assert=require(\"assert\");"
     "assert.equal(cp.execSync(\"echo x\").toString(),\"x\\n\");fs.writeFileSync(\"n\",\"1\");fs.watch(\".\").close();"
     "require(\"os\").networkInterfaces();require(\"http\").createServer().listen(0,\"127.0.0.1\",function(){this."
     "close()});"
     "new w.Worker(\"0\",{eval:true})'"},
    {"npm offline", "npm",
     "mkdir -p np/dep && echo '{\"name\":\"dep\",\"version\":\"1.0.0\"}' > np/dep/package.json && cd np && "
     "echo '{\"name\":\"np\",\"version\":\"1.0.0\",\"scripts\":{\"t\":\"node -e 1\"}}' > package.json && "
     "npm install --offline --no-audit --no-fund ./dep && test -e node_modules/dep && npm run t"},
    {"git", "git",
     "git init -q r && cd r && git config user.email a@example.com && git config user.name a && echo x > f && git add "
     "f && "
     "git commit -qm one && git checkout -q -b b && echo y >> f && git commit -qam two && git gc -q && git clone -q . "
     "../r2 && "
     "git -C ../r2 log --oneline | grep -c . | grep -q 2"},
    {"perl", "perl", "perl -MFile::Temp -MPOSIX -e 'my $p=fork; if(!$p){exit 3} waitpid $p,0; exit(($?>>8)==3?0:1)'"},
    {"java", "javac",
     "printf 'public class H{public static void main(String[] a)throws Exception{Thread t=new "
     "Thread(()->System.out.print(1));"
     "t.start();t.join();java.net.InetAddress.getLocalHost();}}' > H.java && javac H.java && test \"$(java -Xmx256m "
     "H)\" = 1"},
    {"rustc", "rustc",
     "printf 'fn main(){std::thread::spawn(||print!(\"1\")).join().unwrap();}' > m.rs && rustc m.rs -o m && test "
     "\"$(./m)\" = 1"},
    {"go", "go",
     "printf 'package main\\nfunc main(){c:=make(chan int);go func(){c<-1}();<-c}' > m.go && GOCACHE=$PWD/gc "
     "GOFLAGS=-mod=mod go run m.go"},
    {"tar", "tar",
     "mkdir -p td && echo x > td/f && ln -s f td/l && tar czf t.tgz td && rm -r td && tar xzf t.tgz && test \"$(cat "
     "td/l)\" = x"},
    {"curl against loopback", "curl",
     "python3 -c '\nimport http.server, threading, subprocess, sys\n"
     "s=http.server.HTTPServer((\"127.0.0.1\",0),http.server.SimpleHTTPRequestHandler)\n"
     "threading.Thread(target=s.serve_forever,daemon=True).start()\n"
     "sys.exit(subprocess.call([\"curl\",\"-sSf\",\"-o\",\"page\",\"http://localhost:%d/\" % s.server_port]))' && test "
     "-s page"},
    {"shell tools", "sed",
     "seq 9 | cat | sed s/1/2/ | sort -n | awk '{s+=$1} END {exit s!=46}' && find . -name none && mktemp > m && rm "
     "$(cat m) && "
     "mkfifo p && (echo x > p &) && cat p && id -un && date > /dev/null && ps > /dev/null && diff m m"},
};

bool installed(const char* program) {
  for (const char* dir : {"/usr/local/bin/", "/usr/bin/", "/bin/"})
    if (access((std::string(dir) + program).c_str(), X_OK) == 0) return true;
  return false;
}

}  // namespace

// One test a tool and an identity; the body of each runs in a child of its own.
TEST_CASE("ordinary tool chains work in a process box", "[corpus]") {
  for (const Tool& tool : kTools) {
    if (!installed(tool.program)) {
      printf("SKIP: corpus-%s: %s is not installed\n", tool.program, tool.program);
      continue;
    }
    std::string failures = run_as_each(
        [&](Checks& k) {
          TierBox box(k);
          Outcome o = box.shell(tool.script);
          if (o.ok()) return;
          mkdir((k.dir() + "/control").c_str(), 0700);
          Json plain = plain_plan(k);
          plain["cwd"] = k.dir() + "/control";
          plain["env"] = box.request["env"];
          set_command(plain, {"/bin/sh", "-c", tool.script});
          Outcome outside = run_once(plain);
          std::string denials;
          for (const auto& d : o.result.denials)
            denials += " " + std::to_string(d.syscall) + "x" + std::to_string(d.count);
          if (outside.ok())
            k.say(std::string(tool.id) + " fails in the box only: " + o.text() + " denials:" + denials);
          else
            k.say(std::string(tool.id) + " fails outside, too: " + outside.text());
        },
        120);
    INFO(tool.id << "\n" << failures);
    CHECK(failures.empty());
  }
}
