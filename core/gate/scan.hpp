// The walker: a box's work tree becomes a flat tree of objects, or a list of paths that may not leave. Writes nothing.
#pragma once
#include <sys/stat.h>

#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "core/base/unique_fd.hpp"
#include "core/gate/rules.hpp"
#include "core/git/file_state.hpp"
#include "core/git/repository.hpp"

namespace h5i::gate {

// What the top of the tree may hold under the name `.git`.
enum class RootGit {
  EMPTY_DIRECTORY,  // a box: exactly the empty directory that h5i made, GIT_REDIRECTED otherwise
  SKIP              // a directory of the user's own, whose .git stays where it is
};

struct ScanOptions {
  git::Tree base;                          // what was checked out; decides what is tracked
  // The object of a file that has not changed since its content was known, or nothing: then it is read.
  std::function<std::optional<git::Oid>(const std::string& path, const struct stat& st)> known;
  // Bytes of a small file or link of the base: whether a link that leaves did so before.
  std::function<std::optional<std::string>(const git::Oid& blob)> base_link;
  std::vector<std::string> placeholders;   // made by h5i for names that are denied; hidden while empty
  std::vector<std::string> private_paths;  // fs.private: hidden, what the base has there stays
  std::string ignore_rules;                // of the host, below those of the tree's own .gitignore files
  bool ignore = true;                      // false: everything is taken
  bool keep_links = false;
  bool populated_submodules = false;       // a user's own tree: what lies in a submodule is not looked at
  RootGit root_git = RootGit::EMPTY_DIRECTORY;
  Limits limits;
};

struct Scanned {
  git::Tree tree;
  git::States states;                // of every file and link in `tree`
  std::map<std::string, std::string> links;  // targets of the links in `tree`, by path
  std::vector<Violation> violations; // by path; not empty: nothing of the tree may leave
  std::vector<std::string> ignored;  // the first kMaxListed; directories stand for what is below
  uint64_t ignored_count = 0;
  std::vector<std::string> hidden;   // private paths and placeholders that were there
  uint64_t files_read = 0, bytes_read = 0;
};
constexpr size_t kMaxListed = 1000, kMaxViolations = 10'000;

// Fails only when the directory itself cannot be read; what is wrong inside it is a violation.
Result<Scanned> scan(const UniqueFd& work, const ScanOptions& options);

// Options with `known` and `base_link` for a box: states recorded by h5i, base read from `repo` (borrowed).
ScanOptions box_scan(const git::Repository& repo, git::Tree base, git::States states);

// What a tree that was merged of checked ones holds and `before` did not: a repository of which each side had a part.
std::vector<Violation> nested_repositories(const git::Repository& repo, const git::Tree& tree, const git::Tree& before);

// Reads the bytes of one path of a scanned tree again, GATE_CHANGED when they are no longer what `oid` says.
Result<std::string> read_scanned(const UniqueFd& work, const git::Entry& entry, uint64_t limit);
// Writes every blob of `scanned` that differs from `base` into `repo`; each is read again and must have kept its id.
Result<void> store(const UniqueFd& work, const Scanned& scanned, const git::Tree& base, const git::Repository& repo);

}  // namespace h5i::gate
