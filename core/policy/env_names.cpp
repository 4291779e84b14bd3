#include "core/policy/env_names.hpp"

#include <algorithm>
#include <array>

namespace h5i::policy {
namespace {

constexpr size_t kMaxName = 128;

struct Pattern {
  std::string_view text;  // a trailing '*' matches any rest
  std::string_view why;
};

constexpr std::string_view kLoader = "it makes the dynamic loader load other code";
constexpr std::string_view kShell = "it makes a shell run code at its start";
constexpr std::string_view kRuntime = "it makes a language runtime load code or options";
constexpr std::string_view kGit = "it makes git run programs or read other configuration";
constexpr std::string_view kLibc = "it makes the C library load modules or look names up elsewhere";
constexpr std::string_view kBuild = "it makes build tools run other programs";
constexpr std::string_view kDesktop = "it makes a library load plug-ins";
constexpr std::string_view kOwn = "it steers h5i itself";

constexpr Pattern kPatterns[] = {
    {"LD_*", kLoader}, {"DYLD_*", kLoader}, {"GLIBC_TUNABLES", kLoader}, {"LIBRARY_PATH", kLoader},
    {"GCC_EXEC_PREFIX", kLoader}, {"COMPILER_PATH", kLoader},
    {"BASH_ENV", kShell}, {"ENV", kShell}, {"BASH_FUNC_*", kShell}, {"SHELLOPTS", kShell}, {"BASHOPTS", kShell},
    {"PROMPT_COMMAND", kShell}, {"PS0", kShell}, {"PS1", kShell}, {"PS2", kShell}, {"PS4", kShell}, {"IFS", kShell},
    {"ZDOTDIR", kShell}, {"FPATH", kShell}, {"CDPATH", kShell}, {"GLOBIGNORE", kShell},
    {"LESSOPEN", kShell}, {"LESSCLOSE", kShell}, {"LESSKEY*", kShell},
    {"NODE_OPTIONS", kRuntime}, {"NODE_PATH", kRuntime}, {"NODE_REPL_*", kRuntime}, {"NODE_EXTRA_CA_CERTS", kRuntime},
    {"ELECTRON_RUN_AS_NODE", kRuntime}, {"DENO_*", kRuntime}, {"BUN_*", kRuntime},
    {"PYTHON*", kRuntime}, {"PERL5*", kRuntime}, {"PERLLIB", kRuntime}, {"PERL_*", kRuntime},
    {"RUBYOPT", kRuntime}, {"RUBYLIB", kRuntime}, {"GEM_HOME", kRuntime}, {"GEM_PATH", kRuntime}, {"BUNDLE_*", kRuntime},
    {"JAVA_TOOL_OPTIONS", kRuntime}, {"JDK_JAVA_OPTIONS", kRuntime}, {"_JAVA_OPTIONS", kRuntime}, {"JAVA_OPTS", kRuntime},
    {"CLASSPATH", kRuntime}, {"MAVEN_OPTS", kRuntime}, {"MAVEN_ARGS", kRuntime}, {"GRADLE_OPTS", kRuntime},
    {"DOTNET_*", kRuntime}, {"CORECLR_*", kRuntime}, {"COMPLUS_*", kRuntime}, {"COMPlus_*", kRuntime},
    {"PHPRC", kRuntime}, {"PHP_INI_SCAN_DIR", kRuntime}, {"LUA_INIT*", kRuntime}, {"LUA_PATH*", kRuntime},
    {"LUA_CPATH*", kRuntime}, {"R_PROFILE*", kRuntime}, {"R_ENVIRON*", kRuntime}, {"R_LIBS*", kRuntime},
    {"ERL_*", kRuntime}, {"ELIXIR_ERL_OPTIONS", kRuntime}, {"TCLLIBPATH", kRuntime}, {"GUILE_LOAD_*", kRuntime},
    {"EMACSLOADPATH", kRuntime}, {"VIMINIT", kRuntime}, {"GVIMINIT", kRuntime}, {"EXINIT", kRuntime},
    {"AWKPATH", kRuntime}, {"AWKLIBPATH", kRuntime}, {"GODEBUG", kRuntime},
    {"GIT_*", kGit}, {"SSH_ASKPASS*", kGit}, {"SUDO_ASKPASS", kGit}, {"HG*", kGit}, {"SVN_*", kGit},
    {"GCONV_PATH", kLibc}, {"LOCPATH", kLibc}, {"NLSPATH", kLibc}, {"NIS_PATH", kLibc}, {"HOSTALIASES", kLibc},
    {"LOCALDOMAIN", kLibc}, {"RES_OPTIONS", kLibc}, {"RESOLV_*", kLibc}, {"GETCONF_DIR", kLibc}, {"TZDIR", kLibc},
    {"MALLOC_*", kLibc}, {"ARGP_*", kLibc}, {"OPENSSL_*", kLibc}, {"SSLKEYLOGFILE", kLibc}, {"KRB5_*", kLibc},
    {"RUSTC", kBuild}, {"RUSTC_*", kBuild}, {"RUSTDOC", kBuild}, {"RUSTFLAGS", kBuild}, {"RUSTDOCFLAGS", kBuild},
    {"CARGO_*", kBuild}, {"GOFLAGS", kBuild}, {"GOENV", kBuild}, {"GOTOOLDIR", kBuild}, {"CGO_*", kBuild},
    {"MAKEFLAGS", kBuild}, {"MFLAGS", kBuild}, {"GNUMAKEFLAGS", kBuild}, {"MAKEFILES", kBuild},
    {"CMAKE_*", kBuild}, {"CCACHE_*", kBuild}, {"PKG_CONFIG*", kBuild},
    {"GTK_*", kDesktop}, {"GIO_*", kDesktop}, {"GST_*", kDesktop}, {"QT_*", kDesktop}, {"GDK_*", kDesktop},
    {"LIBGL_*", kDesktop}, {"VK_*", kDesktop}, {"EGL_*", kDesktop},
    {"H5I_*", kOwn},
};

std::string upper(std::string_view s) {
  std::string r(s);
  for (char& c : r)
    if (c >= 'a' && c <= 'z') c = static_cast<char>(c - 'a' + 'A');
  return r;
}

bool matches(std::string_view pattern, std::string_view name) {
  if (pattern.back() != '*') return name == pattern;
  pattern.remove_suffix(1);
  return name.substr(0, pattern.size()) == pattern;
}

}  // namespace

bool valid_env_name(std::string_view name) {
  if (name.empty() || name.size() > kMaxName || (name[0] >= '0' && name[0] <= '9')) return false;
  return std::all_of(name.begin(), name.end(), [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_';
  });
}

std::string_view dangerous_env(std::string_view name) {
  for (const Pattern& p : kPatterns)
    if (matches(p.text, name)) return p.why;
  // npm and yarn read their settings from names in either case.
  std::string folded = upper(name);
  if (matches("NPM_CONFIG_*", folded) || matches("YARN_*", folded) || matches("PNPM_CONFIG_*", folded)) return kRuntime;
  return {};
}

bool is_proxy_variable(std::string_view name) {
  std::string folded = upper(name);
  return folded == "H5I_EGRESS_PROXY" || folded == "NO_PROXY" ||
         (folded.size() > 6 && folded.substr(folded.size() - 6) == "_PROXY");
}

bool is_secret_source(std::string_view name) { return matches("H5I_SECRET_*", name); }

}  // namespace h5i::policy
