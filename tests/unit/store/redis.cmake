# The Redis store. Tests that need a redis-server start one of their own; where the program is
# missing they are skipped.
foreach(name url names answer failure steps stream scripts values lists servers peer listen gate
        store barrier sentinel watcher handshake login)
    gavel_unit_test(test_redis_${name} ${CMAKE_CURRENT_LIST_DIR}/test_redis_${name}.c
        gavel_store_redis)
    set_tests_properties(unit.test_redis_${name} PROPERTIES SKIP_RETURN_CODE 77)
endforeach()
# With a server or with real timeouts: too long for those tests that run at each save.
foreach(name scripts values lists servers peer listen gate store barrier sentinel watcher
        handshake login)
    set_tests_properties(unit.test_redis_${name} PROPERTIES LABELS store)
endforeach()
# Its look-ups are played by the test.
target_link_options(test_redis_gate PRIVATE
    -Wl,--wrap=uv_getaddrinfo -Wl,--wrap=uv_freeaddrinfo)

add_library(store_tls_kit STATIC ${CMAKE_CURRENT_LIST_DIR}/tls_kit.c ${CMAKE_CURRENT_LIST_DIR}/tls_test.c)
target_link_libraries(store_tls_kit PUBLIC gavel_store_redis PkgConfig::CMOCKA)
foreach(name tls tls_trust tls_files)
    gavel_unit_test(test_redis_${name} ${CMAKE_CURRENT_LIST_DIR}/test_redis_${name}.c store_tls_kit)
endforeach()

gavel_unit_test(test_redlock_list ${CMAKE_CURRENT_LIST_DIR}/test_redlock_list.c gavel_store_redlock)
