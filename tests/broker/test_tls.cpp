// Real clients and servers of TLS through the proxy: what it reads of a handshake is what they write.
#include "tests/broker/place.hpp"
#include "tests/support/catch.hpp"

using namespace h5i;
using namespace h5i::test;

namespace {

struct Said {
  int status = -1;
  std::string out;
};
Said shell(const std::string& command) {
  Said s;
  FILE* p = popen((command + " 2>&1").c_str(), "r");
  if (!p) return s;
  char buffer[4096];
  for (size_t n; (n = fread(buffer, 1, sizeof buffer, p)) > 0;) s.out.append(buffer, n);
  s.status = pclose(p);
  return s;
}
// openssl's own server, until the end of the scope.
class Server {
 public:
  Server(const std::string& dir, const std::string& address, const std::vector<std::string>& more) {
    pid_ = fork();
    if (pid_ == 0) {
      int null = open("/dev/null", O_RDWR);
      for (int i : {0, 1, 2}) dup2(null, i);
      std::vector<std::string> words{"openssl", "s_server", "-accept", address + ":443", "-key", dir + "/key", "-cert", dir + "/cert", "-www", "-quiet"};
      words.insert(words.end(), more.begin(), more.end());
      std::vector<char*> argv;
      for (std::string& w : words) argv.push_back(w.data());
      argv.push_back(nullptr);
      execvp("openssl", argv.data());
      _exit(127);
    }
    for (int i = 0; i < 500 && !dial_to(address, 443); i++) usleep(10'000);
  }
  ~Server() {
    kill(pid_, SIGKILL);
    waitpid(pid_, nullptr, 0);
  }

 private:
  pid_t pid_;
};

}  // namespace

KERNEL_TEST("openssl's client reaches its server through the proxy in every version, and by no other name", "[broker][tls]") {
  KREQUIRE(enter_place());
  if (shell("openssl version").status != 0) {
    printf("SKIP: broker-openssl: a machine without the openssl program\n");
    fflush(stdout);
    return;
  }
  KREQUIRE(shell("cd " + k.dir() + " && openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -keyout key -out cert -subj /CN=a.example -days 2").status == 0);
  auto client = [&](const std::string& name, const std::string& more) {
    return shell("printf 'GET / HTTP/1.0\\r\\n\\r\\n' | timeout 20 openssl s_client -proxy 127.0.0.1:3128 -connect a.example:443 -ign_eof " + (name.empty() ? "-noservername" : "-servername " + name) + " " + more);
  };
  struct {
    std::vector<std::string> server;
    const char *client, *version;
  } kinds[] = {{{}, "-tls1_3", "TLSv1.3"},
               {{}, "-tls1_2", "TLSv1.2"},
               // A server without the group that the client offers a key of: it asks for a second hello.
               {{"-groups", "P-384"}, "-tls1_3 -groups X25519:P-384", "TLSv1.3"}};
  for (const auto& kind : kinds) {
    Server server(k.dir(), kPublicA, kind.server);
    Proxy p({"a.example", "b.example"}, {{"a.example", {kPublicA}}, {"b.example", {kPublicA}}});
    KREQUIRE(p.up());
    Said good = client("a.example", kind.client);
    KCHECK_SAYS(has(good.out, std::string("New, ") + kind.version) && has(good.out, "HTTP/1.0 200 ok"), good.out.substr(0, 2000));
    Said other = client("b.example", kind.client);
    KCHECK_SAYS(has(other.out, "alert access denied") && !has(other.out, "200 ok"), other.out.substr(0, 2000));
    Said none = client("", kind.client);
    KCHECK_SAYS(has(none.out, "alert access denied") && !has(none.out, "200 ok"), none.out.substr(0, 2000));
    Json r = p.report();
    KCHECK(allowed(r, "a.example:443") == 1 && refused(r, "a.example:443", "server-name") == 1 && refused(r, "a.example:443", "no-server-name") == 1);
  }
  // Control: the server itself serves any name.
  Server server(k.dir(), kPublicA, {});
  Said direct = shell(std::string("printf 'GET / HTTP/1.0\\r\\n\\r\\n' | timeout 20 openssl s_client -connect ") + kPublicA + ":443 -ign_eof -servername b.example");
  KCHECK_SAYS(has(direct.out, "200 ok"), direct.out.substr(0, 2000));
}
