// A process that is where a box is, and is not guarded by anything.
#pragma once

namespace h5i::adversary {

// Namespaces of every kind that a box has, of this user's own: it is root in them and nowhere else, sees all files, and nothing of a tier is
// there. What comes of the calling process is their first process. Ends the process when this machine does not allow it.
void enter_bare_namespaces();

}  // namespace h5i::adversary
