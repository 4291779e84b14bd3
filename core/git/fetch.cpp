#include "core/git/fetch.hpp"

#include <algorithm>

#include "core/base/text.hpp"
#include "core/git/handles.hpp"
#include "core/git/library.hpp"
#include "core/git/source.hpp"

namespace h5i::git {
namespace {

constexpr int kMaxCredentialTries = 3;

// Only what asks nobody: the user's ssh agent. No helper program, no prompt.
struct Talk {
  int tries = 0;
  const std::function<void(const Arrived&)>& progress;
};

int credentials(git_credential** out, const char*, const char* user, unsigned types, void* payload) {
  int& tries = static_cast<Talk*>(payload)->tries;
  if (++tries > kMaxCredentialTries) return GIT_EAUTH;
  if (types & GIT_CREDENTIAL_USERNAME) return git_credential_username_new(out, user ? user : "git");
  if (types & GIT_CREDENTIAL_SSH_KEY) return git_credential_ssh_key_from_agent(out, user ? user : "git");
  return GIT_EAUTH;
}

int arrived(const git_indexer_progress* p, void* payload) {
  const Talk& talk = *static_cast<Talk*>(payload);
  if (talk.progress) talk.progress({p->received_objects, p->total_objects, p->received_bytes});
  return 0;
}

}  // namespace

Result<std::vector<RemoteHead>> fetch(const Repository& repo, const std::string& url,
                                      const std::function<Result<std::vector<std::string>>(const std::vector<RemoteHead>&)>& choose,
                                      const std::function<void(const Arrived&)>& progress) {
  H5I_TRY(ready());
  H5I_TRY(check_url(url));
  git_remote_create_options create = GIT_REMOTE_CREATE_OPTIONS_INIT;
  create.repository = repo.handle();
  create.flags = GIT_REMOTE_CREATE_SKIP_INSTEADOF | GIT_REMOTE_CREATE_SKIP_DEFAULT_FETCHSPEC;
  git_remote* raw = nullptr;
  if (git_remote_create_with_opts(&raw, url.c_str(), &create) < 0) return library_error(Errc::GIT_FAILED, "the source cannot be used: " + printable(url));
  RemoteHandle remote(raw);
  Talk talk{0, progress};
  git_fetch_options options = GIT_FETCH_OPTIONS_INIT;
  options.download_tags = GIT_REMOTE_DOWNLOAD_TAGS_NONE;
  options.update_fetchhead = 0;
  options.callbacks.credentials = credentials;
  options.callbacks.transfer_progress = arrived;
  options.callbacks.payload = &talk;
  options.proxy_opts.type = GIT_PROXY_AUTO;
  if (git_remote_connect(remote.get(), GIT_DIRECTION_FETCH, &options.callbacks, &options.proxy_opts, nullptr) < 0)
    return library_error(Errc::GIT_FAILED, "the source cannot be reached: " + printable(url));
  const git_remote_head** heads = nullptr;
  size_t count = 0;
  if (git_remote_ls(&heads, &count, remote.get()) < 0) return library_error(Errc::GIT_FAILED, "the source cannot be listed: " + printable(url));
  std::vector<RemoteHead> all;
  for (size_t i = 0; i < count; i++) all.push_back({heads[i]->name, from_git(heads[i]->oid)});
  std::vector<std::string> wanted = H5I_TRY(choose(all));
  std::vector<std::string> specs;
  std::vector<RemoteHead> out;
  for (const std::string& name : wanted) {
    auto it = std::find_if(all.begin(), all.end(), [&](const RemoteHead& h) { return h.name == name; });
    if (it == all.end()) return make_error(Errc::GIT_REVISION, "the source has no " + printable(name), printable(url));
    specs.push_back("+" + name + ":refs/h5i/fetched/" + std::to_string(specs.size()));
    out.push_back(*it);
  }
  std::vector<char*> pointers;
  for (std::string& s : specs) pointers.push_back(s.data());
  git_strarray array{pointers.data(), pointers.size()};
  if (!wanted.empty() && git_remote_download(remote.get(), &array, &options) < 0)
    return library_error(Errc::GIT_FAILED, "fetching from " + printable(url) + " failed");
  git_remote_disconnect(remote.get());
  for (const RemoteHead& h : out)
    if (!repo.has(h.target)) return make_error(Errc::GIT_FAILED, "the source did not send " + printable(h.name), h.target.hex());
  return out;
}

}  // namespace h5i::git
