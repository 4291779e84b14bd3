# The verbs that need the git library, the policy's parsers and the gate.
add_executable(h5i-repo repo_main.cpp box_create.cpp create_source.cpp create_stage.cpp tier_pick.cpp repo_box.cpp
  box_diff.cpp box_compare.cpp box_propose.cpp box_apply.cpp box_export.cpp box_rebase.cpp rebase_work.cpp leftovers.cpp box_abort.cpp box_rm.cpp)
target_link_libraries(h5i-repo PRIVATE h5i_cli h5i_box h5i_gate h5i_policy h5i_session h5i_plugin h5i_plugin_client h5i_sealing)
set_target_properties(h5i-repo PROPERTIES RUNTIME_OUTPUT_DIRECTORY "${PROJECT_BINARY_DIR}/out/libexec/h5i")
install(TARGETS h5i-repo RUNTIME DESTINATION libexec/h5i COMPONENT runtime)
