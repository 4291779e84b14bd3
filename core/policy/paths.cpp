#include "core/policy/paths.hpp"

namespace h5i::policy {
namespace {

constexpr size_t kMaxPath = 4095;       // PATH_MAX without its NUL
constexpr size_t kMaxComponent = 255;   // NAME_MAX

Error refused(std::string_view written, std::string why) {
  return make_error(Errc::POLICY_PATH, "path `" + std::string(written.substr(0, 200)) + "` is not accepted", std::move(why));
}

// Appends the components of `rest` to `out`. An empty string when in order.
std::string append(std::string& out, std::string_view rest) {
  while (!rest.empty()) {
    size_t end = rest.find('/');
    std::string_view part = rest.substr(0, end);
    rest = end == std::string_view::npos ? "" : rest.substr(end + 1);
    if (part.empty() || part == ".") continue;
    if (part == "..") return "`..` is not followed in a profile; write the path that is meant";
    if (part.size() > kMaxComponent) return "a component has more than 255 bytes";
    out += '/';
    out += part;
  }
  return out.size() > kMaxPath ? "it is longer than 4095 bytes" : "";
}

std::string fault_of_bytes(std::string_view s) {
  if (s.empty()) return "it is empty";
  for (char c : s) {
    auto u = static_cast<unsigned char>(c);
    if (u < 0x20 || u == 0x7f) return "it holds a control character";
    if (c == '*' || c == '?' || c == '[')
      return std::string("`") + c + "` would look like a pattern, and a profile has none: name the directory";
  }
  return {};
}

}  // namespace

const std::vector<std::string_view> kCredentialPaths = {
    // keys and stores of passwords
    ".ssh", ".gnupg", ".password-store", ".vault-token", ".config/op", ".config/sops", ".local/share/keyrings", ".local/share/kwalletd",
    // clouds and clusters
    ".aws", ".azure", ".oci", ".boto", ".s3cfg", ".kube", ".fly", ".config/gcloud", ".config/rclone", ".config/doctl", ".config/hcloud",
    ".terraformrc", ".terraform.d/credentials.tfrc.json",
    // images, packages and code
    ".docker", ".dockercfg", ".config/containers/auth.json", ".config/helm/registry", ".npmrc", ".yarnrc.yml", ".pypirc", ".pip/pip.conf",
    ".config/pip", ".config/pypoetry/auth.toml", ".cargo/credentials", ".cargo/credentials.toml", ".gem/credentials", ".bundle/config",
    ".m2/settings.xml", ".m2/settings-security.xml", ".gradle/gradle.properties", ".nuget/NuGet/NuGet.Config", ".config/composer/auth.json",
    ".composer/auth.json", ".netrc", ".git-credentials", ".config/git/credentials", ".config/gh", ".config/hub", ".config/glab-cli",
    ".subversion/auth",
    // databases and services
    ".pgpass", ".my.cnf", ".mylogin.cnf", ".databrickscfg", ".kaggle", ".huggingface/token", ".msmtprc", ".fetchmailrc", ".smbcredentials",
    // agents, and h5i itself
    ".claude/.credentials.json", ".codex/auth.json", ".gemini/oauth_creds.json", ".config/github-copilot", ".config/h5i",
    ".local/state/h5i",
    // browsers and mail
    ".mozilla", ".thunderbird", ".config/google-chrome", ".config/chromium", ".config/BraveSoftware", ".config/microsoft-edge"};

Result<std::string> expand_path(std::string_view written, const PathRoots& roots) {
  std::string fault = fault_of_bytes(written);
  if (!fault.empty()) return refused(written, fault);
  std::string out;
  std::string_view rest;
  auto after = [&](std::string_view word) {
    return written.substr(0, word.size()) == word && (written.size() == word.size() || written[word.size()] == '/');
  };
  if (after("$WORK")) {
    out = "$WORK";
    rest = written.substr(5);
  } else if (after("$REPO")) {
    if (roots.repo.empty()) return refused(written, "$REPO is not set: there is no repository here");
    out = roots.repo;
    rest = written.substr(5);
  } else if (after("~")) {
    if (roots.home.empty()) return refused(written, "HOME is not set, so `~` means nothing");
    out = roots.home;
    rest = written.substr(1);
  } else if (written[0] == '/') {
    rest = written;
  } else if (written[0] == '~') {
    return refused(written, "`~` means your own home directory; another user's is written in full");
  } else if (written[0] == '$') {
    return refused(written, "the variables of a profile are $WORK and $REPO");
  } else {
    return refused(written, "a path is absolute or begins with $WORK, $REPO or ~; for a file of the work tree write $WORK/" +
                                std::string(written));
  }
  if (out.size() > 1 && out.back() == '/') out.pop_back();
  fault = append(out, rest);
  if (!fault.empty()) return refused(written, fault);
  if (out.empty()) out = "/";
  return out;
}

Result<std::string> private_path(std::string_view written) {
  std::string fault = fault_of_bytes(written);
  if (!fault.empty()) return refused(written, fault);
  if (written[0] == '/' || written[0] == '~' || written[0] == '$')
    return refused(written, "a private path is relative to $WORK");
  if (written.find(',') != std::string_view::npos) return refused(written, "a private path holds no comma");
  std::string out;
  fault = append(out, written);
  if (!fault.empty()) return refused(written, fault);
  if (out.empty()) return refused(written, "it names the work tree itself");
  out.erase(0, 1);
  if (beneath("/" + out, "/.git")) return refused(written, "the box's git directory is not private storage");
  return out;
}

bool beneath(std::string_view path, std::string_view parent) {
  if (parent == "/") return !path.empty() && path[0] == '/';
  return path.substr(0, parent.size()) == parent && (path.size() == parent.size() || path[parent.size()] == '/');
}

bool box_has_its_own(std::string_view path) {
  static constexpr std::string_view kOwn[] = {"/proc", "/tmp", "/dev", "/dev/null", "/dev/zero", "/dev/full", "/dev/random",
                                              "/dev/urandom", "/dev/tty", "/dev/pts", "/dev/ptmx", "/dev/shm",
                                              "/dev/stdin", "/dev/stdout", "/dev/stderr", "/dev/fd"};
  for (std::string_view p : kOwn)
    if (path == p) return true;
  return false;
}

std::string never_granted(std::string_view path, const PathRoots& roots) {
  if (path == "/") return "a grant of the whole file system confines nothing; name directories, or use the workspace tier";
  if (beneath(path, "/sys")) return "/sys is the host's kernel; no profile grants it";
  if (beneath(path, "/proc")) return "the box has a /proc of its own; parts of the host's are not granted";
  if (beneath(path, "/dev")) return "the box has a /dev of its own; devices are not granted";
  constexpr const char* kOwn = "h5i's own configuration, keys, trust, results and boxes are not granted";
  if (!roots.home.empty())
    for (std::string_view own : {"/.config/h5i", "/.local/state/h5i", "/.cache/h5i"})
      if (beneath(path, roots.home + std::string(own))) return kOwn;
  if (!roots.repo.empty() && beneath(path, roots.repo + "/.git/h5i")) return kOwn;
  for (const std::string& own : roots.own)
    if (!own.empty() && beneath(path, own)) return kOwn;
  return {};
}

}  // namespace h5i::policy
