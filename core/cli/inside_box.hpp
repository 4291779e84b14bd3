// Verbs that widen what boxes may reach are not for boxes.
#pragma once

namespace h5i::cli {

// A command of a box descends from h5i-init, or at workspace at least from h5i-host. This keeps an honest program
// honest; at the confining tiers the list is out of the box's reach anyway, and workspace confines nothing.
bool inside_box();

}  // namespace h5i::cli
