// What is read of a repository's configuration: whether this version can work with it, whose it is, and the name that
// goes on a commit. Nothing else of it has an effect.
#pragma once
#include <string>
#include <vector>

#include "core/base/result.hpp"

namespace h5i::git {

// Files of the invoking user, named explicitly; missing ones are skipped.
struct UserConfig {
  std::vector<std::string> files;  // later ones win
  // /etc/gitconfig, $XDG_CONFIG_HOME/git/config (or ~/.config/git/config), ~/.gitconfig
  static UserConfig of(const std::string& home, const std::string& xdg_config_home);
};

// Refuses what libgit2 would misread: GIT_UNSUPPORTED (SHA-256, reftable, unknown extensions), GIT_PARTIAL (promisor).
Result<void> check_format(const std::string& common_dir);
// A repository of somebody else is refused unless safe.directory names it (git's own rule), GIT_OWNER. `sudo_uid`: the
// user behind sudo, whose repositories root may use; negative: none.
Result<void> check_owner(const std::string& common_dir, const std::string& work_dir, unsigned euid, long sudo_uid, const UserConfig& user);

struct Identity {
  std::string name = "h5i", email = "h5i@localhost";
};
// user.name and user.email of the repository, then of the user; "h5i" where neither says.
Result<Identity> commit_identity(const std::string& common_dir, const UserConfig& user);
// remote.<name>.url; GIT_SOURCE when there is none.
Result<std::string> remote_url(const std::string& common_dir, const std::string& remote);

}  // namespace h5i::git
