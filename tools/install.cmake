# install.cmake — What `make install PREFIX=DIR` puts where; the Debian packages (packages.cmake) hold the same.
include(CMakePackageConfigHelpers)

# What a static library needs, as pkg-config says it.
list(TRANSFORM WEIR_PRIVATE_LIBRARIES PREPEND "-l" OUTPUT_VARIABLE WEIR_LIBS_PRIVATE)
list(JOIN WEIR_LIBS_PRIVATE " " WEIR_LIBS_PRIVATE)
set(WEIR_LIBS "-lweir")
if(WEIR_STATIC STREQUAL "ONLY")  # then nobody need say --static
  set(WEIR_LIBS "-lweir ${WEIR_LIBS_PRIVATE}")
endif()

set(WEIR_LIBRARY_TARGETS weir)
if(TARGET weir_static)
  list(APPEND WEIR_LIBRARY_TARGETS weir_static)
endif()
write_basic_package_version_file(${PROJECT_BINARY_DIR}/weirConfigVersion.cmake COMPATIBILITY SameMinorVersion)
file(WRITE ${PROJECT_BINARY_DIR}/weirConfig.cmake "include(\"\${CMAKE_CURRENT_LIST_DIR}/weirTargets.cmake\")\n")

# weir_install(LIBDIR NAME OPTIONS…) — Everything, with libraries in LIBDIR, as components NAMEcommand, NAMElibrary,
# NAMEdevelopment and, where it is built, NAMEtensorflow. OPTIONS go to every install command.
function(weir_install libdir name)
  install(TARGETS weir_cli RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR} COMPONENT ${name}command ${ARGN})
  install(FILES ${PROJECT_SOURCE_DIR}/docs/weir.1 DESTINATION ${CMAKE_INSTALL_MANDIR}/man1 COMPONENT ${name}command ${ARGN})
  install(FILES ${PROJECT_SOURCE_DIR}/tools/completion.bash RENAME weir
    DESTINATION ${CMAKE_INSTALL_DATADIR}/bash-completion/completions COMPONENT ${name}command ${ARGN})

  install(TARGETS ${WEIR_LIBRARY_TARGETS} EXPORT weir${name}Targets
    LIBRARY DESTINATION ${libdir} COMPONENT ${name}library NAMELINK_COMPONENT ${name}development ${ARGN}
    ARCHIVE DESTINATION ${libdir} COMPONENT ${name}development ${ARGN})
  install(DIRECTORY ${PROJECT_SOURCE_DIR}/include/weir ${PROJECT_BINARY_DIR}/include/weir
    DESTINATION ${CMAKE_INSTALL_INCLUDEDIR} COMPONENT ${name}development ${ARGN})
  install(FILES ${PROJECT_SOURCE_DIR}/docs/weir.3 DESTINATION ${CMAKE_INSTALL_MANDIR}/man3 COMPONENT ${name}development ${ARGN})
  install(EXPORT weir${name}Targets FILE weirTargets.cmake NAMESPACE weir:: DESTINATION ${libdir}/cmake/weir
    COMPONENT ${name}development ${ARGN})
  install(FILES ${PROJECT_BINARY_DIR}/weirConfig.cmake ${PROJECT_BINARY_DIR}/weirConfigVersion.cmake
    DESTINATION ${libdir}/cmake/weir COMPONENT ${name}development ${ARGN})
  file(RELATIVE_PATH WEIR_UP "/${libdir}/pkgconfig" "/")  # the prefix, as seen from weir.pc: a tree may be moved
  string(REGEX REPLACE "/$" "" WEIR_UP "${WEIR_UP}")
  configure_file(${PROJECT_SOURCE_DIR}/tools/weir.pc.in ${PROJECT_BINARY_DIR}/generated/${name}pc/weir.pc @ONLY)
  install(FILES ${PROJECT_BINARY_DIR}/generated/${name}pc/weir.pc DESTINATION ${libdir}/pkgconfig COMPONENT ${name}development ${ARGN})

  if(TARGET tensorflow)  # TensorFlow's pair of libraries, and its headers
    install(TARGETS tensorflow tensorflow_framework LIBRARY DESTINATION ${libdir} COMPONENT ${name}tensorflow ${ARGN})
    install(DIRECTORY ${PROJECT_SOURCE_DIR}/include/tensorflow DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}
      COMPONENT ${name}tensorflow ${ARGN})
    configure_file(${PROJECT_SOURCE_DIR}/tools/tensorflow.pc.in ${PROJECT_BINARY_DIR}/generated/${name}pc/tensorflow.pc @ONLY)
    install(FILES ${PROJECT_BINARY_DIR}/generated/${name}pc/tensorflow.pc DESTINATION ${libdir}/pkgconfig
      COMPONENT ${name}tensorflow ${ARGN})
  endif()
endfunction()

weir_install(${CMAKE_INSTALL_LIBDIR} "")
include(tools/packages.cmake)
