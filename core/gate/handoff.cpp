#include "core/gate/handoff.hpp"

#include <algorithm>
#include <cctype>

#include "core/base/text.hpp"
#include "h5i/json.hpp"

namespace h5i::gate {
namespace {

enum class By { NAME, SUFFIX, DIRECTORY, PREFIX };
struct Rule {
  By by;
  std::string_view text;  // lower case
  const char* kind;
  const char* why;
};

constexpr Rule kRules[] = {
    // Directories, at any depth: everything below counts.
    {By::DIRECTORY, ".github/workflows", "ci", "runs on the forge when it is pushed"},
    {By::DIRECTORY, ".github/actions", "ci", "runs on the forge when it is pushed"},
    {By::DIRECTORY, ".gitea/workflows", "ci", "runs on the forge when it is pushed"},
    {By::DIRECTORY, ".forgejo/workflows", "ci", "runs on the forge when it is pushed"},
    {By::DIRECTORY, ".circleci", "ci", "runs in CI when it is pushed"},
    {By::DIRECTORY, ".buildkite", "ci", "runs in CI when it is pushed"},
    {By::DIRECTORY, ".woodpecker", "ci", "runs in CI when it is pushed"},
    {By::DIRECTORY, ".ci", "ci", "runs in CI when it is pushed"},
    {By::DIRECTORY, ".husky", "git-hook", "git hooks that a package manager installs"},
    {By::DIRECTORY, ".githooks", "git-hook", "git hooks by core.hooksPath"},
    {By::DIRECTORY, ".git-hooks", "git-hook", "git hooks by core.hooksPath"},
    {By::DIRECTORY, "hooks", "git-hook", "a directory that core.hooksPath may name"},
    {By::DIRECTORY, ".vscode", "editor", "tasks and settings of an editor that opens the folder"},
    {By::DIRECTORY, ".idea", "editor", "run configurations of an editor that opens the folder"},
    {By::DIRECTORY, ".fleet", "editor", "run configurations of an editor that opens the folder"},
    {By::DIRECTORY, ".zed", "editor", "tasks of an editor that opens the folder"},
    {By::DIRECTORY, ".devcontainer", "container", "commands that an editor runs when it opens the folder"},
    {By::DIRECTORY, ".claude", "agent", "settings and hooks of an agent"},
    {By::DIRECTORY, ".codex", "agent", "settings of an agent"},
    {By::DIRECTORY, ".cursor", "agent", "settings and rules of an agent"},
    {By::DIRECTORY, ".gemini", "agent", "settings of an agent"},
    {By::DIRECTORY, ".qwen", "agent", "settings of an agent"},
    {By::DIRECTORY, ".opencode", "agent", "settings of an agent"},
    {By::DIRECTORY, ".windsurf", "agent", "settings of an agent"},
    {By::DIRECTORY, ".roo", "agent", "settings of an agent"},
    {By::DIRECTORY, ".continue", "agent", "settings of an agent"},
    {By::DIRECTORY, ".h5i", "policy", "h5i's own policy for the next box"},
    {By::DIRECTORY, ".cargo", "build", "runners and wrappers that cargo starts"},
    {By::DIRECTORY, ".mvn", "build", "extensions that Maven loads"},
    {By::DIRECTORY, ".yarn", "package-script", "programs and plugins that yarn loads"},
    {By::DIRECTORY, ".bundle", "package-script", "configuration of bundler"},
    {By::DIRECTORY, ".config", "shell", "configuration that tools read from the folder"},
    {By::DIRECTORY, ".direnv", "shell", "state of direnv"},
    // Names, at any depth.
    {By::NAME, ".envrc", "shell", "direnv runs it when the folder is entered"},
    {By::NAME, ".env", "shell", "variables that tools load from the folder"},
    {By::NAME, ".mise.toml", "shell", "mise reads it when the folder is entered"},
    {By::NAME, "mise.toml", "shell", "mise reads it when the folder is entered"},
    {By::NAME, ".tool-versions", "shell", "a version manager reads it when the folder is entered"},
    {By::NAME, ".bashrc", "shell", "a shell start-up file"},
    {By::NAME, ".bash_profile", "shell", "a shell start-up file"},
    {By::NAME, ".profile", "shell", "a shell start-up file"},
    {By::NAME, ".zshrc", "shell", "a shell start-up file"},
    {By::NAME, ".zshenv", "shell", "a shell start-up file"},
    {By::NAME, ".exrc", "editor", "commands of vi"},
    {By::NAME, ".vimrc", "editor", "commands of vim"},
    {By::NAME, ".nvim.lua", "editor", "commands of an editor"},
    {By::NAME, ".nvimrc", "editor", "commands of an editor"},
    {By::NAME, ".dir-locals.el", "editor", "code that Emacs evaluates"},
    {By::SUFFIX, ".code-workspace", "editor", "tasks and settings of an editor"},
    {By::SUFFIX, ".sublime-project", "editor", "build systems of an editor"},
    {By::NAME, ".gdbinit", "shell", "commands of a debugger"},
    {By::NAME, ".lldbinit", "shell", "commands of a debugger"},
    {By::NAME, ".mcp.json", "agent", "servers that an agent starts"},
    {By::NAME, "mcp.json", "agent", "servers that an agent starts"},
    {By::NAME, "claude.md", "agent", "instructions that an agent follows"},
    {By::NAME, "claude.local.md", "agent", "instructions that an agent follows"},
    {By::NAME, "agents.md", "agent", "instructions that an agent follows"},
    {By::NAME, "gemini.md", "agent", "instructions that an agent follows"},
    {By::NAME, ".cursorrules", "agent", "instructions that an agent follows"},
    {By::NAME, ".windsurfrules", "agent", "instructions that an agent follows"},
    {By::NAME, "copilot-instructions.md", "agent", "instructions that an agent follows"},
    {By::PREFIX, ".aider", "agent", "settings of an agent"},
    {By::NAME, ".gitlab-ci.yml", "ci", "runs in CI when it is pushed"},
    {By::NAME, ".travis.yml", "ci", "runs in CI when it is pushed"},
    {By::NAME, ".drone.yml", "ci", "runs in CI when it is pushed"},
    {By::NAME, ".cirrus.yml", "ci", "runs in CI when it is pushed"},
    {By::NAME, "azure-pipelines.yml", "ci", "runs in CI when it is pushed"},
    {By::NAME, "bitbucket-pipelines.yml", "ci", "runs in CI when it is pushed"},
    {By::NAME, "appveyor.yml", "ci", "runs in CI when it is pushed"},
    {By::NAME, ".appveyor.yml", "ci", "runs in CI when it is pushed"},
    {By::NAME, "jenkinsfile", "ci", "runs in CI when it is pushed"},
    {By::NAME, ".pre-commit-config.yaml", "git-hook", "programs that run before a commit"},
    {By::NAME, "lefthook.yml", "git-hook", "programs that run as git hooks"},
    {By::NAME, ".lintstagedrc", "git-hook", "programs that run before a commit"},
    {By::NAME, ".gitmodules", "git", "where submodules come from"},
    {By::NAME, ".gitattributes", "git", "filters and drivers that git runs on content"},
    {By::NAME, ".gitconfig", "git", "configuration of git"},
    {By::NAME, ".lfsconfig", "git", "where large files come from"},
    {By::NAME, "package.json", "package-script", "scripts that a package manager runs"},
    {By::NAME, ".npmrc", "package-script", "configuration of a package manager"},
    {By::NAME, ".yarnrc", "package-script", "configuration of a package manager"},
    {By::NAME, ".yarnrc.yml", "package-script", "configuration of a package manager"},
    {By::NAME, ".pnpmfile.cjs", "package-script", "code that a package manager runs"},
    {By::NAME, "binding.gyp", "package-script", "commands that a package manager runs"},
    {By::NAME, "composer.json", "package-script", "scripts that a package manager runs"},
    {By::NAME, "setup.py", "package-script", "code that pip runs"},
    {By::NAME, "setup.cfg", "package-script", "configuration of a Python build"},
    {By::NAME, "pyproject.toml", "package-script", "the build backend that pip runs"},
    {By::NAME, "conftest.py", "build", "code that pytest runs"},
    {By::NAME, "sitecustomize.py", "shell", "code that every Python run loads"},
    {By::NAME, "usercustomize.py", "shell", "code that every Python run loads"},
    {By::SUFFIX, ".pth", "shell", "code that every Python run loads"},
    {By::NAME, "tox.ini", "build", "commands of a test runner"},
    {By::NAME, "noxfile.py", "build", "commands of a test runner"},
    {By::NAME, "gemfile", "package-script", "code that bundler runs"},
    {By::SUFFIX, ".gemspec", "package-script", "code that bundler runs"},
    {By::NAME, "rakefile", "build", "code that rake runs"},
    {By::NAME, "cargo.toml", "build", "the build script and dependencies of cargo"},
    {By::NAME, "build.rs", "build", "code that cargo runs"},
    {By::NAME, "makefile", "build", "commands that make runs"},
    {By::NAME, "gnumakefile", "build", "commands that make runs"},
    {By::SUFFIX, ".mk", "build", "commands that make runs"},
    {By::NAME, "cmakelists.txt", "build", "commands that cmake runs"},
    {By::SUFFIX, ".cmake", "build", "commands that cmake runs"},
    {By::NAME, "cmakepresets.json", "build", "settings of cmake"},
    {By::NAME, "configure", "build", "a program that a build starts"},
    {By::NAME, "configure.ac", "build", "makes the program that a build starts"},
    {By::NAME, "meson.build", "build", "commands that meson runs"},
    {By::NAME, "justfile", "build", "commands that just runs"},
    {By::NAME, "taskfile.yml", "build", "commands that task runs"},
    {By::NAME, "build.gradle", "build", "code that Gradle runs"},
    {By::NAME, "build.gradle.kts", "build", "code that Gradle runs"},
    {By::NAME, "settings.gradle", "build", "code that Gradle runs"},
    {By::NAME, "settings.gradle.kts", "build", "code that Gradle runs"},
    {By::NAME, "gradle.properties", "build", "settings of Gradle"},
    {By::NAME, "gradle-wrapper.properties", "build", "where Gradle itself comes from"},
    {By::NAME, "gradlew", "build", "a program that a build starts"},
    {By::NAME, "mvnw", "build", "a program that a build starts"},
    {By::NAME, "pom.xml", "build", "plugins that Maven runs"},
    {By::NAME, "build.xml", "build", "tasks that Ant runs"},
    {By::NAME, "build.bazel", "build", "commands that Bazel runs"},
    {By::NAME, "workspace", "build", "code that Bazel loads"},
    {By::NAME, "module.bazel", "build", "code that Bazel loads"},
    {By::NAME, ".bazelrc", "build", "settings of Bazel"},
    {By::SUFFIX, ".bzl", "build", "code that Bazel loads"},
    {By::NAME, "flake.nix", "build", "code that nix evaluates"},
    {By::NAME, "shell.nix", "build", "code that nix evaluates"},
    {By::NAME, "default.nix", "build", "code that nix evaluates"},
    {By::NAME, "build.zig", "build", "code that zig runs"},
    {By::NAME, "package.swift", "build", "code that swift runs"},
    {By::NAME, "mix.exs", "build", "code that mix runs"},
    {By::NAME, "build.sbt", "build", "code that sbt runs"},
    {By::NAME, "dockerfile", "container", "commands that an image build runs"},
    {By::PREFIX, "dockerfile.", "container", "commands that an image build runs"},
    {By::NAME, "containerfile", "container", "commands that an image build runs"},
    {By::NAME, "docker-compose.yml", "container", "containers that compose starts"},
    {By::NAME, "docker-compose.yaml", "container", "containers that compose starts"},
    {By::NAME, "compose.yml", "container", "containers that compose starts"},
    {By::NAME, "compose.yaml", "container", "containers that compose starts"},
    {By::NAME, "vagrantfile", "container", "code that vagrant runs"},
    {By::NAME, "procfile", "build", "programs that a process manager starts"},
    {By::SUFFIX, ".config.js", "build", "code that a JavaScript tool loads"},
    {By::SUFFIX, ".config.cjs", "build", "code that a JavaScript tool loads"},
    {By::SUFFIX, ".config.mjs", "build", "code that a JavaScript tool loads"},
    {By::SUFFIX, ".config.ts", "build", "code that a JavaScript tool loads"},
    {By::PREFIX, ".eslintrc", "build", "code that a JavaScript tool loads"},
    {By::PREFIX, ".babelrc", "build", "code that a JavaScript tool loads"},
    {By::NAME, "gruntfile.js", "build", "code that a JavaScript tool loads"},
    {By::NAME, "gulpfile.js", "build", "code that a JavaScript tool loads"},
};

constexpr std::string_view kHookNames[] = {"applypatch-msg", "pre-applypatch", "post-applypatch", "pre-commit", "pre-merge-commit", "prepare-commit-msg",
                                           "commit-msg", "post-commit", "pre-rebase", "post-checkout", "post-merge", "pre-push", "pre-receive", "update",
                                           "proc-receive", "post-receive", "post-update", "push-to-checkout", "pre-auto-gc", "post-rewrite", "fsmonitor-watchman"};

std::string lower(std::string_view s) {
  std::string out(s);
  std::transform(out.begin(), out.end(), out.begin(), [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  return out;
}

bool falls_under(const Rule& r, const std::string& path, const std::string& name) {
  switch (r.by) {
    case By::NAME: return name == r.text;
    case By::SUFFIX: return name.size() >= r.text.size() && name.compare(name.size() - r.text.size(), r.text.size(), r.text) == 0;
    case By::PREFIX: return name.compare(0, r.text.size(), r.text) == 0;
    case By::DIRECTORY: {
      std::string inside = "/" + std::string(r.text) + "/";
      return ("/" + path).find(inside) != std::string::npos;
    }
  }
  return false;
}

uint32_t code_point(std::string_view s, size_t i, int n) {
  auto b = [&](size_t k) { return static_cast<uint32_t>(static_cast<unsigned char>(s[i + k])); };
  if (n == 1) return b(0);
  if (n == 2) return (b(0) & 31) << 6 | (b(1) & 63);
  if (n == 3) return (b(0) & 15) << 12 | (b(1) & 63) << 6 | (b(2) & 63);
  return (b(0) & 7) << 18 | (b(1) & 63) << 12 | (b(2) & 63) << 6 | (b(3) & 63);
}

enum class Script { NONE, LATIN, OTHER };
Script script_of(uint32_t c) {
  if ((c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z')) return Script::LATIN;
  // The scripts whose letters are drawn like Latin ones: Greek, Cyrillic, Armenian, Cherokee, full-width and mathematical forms.
  if ((c >= 0x370 && c <= 0x3ff) || (c >= 0x400 && c <= 0x52f) || (c >= 0x531 && c <= 0x587) || (c >= 0x13a0 && c <= 0x13ff) ||
      (c >= 0xff21 && c <= 0xff5a) || (c >= 0x1d400 && c <= 0x1d7ff))
    return Script::OTHER;
  return Script::NONE;
}

const char* hides(uint32_t c) {
  if ((c >= 0x202a && c <= 0x202e) || (c >= 0x2066 && c <= 0x2069) || c == 0x200e || c == 0x200f || c == 0x61c) return "characters that reorder text";
  if (c == 0xad || (c >= 0x200b && c <= 0x200d) || (c >= 0x2060 && c <= 0x2064) || c == 0xfeff || c == 0x180e || (c >= 0xe0000 && c <= 0xe007f))
    return "invisible characters";
  if ((c < 0x20 && c != '\t') || (c >= 0x7f && c <= 0x9f)) return c == '\r' ? "a carriage return inside the line" : "control characters";
  return nullptr;
}

const char* deceives(std::string_view line) {
  Script word = Script::NONE;
  for (size_t i = 0; i < line.size();) {
    int n = json::detail::utf8_len(line, i);
    if (n == 0) {
      i++;
      word = Script::NONE;
      continue;
    }
    uint32_t c = code_point(line, i, n);
    if (const char* what = hides(c)) return what;
    Script s = script_of(c);
    if (s == Script::NONE) word = Script::NONE;
    else if (word != Script::NONE && word != s) return "letters of two scripts in one word";
    else word = s;
    i += static_cast<size_t>(n);
  }
  return nullptr;
}

}  // namespace

std::optional<Handoff> hands_off(const std::string& raw) {
  std::string path = lower(raw), name = path.substr(path.rfind('/') + 1);
  for (std::string_view hook : kHookNames)
    if (name == hook) return Handoff{raw, "git-hook", "the name of a git hook"};
  for (const Rule& r : kRules)
    if (falls_under(r, path, name)) return Handoff{raw, r.kind, r.why};
  return std::nullopt;
}

std::vector<Handoff> handoffs(const std::vector<git::Change>& changes) {
  std::vector<Handoff> out;
  for (const git::Change& c : changes)
    if (c.new_mode != 0)
      if (auto h = hands_off(c.path)) out.push_back(*h);
  return out;
}

std::vector<std::string> submodule_warnings(std::string_view text) {
  std::vector<std::string> out;
  uint64_t number = 0;
  while (!text.empty()) {
    size_t end = text.find('\n');
    std::string line(text.substr(0, end));
    text = end == std::string_view::npos ? std::string_view{} : text.substr(end + 1);
    number++;
    auto warn = [&](const char* why) { out.push_back("line " + std::to_string(number) + ": " + why); };
    if (line.find('\r') != std::string::npos) warn("a carriage return, which git and other readers see differently");
    size_t equals = line.find('=');
    if (equals == std::string::npos) continue;
    auto trimmed = [](std::string s) {
      while (!s.empty() && std::isspace(static_cast<unsigned char>(s.back()))) s.pop_back();
      size_t i = 0;
      while (i < s.size() && std::isspace(static_cast<unsigned char>(s[i]))) i++;
      return s.substr(i);
    };
    std::string key = lower(trimmed(line.substr(0, equals))), value = trimmed(line.substr(equals + 1));
    if (value.size() >= 2 && value.front() == '"' && value.back() == '"') value = value.substr(1, value.size() - 2);
    if (key == "update" && value.rfind("!", 0) == 0) warn("update is a command");
    if ((key == "url" || key == "path" || key == "branch") && value.rfind("-", 0) == 0) warn("the value is read as an option");
    if (key == "url" && value.find("::") != std::string::npos) warn("the URL names a remote helper, which is a program");
    if (key == "path" && (value.rfind("/", 0) == 0 || value.find("..") != std::string::npos)) warn("the path leaves the work tree");
  }
  return out;
}

std::vector<Deception> deceptions(std::string_view text, size_t limit) {
  std::vector<Deception> out;
  uint64_t number = 0;
  while (!text.empty() && out.size() < limit) {
    size_t end = text.find('\n');
    std::string_view line = text.substr(0, end);
    text = end == std::string_view::npos ? std::string_view{} : text.substr(end + 1);
    number++;
    if (!line.empty() && line.back() == '\r') line.remove_suffix(1);
    if (number == 1 && line.substr(0, 3) == "\xEF\xBB\xBF") line.remove_prefix(3);
    if (const char* what = deceives(line)) out.push_back({number, what});
  }
  return out;
}

}  // namespace h5i::gate
