# What `make install PREFIX=DIR` puts where.
include(CMakePackageConfigHelpers)
install(TARGETS weir_cli RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR})
install(TARGETS weir EXPORT weirTargets LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR})
install(DIRECTORY ${PROJECT_SOURCE_DIR}/include/weir ${PROJECT_BINARY_DIR}/include/weir
  DESTINATION ${CMAKE_INSTALL_INCLUDEDIR})
install(EXPORT weirTargets NAMESPACE weir:: DESTINATION ${CMAKE_INSTALL_LIBDIR}/cmake/weir)
file(WRITE ${PROJECT_BINARY_DIR}/weirConfig.cmake "include(\"\${CMAKE_CURRENT_LIST_DIR}/weirTargets.cmake\")\n")
write_basic_package_version_file(${PROJECT_BINARY_DIR}/weirConfigVersion.cmake COMPATIBILITY SameMinorVersion)
install(FILES ${PROJECT_BINARY_DIR}/weirConfig.cmake ${PROJECT_BINARY_DIR}/weirConfigVersion.cmake
  DESTINATION ${CMAKE_INSTALL_LIBDIR}/cmake/weir)
configure_file(${PROJECT_SOURCE_DIR}/tools/weir.pc.in ${PROJECT_BINARY_DIR}/weir.pc @ONLY)
install(FILES ${PROJECT_BINARY_DIR}/weir.pc DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig)
install(FILES ${PROJECT_SOURCE_DIR}/docs/weir.1 DESTINATION ${CMAKE_INSTALL_MANDIR}/man1)
