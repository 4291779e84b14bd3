// From source to a program that runs: what a build does all day.
#include "tests/corpus/corpus.hpp"

using namespace h5i::test;

namespace {

// Object files are compared by their bytes; nothing in them depends on the directory.
const char* const kC = R"sh(
cat > lib.c <<'.'
int twice(int x) { return 2 * x; }
.
cat > main.c <<'.'
#include <stdio.h>
int twice(int);
int main(int argc, char** argv) { printf("%d %s\n", twice(argc), argv[1]); return 3; }
.
)sh";

const char* const kCxx = R"sh(
cat > main.cpp <<'.'
#include <filesystem>
#include <iostream>
#include <numeric>
#include <stdexcept>
#include <thread>
#include <vector>
int main() {
  std::vector<long> parts(8);
  std::vector<std::thread> threads;
  for (size_t i = 0; i < parts.size(); i++) threads.emplace_back([&, i] { parts[i] = static_cast<long>(i * i); });
  for (auto& t : threads) t.join();
  std::filesystem::create_directory("made");
  try { throw std::runtime_error("caught"); } catch (const std::exception& e) { std::cout << e.what() << ' '; }
  std::cout << std::accumulate(parts.begin(), parts.end(), 0L) << std::filesystem::is_directory("made") << std::endl;
}
.
)sh";

}  // namespace

TEST_CASE("gcc: objects, archives, shared objects, link-time optimisation, and a warning") {
  same_result({"gcc", {"gcc"}, std::string(kC) + R"sh(
gcc -O2 -Wall -c main.c lib.c
sha256sum main.o lib.o
ar rcs libtwice.a lib.o
gcc main.o -L. -ltwice -o static
./static a || echo $?
gcc -shared -fPIC lib.c -o libtwice.so
gcc main.c -L. -ltwice -Wl,-rpath,. -o shared
ldd shared | grep -c libtwice
./shared b || echo $?
gcc -O2 -flto=2 -g main.c lib.c -o lto
./lto c || echo $?
echo 'int f(void) { int x; }' | gcc -Wall -x c -c - -o warned.o 2>&1 | grep -c unused
echo 'int broken' | gcc -x c -c - -o broken.o || echo "refused $?"
)sh"});
}

TEST_CASE("g++: the standard library with threads, exceptions and files") {
  same_result({"g++", {"g++"}, std::string(kCxx) + R"sh(
g++ -std=c++17 -O1 -pthread -c main.cpp
sha256sum main.o
g++ -pthread main.o -o program
./program
)sh"});
}

TEST_CASE("clang and clang++") {
  same_result({"clang", {"clang", "clang++"}, std::string(kC) + kCxx + R"sh(
clang -O2 -Wall -c main.c lib.c
sha256sum main.o lib.o
clang main.o lib.o -o program
./program x || echo $?
clang++ -std=c++17 -pthread main.cpp -o threads
./threads
echo 'int broken' | clang -x c -c - -o broken.o || echo "refused $?"
)sh"});
}

// Their shadow memory is reserved at the start, and where no cgroup counts memory all that is reserved counts (docs/limits.md).
TEST_CASE("sanitizers: undefined behaviour as it is, addresses and threads where the profile's memory has room for their shadow") {
  auto grant = [](TierBox& box) { box.profile()["resources"]["mem"] = 64ull << 40; };
  std::string script = R"sh(
cat > s.c <<'.'
#include <pthread.h>
#include <stdlib.h>
static int shared;
static void* add(void* x) { shared++; return x; }
int main(int argc, char** argv) {
  char* volatile p = malloc(8);
  pthread_t a, b;
  switch (argc > 1 ? argv[1][0] : 0) {
    case 'a': p[argc + 6] = 1; break;
    case 'u': shared = 1 << 30; shared *= argc + argc; break;
    case 't': pthread_create(&a, NULL, add, NULL); pthread_create(&b, NULL, add, NULL); pthread_join(a, NULL); pthread_join(b, NULL); break;
    default: p[7] = 1;
  }
  free(p);
  return 0;
}
.
try() {
  "$@" 2> err || echo "status $?"
  grep -E '^SUMMARY|runtime error' err > said || echo 'no complaint'
  sed -E 's/^(SUMMARY: [A-Za-z]+: (data race|[a-z-]+)).*/\1/; s/.*(runtime error: [a-z ]+).*/\1/' said
}
)sh";
  std::string undefined = script + "gcc -w -fsanitize=undefined s.c -o s\ntry ./s\ntry ./s u\n";
  same_result({"undefined", {"gcc"}, undefined});
  same_result({"sanitizers", {"gcc", "clang"}, script + R"sh(
export ASAN_OPTIONS=detect_leaks=0
for cc in gcc clang; do
  $cc -w -g -fsanitize=address s.c -o s
  try ./s
  try ./s a
  $cc -w -g -fsanitize=thread s.c -o s
  try ./s
  try ./s t
done
)sh",
               grant});
}

TEST_CASE("make -j: many jobs, a makefile below another, a failure that stops the rest") {
  same_result({"make", {"make", "gcc"}, R"sh(
mkdir below
for i in $(seq 24); do echo "int f$i(void) { return $i; }" > f$i.c; done
cat > Makefile <<'.'
OBJECTS := $(patsubst %.c,%.o,$(wildcard f*.c))
all: libf.a
	+$(MAKE) -C below
libf.a: $(OBJECTS)
	$(AR) rcsD $@ $(sort $^)
%.o: %.c
	$(CC) -c $< -o $@
.
printf 'all: a b\na b:\n\t@echo made > $@\n' > below/Makefile
make -s -j8
sha256sum libf.a below/a below/b
make -q
echo up to date
touch f7.c
make -j8 | grep -c -- -c
printf 'all: bad good\nbad:\n\t@exit 3\ngood:\n\t@touch good\n' > Failing
make -s -k -j4 -f Failing 2> err || echo "status $?"
grep -c 'Error 3' err
ls good
)sh"});
}

TEST_CASE("cmake and ctest") {
  same_result({"cmake", {"cmake", "ctest", "make", "g++"}, std::string(kC) + R"sh(
cat > CMakeLists.txt <<'.'
cmake_minimum_required(VERSION 3.10)
project(p C CXX)
find_package(Threads REQUIRED)
add_library(twice SHARED lib.c)
add_executable(program main.c)
target_link_libraries(program twice Threads::Threads)
enable_testing()
add_test(NAME fails COMMAND program x)
add_test(NAME says COMMAND program x)
set_tests_properties(says PROPERTIES PASS_REGULAR_EXPRESSION "^4 x")
add_test(NAME waits COMMAND sleep 60)
set_tests_properties(waits PROPERTIES TIMEOUT 1)
.
cmake -S . -B build -DCMAKE_BUILD_TYPE=Release -DCMAKE_INSTALL_PREFIX=$PWD/installed > log || { cat log; exit 1; }
grep -E 'C(XX)? compiler identification|Found Threads' log
cmake --build build -j4 > log || { cat log; exit 1; }
grep Built log | sort
(cd build && ctest -j3 > ../log 2>&1) || echo "ctest $?"
grep -oE 'tests passed, .*|[a-z]+ \((Failed|Timeout)\)' log
echo 'install(TARGETS program)' >> CMakeLists.txt
cmake --build build > log
cmake --install build > log
ls installed/bin
)sh"});
}

TEST_CASE("rustc: threads, a child, a panic, an error") {
  same_result({"rustc", {"rustc"}, R"sh(
cat > main.rs <<'.'
use std::{net, process, sync::mpsc, thread};
fn main() {
    let (tx, rx) = mpsc::channel();
    for i in 0..8 { let tx = tx.clone(); thread::spawn(move || tx.send(i * i).unwrap()); }
    drop(tx);
    println!("{}", rx.iter().sum::<i32>());
    let said = process::Command::new("echo").arg("child").output().unwrap();
    print!("{}", String::from_utf8(said.stdout).unwrap());
    net::TcpListener::bind("127.0.0.1:0").unwrap();
    thread::spawn(|| panic!("on purpose")).join().unwrap_err();
    process::exit(7);
}
.
rustc main.rs
{ ./main 2> err || echo $?; }
grep -c 'on purpose' err
echo 'fn main() { let x: u8 = "text"; }' > bad.rs
{ rustc bad.rs 2> err || echo $?; }
grep -c E0308 err
)sh"});
}

TEST_CASE("cargo without a network: a workspace of two crates and their tests") {
  same_result({"cargo", {"cargo", "rustc"}, R"sh(
mkdir -p one/src two/src two/tests
printf '[workspace]\nmembers = ["one", "two"]\n' > Cargo.toml
printf '[package]\nname = "one"\nversion = "0.1.0"\nedition = "2021"\n' > one/Cargo.toml
printf '[package]\nname = "two"\nversion = "0.1.0"\nedition = "2021"\nbuild = "build.rs"\n[dependencies]\none = { path = "../one" }\n' > two/Cargo.toml
printf 'pub fn twice(x: i32) -> i32 { 2 * x }\n#[test]\nfn doubles() { assert_eq!(twice(2), 4); }\n' > one/src/lib.rs
printf 'fn main() { println!("cargo:rustc-env=BUILT=by-script"); }\n' > two/build.rs
printf 'fn main() { println!("{} {}", one::twice(21), env!("BUILT")); }\n' > two/src/main.rs
printf '#[test]\nfn whole() { assert_eq!(one::twice(3), 6); }\n#[test]\n#[ignore]\nfn slow() {}\n' > two/tests/whole.rs
cargo run --offline -q
cargo test --offline -q 2>&1 | sed 's/; finished in.*//' | grep 'test result' | sort
cargo build --offline --message-format short 2>&1 | grep -c Finished
grep -c '^name' Cargo.lock
cargo clean
ls
)sh"});
}

TEST_CASE("javac and java: threads, a process, mapped files, a jar, source without javac") {
  same_result({"java", {"javac", "java", "jar"}, R"sh(
mkdir -p src/p out
cat > src/p/Main.java <<'.'
package p;
import java.nio.*;
import java.nio.channels.*;
import java.nio.file.*;
import java.util.concurrent.*;
import java.util.stream.*;
public class Main {
  public static void main(String[] args) throws Exception {
    ExecutorService pool = Executors.newFixedThreadPool(16);
    long sum = 0;
    for (Future<Integer> f : pool.invokeAll(IntStream.range(0, 64).mapToObj(i -> (Callable<Integer>) () -> i * i).collect(Collectors.toList()))) sum += f.get();
    pool.shutdown();
    System.out.println(sum + " " + IntStream.range(0, 1000).parallel().sum());
    System.out.print(new String(new ProcessBuilder("echo", "child").start().getInputStream().readAllBytes()));
    try (FileChannel c = FileChannel.open(Path.of("mapped"), StandardOpenOption.CREATE, StandardOpenOption.READ, StandardOpenOption.WRITE)) {
      c.map(FileChannel.MapMode.READ_WRITE, 0, 4096).put((byte) 7);
      System.out.println(c.lock().isValid());
    }
    System.out.println(Files.readAllBytes(Path.of("mapped"))[0]);
    try (java.net.ServerSocket s = new java.net.ServerSocket(0, 1, java.net.InetAddress.getLoopbackAddress());
         java.net.Socket c = new java.net.Socket(s.getInetAddress(), s.getLocalPort())) { System.out.println(c.isConnected()); }
    System.exit(5);
  }
}
.
javac -d out src/p/Main.java
jar -c -f p.jar -e p.Main -C out .
{ java -Xmx256m -jar p.jar || echo $?; }
echo 'class One { public static void main(String[] a) { System.out.println("one " + a[0]); } }' > One.java
java -Xmx256m One.java x
)sh"});
}
