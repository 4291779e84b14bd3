# h5i_add_plugin(): the one way to build a plugin, in this tree and outside it.
