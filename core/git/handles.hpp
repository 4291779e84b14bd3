// Owners of libgit2's objects and conversions. Included by the sources of core/git only.
#pragma once
#include <git2.h>

#include <cstring>
#include <memory>

#include "core/git/object.hpp"

namespace h5i::git {

template <class T, void (*F)(T*)>
struct Freer {
  void operator()(T* p) const { F(p); }
};
#define H5I_GIT_HANDLE(NAME, TYPE, FREE) using NAME = std::unique_ptr<TYPE, Freer<TYPE, FREE>>
H5I_GIT_HANDLE(RepositoryHandle, git_repository, git_repository_free);
H5I_GIT_HANDLE(OdbHandle, git_odb, git_odb_free);
H5I_GIT_HANDLE(OdbObjectHandle, git_odb_object, git_odb_object_free);
H5I_GIT_HANDLE(ObjectHandle, git_object, git_object_free);
H5I_GIT_HANDLE(CommitHandle, git_commit, git_commit_free);
H5I_GIT_HANDLE(TreeHandle, git_tree, git_tree_free);
H5I_GIT_HANDLE(ReferenceHandle, git_reference, git_reference_free);
H5I_GIT_HANDLE(ReferenceIteratorHandle, git_reference_iterator, git_reference_iterator_free);
H5I_GIT_HANDLE(SignatureHandle, git_signature, git_signature_free);
H5I_GIT_HANDLE(IndexHandle, git_index, git_index_free);
H5I_GIT_HANDLE(ConflictsHandle, git_index_conflict_iterator, git_index_conflict_iterator_free);
H5I_GIT_HANDLE(ConfigHandle, git_config, git_config_free);
H5I_GIT_HANDLE(ConfigIteratorHandle, git_config_iterator, git_config_iterator_free);
H5I_GIT_HANDLE(RemoteHandle, git_remote, git_remote_free);
H5I_GIT_HANDLE(PackHandle, git_packbuilder, git_packbuilder_free);
#undef H5I_GIT_HANDLE

inline git_oid to_git(const Oid& o) {
  git_oid g;
  memcpy(g.id, o.raw.data(), o.raw.size());
  return g;
}
inline Oid from_git(const git_oid& g) {
  Oid o;
  memcpy(o.raw.data(), g.id, o.raw.size());
  return o;
}

}  // namespace h5i::git
