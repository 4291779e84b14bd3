#include "core/gate/handoff_names.hpp"

#include <algorithm>
#include <unordered_map>

#include "core/gate/rules.hpp"

namespace h5i::gate {
namespace {

constexpr Rule kRules[] = {
    // Directories, at any depth: everything below counts, and the name itself when it is a link or a file.
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
    {By::DIRECTORY, ".github/hooks", "agent", "instructions and hooks of an agent"},
    {By::DIRECTORY, ".github/instructions", "agent", "instructions and hooks of an agent"},
    {By::DIRECTORY, ".github/prompts", "agent", "instructions and hooks of an agent"},
    {By::DIRECTORY, ".github/agents", "agent", "instructions and hooks of an agent"},
    {By::DIRECTORY, ".gitea/actions", "ci", "runs on the forge when it is pushed"},
    {By::DIRECTORY, ".forgejo/actions", "ci", "runs on the forge when it is pushed"},
    {By::DIRECTORY, ".gitlab", "ci", "runs in CI when it is pushed"},
    {By::DIRECTORY, ".azure-pipelines", "ci", "runs in CI when it is pushed"},
    {By::DIRECTORY, ".semaphore", "ci", "runs in CI when it is pushed"},
    {By::DIRECTORY, ".builds", "ci", "runs in CI when it is pushed"},
    {By::DIRECTORY, ".teamcity", "ci", "runs in CI when it is pushed"},
    {By::DIRECTORY, ".tekton", "ci", "runs in CI when it is pushed"},
    {By::DIRECTORY, ".dagger", "ci", "runs in CI when it is pushed"},
    {By::DIRECTORY, ".harness", "ci", "runs in CI when it is pushed"},
    {By::DIRECTORY, ".drone", "ci", "runs in CI when it is pushed"},
    {By::DIRECTORY, ".lefthook", "git-hook", "programs that run as git hooks"},
    {By::DIRECTORY, ".lefthook-local", "git-hook", "programs that run as git hooks"},
    {By::DIRECTORY, ".hg", "git", "a repository of another system, with hooks and settings of its own"},
    {By::DIRECTORY, ".jj", "git", "a repository of another system, with hooks and settings of its own"},
    {By::DIRECTORY, ".sl", "git", "a repository of another system, with hooks and settings of its own"},
    {By::DIRECTORY, ".bzr", "git", "a repository of another system, with hooks and settings of its own"},
    {By::DIRECTORY, ".svn", "git", "a repository of another system, with hooks and settings of its own"},
    {By::DIRECTORY, ".vs", "editor", "settings of an editor that opens the folder"},
    {By::DIRECTORY, ".nova", "editor", "settings of an editor that opens the folder"},
    {By::DIRECTORY, ".helix", "editor", "settings of an editor that opens the folder"},
    {By::DIRECTORY, ".settings", "editor", "settings of an editor that opens the folder"},
    {By::DIRECTORY, ".vim", "editor", "settings of an editor that opens the folder"},
    {By::DIRECTORY, ".nvim", "editor", "settings of an editor that opens the folder"},
    {By::DIRECTORY, ".clinerules", "agent", "settings of an agent"},
    {By::DIRECTORY, ".cline", "agent", "settings of an agent"},
    {By::DIRECTORY, ".kilocode", "agent", "settings of an agent"},
    {By::DIRECTORY, ".kiro", "agent", "settings of an agent"},
    {By::DIRECTORY, ".amazonq", "agent", "settings of an agent"},
    {By::DIRECTORY, ".augment", "agent", "settings of an agent"},
    {By::DIRECTORY, ".junie", "agent", "settings of an agent"},
    {By::DIRECTORY, ".goose", "agent", "settings of an agent"},
    {By::DIRECTORY, ".crush", "agent", "settings of an agent"},
    {By::DIRECTORY, ".trae", "agent", "settings of an agent"},
    {By::DIRECTORY, ".agent", "agent", "settings of an agent"},
    {By::DIRECTORY, ".agents", "agent", "settings of an agent"},
    {By::DIRECTORY, ".openhands", "agent", "settings of an agent"},
    {By::DIRECTORY, ".factory", "agent", "settings of an agent"},
    {By::DIRECTORY, ".aider", "agent", "settings of an agent"},
    {By::DIRECTORY, ".mise", "shell", "mise reads it when the folder is entered"},
    {By::DIRECTORY, "mise", "shell", "mise reads it when the folder is entered"},
    {By::DIRECTORY, ".rtx", "shell", "mise reads it when the folder is entered"},
    {By::DIRECTORY, ".gitpod", "container", "commands that an editor runs when it opens the folder"},
    // Names, at any depth.
    {By::STEM, ".envrc", "shell", "direnv runs it when the folder is entered"},
    {By::STEM, ".env", "shell", "variables that tools load from the folder"},
    {By::STEM, ".mise", "shell", "mise reads it when the folder is entered"},
    {By::DATA, "mise", "shell", "mise reads it when the folder is entered"},
    {By::NAME, ".tool-versions", "shell", "a version manager reads it when the folder is entered"},
    {By::NAME, ".bashrc", "shell", "a shell start-up file"},
    {By::NAME, ".bash_profile", "shell", "a shell start-up file"},
    {By::NAME, ".profile", "shell", "a shell start-up file"},
    {By::NAME, ".zshrc", "shell", "a shell start-up file"},
    {By::NAME, ".zshenv", "shell", "a shell start-up file"},
    {By::STEM, ".exrc", "editor", "commands of vi"},
    {By::STEM, ".vimrc", "editor", "commands of vim"},
    {By::NAME, ".nvim.lua", "editor", "commands of an editor"},
    {By::STEM, ".nvimrc", "editor", "commands of an editor"},
    {By::NAME, ".dir-locals.el", "editor", "code that Emacs evaluates"},
    {By::SUFFIX, ".code-workspace", "editor", "tasks and settings of an editor"},
    {By::SUFFIX, ".sublime-project", "editor", "build systems of an editor"},
    {By::STEM, ".gdbinit", "shell", "commands of a debugger"},
    {By::STEM, ".lldbinit", "shell", "commands of a debugger"},
    {By::STEM, ".mcp", "agent", "servers that an agent starts"},
    {By::NAME, "mcp.json", "agent", "servers that an agent starts"},
    {By::NAME, "claude.md", "agent", "instructions that an agent follows"},
    {By::NAME, "claude.local.md", "agent", "instructions that an agent follows"},
    {By::NAME, "agents.md", "agent", "instructions that an agent follows"},
    {By::NAME, "gemini.md", "agent", "instructions that an agent follows"},
    {By::NAME, ".cursorrules", "agent", "instructions that an agent follows"},
    {By::NAME, ".windsurfrules", "agent", "instructions that an agent follows"},
    {By::NAME, "copilot-instructions.md", "agent", "instructions that an agent follows"},
    {By::PREFIX, ".aider", "agent", "settings of an agent"},
    {By::STEM, ".gitlab-ci", "ci", "runs in CI when it is pushed"},
    {By::STEM, ".travis", "ci", "runs in CI when it is pushed"},
    {By::STEM, ".drone", "ci", "runs in CI when it is pushed"},
    {By::STEM, ".cirrus", "ci", "runs in CI when it is pushed"},
    {By::DATA, "bitbucket-pipelines", "ci", "runs in CI when it is pushed"},
    {By::DATA, "appveyor", "ci", "runs in CI when it is pushed"},
    {By::STEM, ".appveyor", "ci", "runs in CI when it is pushed"},
    {By::STEM, "jenkinsfile", "ci", "runs in CI when it is pushed"},
    {By::STEM, ".pre-commit-config", "git-hook", "programs that run before a commit"},
    {By::DATA, "lefthook", "git-hook", "programs that run as git hooks"},
    {By::STEM, ".lintstagedrc", "git-hook", "programs that run before a commit"},
    {By::NAME, ".gitmodules", "git", "where submodules come from"},
    {By::NAME, ".gitattributes", "git", "filters and drivers that git runs on content"},
    {By::NAME, ".gitconfig", "git", "configuration of git"},
    {By::NAME, ".lfsconfig", "git", "where large files come from"},
    {By::NAME, "package.json", "package-script", "scripts that a package manager runs"},
    {By::NAME, ".npmrc", "package-script", "configuration of a package manager"},
    {By::STEM, ".yarnrc", "package-script", "configuration of a package manager"},
    {By::STEM, ".pnpmfile", "package-script", "code that a package manager runs"},
    {By::NAME, "binding.gyp", "package-script", "commands that a package manager runs"},
    {By::NAME, "composer.json", "package-script", "scripts that a package manager runs"},
    {By::NAME, "setup.py", "package-script", "code that pip runs"},
    {By::NAME, "setup.cfg", "package-script", "configuration of a Python build"},
    {By::NAME, "pyproject.toml", "package-script", "the build backend that pip runs"},
    {By::NAME, "conftest.py", "build", "code that pytest runs"},
    {By::STEM, "sitecustomize", "shell", "code that every Python run loads"},
    {By::STEM, "usercustomize", "shell", "code that every Python run loads"},
    {By::SUFFIX, ".pth", "shell", "code that every Python run loads"},
    {By::NAME, "tox.ini", "build", "commands of a test runner"},
    {By::STEM, "noxfile", "build", "commands of a test runner"},
    {By::STEM, "gemfile", "package-script", "code that bundler runs"},
    {By::SUFFIX, ".gemspec", "package-script", "code that bundler runs"},
    {By::STEM, "rakefile", "build", "code that rake runs"},
    {By::NAME, "cargo.toml", "build", "the build script and dependencies of cargo"},
    {By::NAME, "build.rs", "build", "code that cargo runs"},
    {By::NAME, "makefile", "build", "commands that make runs"},
    {By::NAME, "gnumakefile", "build", "commands that make runs"},
    {By::SUFFIX, ".mk", "build", "commands that make runs"},
    {By::NAME, "cmakelists.txt", "build", "commands that cmake runs"},
    {By::SUFFIX, ".cmake", "build", "commands that cmake runs"},
    {By::NAME, "cmakepresets.json", "build", "settings of cmake"},
    {By::NAME, "meson.build", "build", "commands that meson runs"},
    {By::STEM, "justfile", "build", "commands that just runs"},
    {By::DATA, "taskfile", "build", "commands that task runs"},
    {By::STEM, "build.gradle", "build", "code that Gradle runs"},
    {By::STEM, "settings.gradle", "build", "code that Gradle runs"},
    {By::NAME, "gradle.properties", "build", "settings of Gradle"},
    {By::NAME, "gradle-wrapper.properties", "build", "where Gradle itself comes from"},
    {By::STEM, "gradlew", "build", "a program that a build starts"},
    {By::STEM, "mvnw", "build", "a program that a build starts"},
    {By::NAME, "pom.xml", "build", "plugins that Maven runs"},
    {By::NAME, "build.xml", "build", "tasks that Ant runs"},
    {By::NAME, "build.bazel", "build", "commands that Bazel runs"},
    {By::NAME, "workspace", "build", "code that Bazel loads"},
    {By::NAME, "workspace.bazel", "build", "code that Bazel loads"},
    {By::NAME, "workspace.bzlmod", "build", "code that Bazel loads"},
    {By::NAME, "module.bazel", "build", "code that Bazel loads"},
    {By::STEM, ".bazelrc", "build", "settings of Bazel"},
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
    {By::STEM, "containerfile", "container", "commands that an image build runs"},
    {By::STEM, "vagrantfile", "container", "code that vagrant runs"},
    {By::STEM, "procfile", "build", "programs that a process manager starts"},
    {By::SUFFIX, ".config.js", "build", "code that a JavaScript tool loads"},
    {By::SUFFIX, ".config.cjs", "build", "code that a JavaScript tool loads"},
    {By::SUFFIX, ".config.mjs", "build", "code that a JavaScript tool loads"},
    {By::SUFFIX, ".config.ts", "build", "code that a JavaScript tool loads"},
    {By::PREFIX, ".eslintrc", "build", "code that a JavaScript tool loads"},
    {By::PREFIX, ".babelrc", "build", "code that a JavaScript tool loads"},
    {By::STEM, "gruntfile", "build", "code that a JavaScript tool loads"},
    {By::STEM, "gulpfile", "build", "code that a JavaScript tool loads"},
    {By::STEM, "configure", "build", "a program that a build starts, or what makes it"},
    {By::DATA, "docker-compose", "container", "containers that compose starts"},
    {By::DATA, "compose", "container", "containers that compose starts"},
    {By::DATA, "docker-bake", "container", "containers that compose starts"},
    {By::PREFIX, "azure-pipelines", "ci", "runs in CI when it is pushed"},
    {By::STEM, ".woodpecker", "ci", "runs in CI when it is pushed"},
    {By::STEM, ".build", "ci", "runs in CI when it is pushed"},
    {By::DATA, "cloudbuild", "ci", "runs in CI when it is pushed"},
    {By::DATA, "buildspec", "ci", "runs in CI when it is pushed"},
    {By::DATA, "wercker", "ci", "runs in CI when it is pushed"},
    {By::DATA, "codefresh", "ci", "runs in CI when it is pushed"},
    {By::STEM, ".semaphore", "ci", "runs in CI when it is pushed"},
    {By::DATA, "lefthook-local", "git-hook", "programs that run as git hooks"},
    {By::STEM, ".lefthook", "git-hook", "programs that run as git hooks"},
    {By::STEM, ".lefthook-local", "git-hook", "programs that run as git hooks"},
    {By::STEM, ".huskyrc", "git-hook", "programs that run as git hooks"},
    {By::STEM, ".simple-git-hooks", "git-hook", "programs that run as git hooks"},
    {By::STEM, "simple-git-hooks", "git-hook", "programs that run as git hooks"},
    {By::STEM, ".overcommit", "git-hook", "programs that run as git hooks"},
    {By::DATA, "prek", "git-hook", "programs that run as git hooks"},
    {By::NAME, ".pre-commit-hooks.yaml", "git-hook", "programs that others run before a commit"},
    {By::STEM, ".gitpod", "container", "commands that an editor runs when it opens the folder"},
    {By::STEM, ".devcontainer", "container", "commands that an editor runs when it opens the folder"},
    {By::DATA, "devcontainer", "container", "commands that an editor runs when it opens the folder"},
    {By::DATA, "devfile", "container", "commands that an editor runs when it opens the folder"},
    {By::NAME, "tiltfile", "container", "code that a container tool runs"},
    {By::NAME, "earthfile", "container", "code that a container tool runs"},
    {By::NAME, "skaffold.yaml", "container", "code that a container tool runs"},
    {By::SUFFIX, ".dockerfile", "container", "commands that an image build runs"},
    {By::SUFFIX, ".containerfile", "container", "commands that an image build runs"},
    {By::STEM, ".bash_login", "shell", "a shell start-up file"},
    {By::STEM, ".bash_logout", "shell", "a shell start-up file"},
    {By::STEM, ".bash_aliases", "shell", "a shell start-up file"},
    {By::STEM, ".zprofile", "shell", "a shell start-up file"},
    {By::STEM, ".zlogin", "shell", "a shell start-up file"},
    {By::STEM, ".zlogout", "shell", "a shell start-up file"},
    {By::STEM, ".kshrc", "shell", "a shell start-up file"},
    {By::STEM, ".mkshrc", "shell", "a shell start-up file"},
    {By::STEM, ".cshrc", "shell", "a shell start-up file"},
    {By::STEM, ".tcshrc", "shell", "a shell start-up file"},
    {By::STEM, ".login", "shell", "a shell start-up file"},
    {By::STEM, ".inputrc", "shell", "a shell start-up file"},
    {By::STEM, "config.fish", "shell", "a shell start-up file"},
    {By::STEM, ".autoenv", "shell", "a shell start-up file"},
    {By::STEM, ".xinitrc", "shell", "a shell start-up file"},
    {By::STEM, ".xprofile", "shell", "a shell start-up file"},
    {By::STEM, ".xsession", "shell", "a shell start-up file"},
    {By::STEM, ".xsessionrc", "shell", "a shell start-up file"},
    {By::STEM, ".tmux", "shell", "a shell start-up file"},
    {By::STEM, ".screenrc", "shell", "a shell start-up file"},
    {By::STEM, ".wezterm", "shell", "a shell start-up file"},
    {By::STEM, ".flaskenv", "shell", "variables that tools load from the folder"},
    {By::STEM, ".rtx", "shell", "mise reads it when the folder is entered"},
    {By::DATA, "devbox", "shell", "a version manager or environment tool reads it when the folder is entered"},
    {By::STEM, "devenv", "shell", "a version manager or environment tool reads it when the folder is entered"},
    {By::STEM, ".sdkmanrc", "shell", "a version manager or environment tool reads it when the folder is entered"},
    {By::STEM, ".python-version", "shell", "a version manager or environment tool reads it when the folder is entered"},
    {By::STEM, ".ruby-version", "shell", "a version manager or environment tool reads it when the folder is entered"},
    {By::STEM, ".node-version", "shell", "a version manager or environment tool reads it when the folder is entered"},
    {By::STEM, ".nvmrc", "shell", "a version manager or environment tool reads it when the folder is entered"},
    {By::STEM, ".rprofile", "shell", "commands that an interpreter reads when it starts in the folder"},
    {By::STEM, ".renviron", "shell", "commands that an interpreter reads when it starts in the folder"},
    {By::STEM, ".irbrc", "shell", "commands that an interpreter reads when it starts in the folder"},
    {By::STEM, ".pryrc", "shell", "commands that an interpreter reads when it starts in the folder"},
    {By::STEM, ".pdbrc", "shell", "commands that an interpreter reads when it starts in the folder"},
    {By::STEM, ".ghci", "shell", "commands that an interpreter reads when it starts in the folder"},
    {By::STEM, ".ocamlinit", "shell", "commands that an interpreter reads when it starts in the folder"},
    {By::STEM, ".iex", "shell", "commands that an interpreter reads when it starts in the folder"},
    {By::STEM, ".perldb", "shell", "commands that an interpreter reads when it starts in the folder"},
    {By::STEM, ".octaverc", "shell", "commands that an interpreter reads when it starts in the folder"},
    {By::STEM, ".byebugrc", "shell", "commands that an interpreter reads when it starts in the folder"},
    {By::STEM, ".pythonrc", "shell", "commands that an interpreter reads when it starts in the folder"},
    {By::STEM, ".startup", "shell", "commands that an interpreter reads when it starts in the folder"},
    {By::STEM, ".gdbearlyinit", "shell", "commands of a debugger"},
    {By::STEM, ".radare2rc", "shell", "commands of a debugger"},
    {By::STEM, ".valgrindrc", "shell", "commands of a debugger"},
    {By::SUFFIX, "-gdb.py", "shell", "code that a debugger loads"},
    {By::SUFFIX, ".desktop", "shell", "a file manager starts what it names"},
    {By::SUFFIX, ".lnk", "shell", "a file manager starts what it names"},
    {By::SUFFIX, ".command", "shell", "a file manager starts what it names"},
    {By::STEM, ".gvimrc", "editor", "commands of an editor"},
    {By::STEM, ".lvimrc", "editor", "commands of an editor"},
    {By::STEM, "_vimrc", "editor", "commands of an editor"},
    {By::STEM, ".nvim", "editor", "commands of an editor"},
    {By::STEM, ".kakrc", "editor", "commands of an editor"},
    {By::STEM, ".emacs", "editor", "commands of an editor"},
    {By::STEM, ".dir-locals-2", "editor", "commands of an editor"},
    {By::STEM, ".ycm_extra_conf", "editor", "commands of an editor"},
    {By::STEM, ".vimspector", "editor", "commands of an editor"},
    {By::STEM, ".kateproject", "editor", "commands of an editor"},
    {By::NAME, ".project", "editor", "builders of an editor"},
    {By::NAME, ".classpath", "editor", "builders of an editor"},
    {By::NAME, "tasks.vs.json", "editor", "builders of an editor"},
    {By::NAME, "launch.vs.json", "editor", "builders of an editor"},
    {By::SUFFIX, ".sublime-build", "editor", "build systems of an editor"},
    {By::DATA, "opencode", "agent", "settings of an agent"},
    {By::STEM, ".opencode", "agent", "settings of an agent"},
    {By::STEM, ".claude", "agent", "settings of an agent"},
    {By::STEM, ".crush", "agent", "settings of an agent"},
    {By::DATA, "crush", "agent", "settings of an agent"},
    {By::STEM, ".roomodes", "agent", "settings of an agent"},
    {By::STEM, ".roorules", "agent", "settings of an agent"},
    {By::STEM, ".kilocodemodes", "agent", "settings of an agent"},
    {By::STEM, ".clinerules", "agent", "settings of an agent"},
    {By::STEM, ".goosehints", "agent", "settings of an agent"},
    {By::STEM, ".continuerc", "agent", "settings of an agent"},
    {By::STEM, ".geminirc", "agent", "settings of an agent"},
    {By::STEM, ".augment-guidelines", "agent", "settings of an agent"},
    {By::STEM, ".openhands_instructions", "agent", "settings of an agent"},
    {By::STEM, ".agentrc", "agent", "settings of an agent"},
    {By::NAME, "agent.md", "agent", "instructions that an agent follows"},
    {By::NAME, "agents.override.md", "agent", "instructions that an agent follows"},
    {By::NAME, "qwen.md", "agent", "instructions that an agent follows"},
    {By::NAME, "crush.md", "agent", "instructions that an agent follows"},
    {By::NAME, "warp.md", "agent", "instructions that an agent follows"},
    {By::NAME, "skill.md", "agent", "instructions that an agent follows"},
    {By::NAME, ".rules", "agent", "instructions that an agent follows"},
    {By::NAME, "gemini.local.md", "agent", "instructions that an agent follows"},
    {By::SUFFIX, ".gitconfig", "git", "configuration of git"},
    {By::NAME, "package.json5", "package-script", "scripts that a package manager runs"},
    {By::NAME, "package.yaml", "package-script", "scripts that a package manager runs"},
    {By::NAME, "pnpm-workspace.yaml", "package-script", "scripts that a package manager runs"},
    {By::NAME, "bunfig.toml", "package-script", "scripts that a package manager runs"},
    {By::NAME, "deno.json", "package-script", "scripts that a package manager runs"},
    {By::NAME, "deno.jsonc", "package-script", "scripts that a package manager runs"},
    {By::NAME, "lerna.json", "package-script", "scripts that a package manager runs"},
    {By::NAME, "rush.json", "package-script", "scripts that a package manager runs"},
    {By::NAME, "pipfile", "package-script", "scripts that a package manager runs"},
    {By::NAME, "pixi.toml", "package-script", "scripts that a package manager runs"},
    {By::NAME, "uv.toml", "package-script", "scripts that a package manager runs"},
    {By::NAME, "pdm.toml", "package-script", "scripts that a package manager runs"},
    {By::NAME, "hatch.toml", "package-script", "scripts that a package manager runs"},
    {By::NAME, "hatch_build.py", "package-script", "scripts that a package manager runs"},
    {By::NAME, "pip.conf", "package-script", "scripts that a package manager runs"},
    {By::NAME, "gems.rb", "package-script", "scripts that a package manager runs"},
    {By::NAME, "podfile", "package-script", "scripts that a package manager runs"},
    {By::NAME, "brewfile", "package-script", "scripts that a package manager runs"},
    {By::NAME, "cpanfile", "package-script", "scripts that a package manager runs"},
    {By::NAME, "extconf.rb", "package-script", "scripts that a package manager runs"},
    {By::NAME, "pubspec.yaml", "package-script", "scripts that a package manager runs"},
    {By::NAME, "mix.lock", "package-script", "scripts that a package manager runs"},
    {By::STEM, "pnpmfile", "package-script", "code that a package manager runs"},
    {By::STEM, ".pnp", "package-script", "code that a package manager runs"},
    {By::STEM, "conanfile", "package-script", "code that a package manager runs"},
    {By::SUFFIX, ".rockspec", "package-script", "scripts that a package manager runs"},
    {By::SUFFIX, ".opam", "package-script", "scripts that a package manager runs"},
    {By::SUFFIX, ".nimble", "package-script", "scripts that a package manager runs"},
    {By::SUFFIX, ".podspec", "package-script", "scripts that a package manager runs"},
    {By::NAME, "cmakeuserpresets.json", "build", "commands of a build tool"},
    {By::NAME, "makefile.am", "build", "commands of a build tool"},
    {By::NAME, "makefile.in", "build", "commands of a build tool"},
    {By::NAME, "bsdmakefile", "build", "commands of a build tool"},
    {By::NAME, "makefile.pl", "build", "commands of a build tool"},
    {By::NAME, "build.pl", "build", "commands of a build tool"},
    {By::NAME, "build", "build", "commands of a build tool"},
    {By::NAME, "build.ninja", "build", "commands of a build tool"},
    {By::NAME, "sconstruct", "build", "commands of a build tool"},
    {By::NAME, "sconscript", "build", "commands of a build tool"},
    {By::NAME, "wscript", "build", "commands of a build tool"},
    {By::NAME, "meson_options.txt", "build", "commands of a build tool"},
    {By::NAME, "meson.options", "build", "commands of a build tool"},
    {By::NAME, "go.work", "build", "commands of a build tool"},
    {By::NAME, "magefile.go", "build", "commands of a build tool"},
    {By::NAME, "xmake.lua", "build", "commands of a build tool"},
    {By::NAME, "premake5.lua", "build", "commands of a build tool"},
    {By::NAME, "build.sc", "build", "commands of a build tool"},
    {By::NAME, "project.clj", "build", "commands of a build tool"},
    {By::NAME, "deps.edn", "build", "commands of a build tool"},
    {By::NAME, "bb.edn", "build", "commands of a build tool"},
    {By::NAME, "build.boot", "build", "commands of a build tool"},
    {By::NAME, "rebar.config", "build", "commands of a build tool"},
    {By::NAME, "dune", "build", "commands of a build tool"},
    {By::NAME, "dune-project", "build", "commands of a build tool"},
    {By::NAME, "setup.hs", "build", "commands of a build tool"},
    {By::NAME, "stack.yaml", "build", "commands of a build tool"},
    {By::NAME, "cabal.project", "build", "commands of a build tool"},
    {By::NAME, "dub.json", "build", "commands of a build tool"},
    {By::NAME, "dub.sdl", "build", "commands of a build tool"},
    {By::NAME, "shard.yml", "build", "commands of a build tool"},
    {By::NAME, "config.nims", "build", "commands of a build tool"},
    {By::NAME, "build.mill", "build", "commands of a build tool"},
    {By::NAME, "user.bazelrc", "build", "commands of a build tool"},
    {By::NAME, "buck", "build", "commands of a build tool"},
    {By::NAME, ".buckconfig", "build", "commands of a build tool"},
    {By::NAME, "pavement.py", "build", "commands of a build tool"},
    {By::NAME, "dodo.py", "build", "commands of a build tool"},
    {By::NAME, "fabfile.py", "build", "commands of a build tool"},
    {By::NAME, "guardfile", "build", "commands of a build tool"},
    {By::NAME, "capfile", "build", "commands of a build tool"},
    {By::NAME, "dangerfile", "build", "commands of a build tool"},
    {By::NAME, "fastfile", "build", "commands of a build tool"},
    {By::NAME, "thorfile", "build", "commands of a build tool"},
    {By::NAME, "turbo.json", "build", "commands of a build tool"},
    {By::NAME, "nx.json", "build", "commands of a build tool"},
    {By::NAME, "ansible.cfg", "build", "commands of a build tool"},
    {By::NAME, "global.json", "build", "commands of a build tool"},
    {By::NAME, "nuget.config", "build", "commands of a build tool"},
    {By::NAME, "directory.build.props", "build", "commands of a build tool"},
    {By::NAME, "directory.build.targets", "build", "commands of a build tool"},
    {By::NAME, "directory.packages.props", "build", "commands of a build tool"},
    {By::NAME, "project.pbxproj", "build", "commands of a build tool"},
    {By::NAME, "gradle-wrapper.jar", "build", "commands of a build tool"},
    {By::NAME, "maven-wrapper.jar", "build", "commands of a build tool"},
    {By::NAME, "maven-wrapper.properties", "build", "commands of a build tool"},
    {By::STEM, ".justfile", "build", "commands of a build tool"},
    {By::STEM, "makefile.inc", "build", "commands of a build tool"},
    {By::STEM, "jakefile", "build", "commands of a build tool"},
    {By::STEM, "rust-toolchain", "build", "commands of a build tool"},
    {By::STEM, ".goreleaser", "build", "commands of a build tool"},
    {By::STEM, ".air", "build", "commands of a build tool"},
    {By::SUFFIX, ".just", "build", "commands of a build tool"},
    {By::SUFFIX, ".rake", "build", "commands of a build tool"},
    {By::SUFFIX, ".mak", "build", "commands of a build tool"},
    {By::SUFFIX, ".gradle", "build", "commands of a build tool"},
    {By::SUFFIX, ".gradle.kts", "build", "commands of a build tool"},
    {By::SUFFIX, ".sbt", "build", "commands of a build tool"},
    {By::SUFFIX, ".m4", "build", "commands of a build tool"},
    {By::SUFFIX, ".cabal", "build", "commands of a build tool"},
    {By::SUFFIX, ".csproj", "build", "commands of a build tool"},
    {By::SUFFIX, ".fsproj", "build", "commands of a build tool"},
    {By::SUFFIX, ".vbproj", "build", "commands of a build tool"},
    {By::SUFFIX, ".vcxproj", "build", "commands of a build tool"},
    {By::SUFFIX, ".targets", "build", "commands of a build tool"},
    {By::SUFFIX, ".props", "build", "commands of a build tool"},
    {By::SUFFIX, ".xcscheme", "build", "commands of a build tool"},
    {By::SUFFIX, ".nims", "build", "commands of a build tool"},
    {By::SUFFIX, ".tf", "build", "commands of a build tool"},
    {By::SUFFIX, ".bazelrc", "build", "commands of a build tool"},
    {By::NAME, "pytest.ini", "build", "settings of a checker that load code"},
    {By::NAME, "mypy.ini", "build", "settings of a checker that load code"},
    {By::NAME, ".mypy.ini", "build", "settings of a checker that load code"},
    {By::NAME, ".flake8", "build", "settings of a checker that load code"},
    {By::NAME, "pylintrc", "build", "settings of a checker that load code"},
    {By::NAME, ".pylintrc", "build", "settings of a checker that load code"},
    {By::NAME, ".luacheckrc", "build", "settings of a checker that load code"},
    {By::NAME, ".credo.exs", "build", "settings of a checker that load code"},
    {By::NAME, ".formatter.exs", "build", "settings of a checker that load code"},
    {By::NAME, "phpunit.xml", "build", "settings of a checker that load code"},
    {By::NAME, "phpunit.xml.dist", "build", "settings of a checker that load code"},
    {By::NAME, ".rspec", "build", "settings of a checker that load code"},
    {By::NAME, ".rubocop.yml", "build", "settings of a checker that load code"},
    {By::NAME, ".golangci.yml", "build", "settings of a checker that load code"},
    {By::NAME, ".coveragerc", "build", "settings of a checker that load code"},
    {By::SUFFIX, ".config.mts", "build", "code that a JavaScript tool loads"},
    {By::SUFFIX, ".config.cts", "build", "code that a JavaScript tool loads"},
    {By::DOTRC, "rc.js", "build", "code that a JavaScript tool loads"},
    {By::DOTRC, "rc.cjs", "build", "code that a JavaScript tool loads"},
    {By::DOTRC, "rc.mjs", "build", "code that a JavaScript tool loads"},
    {By::DOTRC, "rc.ts", "build", "code that a JavaScript tool loads"},
    {By::DOTRC, "rc.mts", "build", "code that a JavaScript tool loads"},
    {By::DOTRC, "rc.cts", "build", "code that a JavaScript tool loads"},
};

constexpr std::string_view kHookNames[] = {"applypatch-msg", "pre-applypatch", "post-applypatch", "pre-commit", "pre-merge-commit", "prepare-commit-msg",
                                           "commit-msg", "post-commit", "pre-rebase", "post-checkout", "post-merge", "pre-push", "pre-receive", "update",
                                           "proc-receive", "post-receive", "post-update", "push-to-checkout", "pre-auto-gc", "post-rewrite", "fsmonitor-watchman"};

constexpr Rule kHook = {By::NAME, "", "git-hook", "the name of a git hook"};

bool ends_with_any(std::string_view name, std::initializer_list<std::string_view> endings) {
  return std::any_of(endings.begin(), endings.end(), [&](std::string_view e) { return name.ends_with(e); });
}

bool name_falls_under(const Rule& r, std::string_view name) {
  switch (r.by) {
    case By::NAME: return name == r.text;
    case By::STEM: return name.starts_with(r.text) && (name.size() == r.text.size() || (name[r.text.size()] == '.' && !ends_with_any(name, {".md", ".txt", ".rst", ".adoc", ".html"})));
    case By::DATA:
      return name.starts_with(r.text) && name.size() > r.text.size() && name[r.text.size()] == '.' && ends_with_any(name, {".yml", ".yaml", ".toml", ".json", ".jsonc", ".json5", ".hcl"});
    case By::SUFFIX: return name.ends_with(r.text);
    case By::PREFIX: return name.starts_with(r.text);
    case By::DOTRC: return name.starts_with('.') && name.ends_with(r.text);
    case By::DIRECTORY: return false;
  }
  return false;
}

// Rules on directories by their first component, on names by the name, and the others.
struct Index {
  std::multimap<std::string_view, const Rule*> directories;
  std::unordered_map<std::string_view, const Rule*> names;
  std::vector<const Rule*> others;
  Index() {
    for (const Rule& r : kRules) {
      if (r.by == By::DIRECTORY) directories.insert({r.text.substr(0, r.text.find('/')), &r});
      else if (r.by == By::NAME) names.insert({r.text, &r});
      else others.push_back(&r);
    }
  }
};
const Index& index() {
  static const Index i;
  return i;
}

const Rule* hook_rule(const std::string& name) {
  return std::find(std::begin(kHookNames), std::end(kHookNames), name) == std::end(kHookNames) ? nullptr : &kHook;
}

// The rule on directories that one of the components falls under, the first of the table. The last component counts too: a
// link, or a file where a folder is expected.
const Rule* directory_rule(const std::vector<std::string>& components) {
  const Rule* found = nullptr;
  for (size_t i = 0; i < components.size(); i++) {
    auto [from, to] = index().directories.equal_range(components[i]);
    for (; from != to; ++from) {
      const Rule* r = from->second;
      std::string_view second = second_component(*r);
      if ((second.empty() || (i + 1 < components.size() && components[i + 1] == second)) && (!found || r < found)) found = r;
    }
  }
  return found;
}

}  // namespace

std::vector<std::string> folded_components(std::string_view path) {
  std::vector<std::string> out;
  for (size_t i = 0; i <= path.size();) {
    size_t end = std::min(path.find('/', i), path.size());
    out.push_back(folded_name(path.substr(i, end - i)));
    i = end + 1;
  }
  return out;
}

const std::multimap<std::string_view, const Rule*>& directory_rules() { return index().directories; }

std::string_view second_component(const Rule& rule) {
  size_t slash = rule.text.find('/');
  return slash == std::string_view::npos ? std::string_view{} : rule.text.substr(slash + 1);
}

const Rule* name_rule(const std::string& name) {
  if (const Rule* r = hook_rule(name)) return r;
  auto it = index().names.find(name);
  if (it != index().names.end()) return it->second;
  for (const Rule* r : index().others)
    if (name_falls_under(*r, name)) return r;
  return nullptr;
}

std::optional<Handoff> hands_off(const std::string& path) {
  std::vector<std::string> components = folded_components(path);
  const Rule* r = hook_rule(components.back());
  if (!r) r = directory_rule(components);
  if (!r) r = name_rule(components.back());
  if (!r) return std::nullopt;
  return Handoff{path, r->kind, r->why};
}

}  // namespace h5i::gate
