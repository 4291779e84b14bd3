// The part of a rebase that changes a box. It is written down first, so that after any death of ours the next command
// completes it.
#pragma once
#include "core/cli/repo_box.hpp"

namespace h5i::cli {

struct RebasePlan {
  git::Oid work_tree;    // what $WORK holds now
  git::Oid merged_tree;  // what it will hold
  git::Oid onto;         // the new base
};

// Writes the plan down and carries it out. `states` are those of $WORK now.
Result<size_t> carry_out_rebase(IdleBox& box, const RebasePlan& plan, git::States states);
// Completes what a killed rebase left; nothing when there is nothing.
Result<void> finish_rebase(IdleBox& box);

}  // namespace h5i::cli
