# cmake --install: the programs (sidecar/cli), what applications link to, the systemd unit, and the
# files that operators need. Components: gavel (what an image needs), service, development, operations.
include(GNUInstallDirs)
set(gavel_share ${CMAKE_INSTALL_DATADIR}/gavel)

install(FILES ${CMAKE_SOURCE_DIR}/LICENSE DESTINATION ${CMAKE_INSTALL_DOCDIR} COMPONENT gavel)

install(TARGETS gavel_page ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR} COMPONENT development)
install(FILES ${CMAKE_SOURCE_DIR}/sidecar/clients/c/gavel_page.h
    DESTINATION ${CMAKE_INSTALL_INCLUDEDIR} COMPONENT development)

# The unit names the program by its whole path. systemd looks into lib/, whatever the architecture.
file(READ ${CMAKE_CURRENT_LIST_DIR}/systemd/gavel@.service unit)
string(REPLACE /usr/bin/gavel ${CMAKE_INSTALL_FULL_BINDIR}/gavel unit "${unit}")
file(WRITE ${CMAKE_BINARY_DIR}/systemd/gavel@.service "${unit}")
set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS
    ${CMAKE_CURRENT_LIST_DIR}/systemd/gavel@.service)
install(FILES ${CMAKE_BINARY_DIR}/systemd/gavel@.service
    DESTINATION lib/systemd/system COMPONENT service)
install(FILES ${CMAKE_CURRENT_LIST_DIR}/systemd/gavel.sysusers.conf
    DESTINATION lib/sysusers.d RENAME gavel.conf COMPONENT service)

install(DIRECTORY ${CMAKE_CURRENT_LIST_DIR}/sql DESTINATION ${gavel_share} COMPONENT operations)
foreach(part monitoring kubernetes operations.md migrate-leader-elector.md)
    if(IS_DIRECTORY ${CMAKE_CURRENT_LIST_DIR}/${part})
        install(DIRECTORY ${CMAKE_CURRENT_LIST_DIR}/${part}
            DESTINATION ${gavel_share} COMPONENT operations)
    elseif(EXISTS ${CMAKE_CURRENT_LIST_DIR}/${part})
        install(FILES ${CMAKE_CURRENT_LIST_DIR}/${part}
            DESTINATION ${gavel_share} COMPONENT operations)
    endif()
endforeach()
