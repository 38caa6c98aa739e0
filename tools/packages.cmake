# packages.cmake — Debian packages of a build, by CPack: `make deb`. What is in them is what install.cmake installs.
#
#   weir                the command, its manual page, its completion
#   libweir0            the shared library
#   libweir-dev         headers, files for pkg-config and CMake, the static library where there is one
#   libtensorflow-weir  libtensorflow.so.2, which needs none of the others, its headers, a file for pkg-config
if(NOT CMAKE_LIBRARY_ARCHITECTURE)  # not a Debian
  return()
endif()
set(WEIR_PACKAGE_CONTACT "Weir's maintainers <maintainers@weir.invalid>" CACHE STRING "Whom Debian packages name as maintainer")

set(components debcommand deblibrary debdevelopment)
if(TARGET tensorflow)
  list(APPEND components debtensorflow)
endif()
weir_install(lib/${CMAKE_LIBRARY_ARCHITECTURE} deb EXCLUDE_FROM_ALL)
# The library is where the loader looks, so the command need not say where it is.
install(CODE "file(RPATH_REMOVE FILE \"\$ENV{DESTDIR}\${CMAKE_INSTALL_PREFIX}/${CMAKE_INSTALL_BINDIR}/weir\")"
  COMPONENT debcommand EXCLUDE_FROM_ALL)

set(CPACK_GENERATOR DEB)
set(CPACK_DEB_COMPONENT_INSTALL ON)
set(CPACK_COMPONENTS_GROUPING IGNORE)
set(CPACK_COMPONENTS_ALL ${components})
set(CPACK_STRIP_FILES ON)
set(CPACK_PACKAGE_CONTACT ${WEIR_PACKAGE_CONTACT})
set(CPACK_PACKAGE_DIRECTORY ${PROJECT_BINARY_DIR}/packages)
set(CPACK_PACKAGING_INSTALL_PREFIX /usr)
set(CPACK_INSTALL_DEFAULT_DIRECTORY_PERMISSIONS
  OWNER_READ OWNER_WRITE OWNER_EXECUTE GROUP_READ GROUP_EXECUTE WORLD_READ WORLD_EXECUTE)
set(CPACK_DEBIAN_FILE_NAME DEB-DEFAULT)
set(CPACK_DEBIAN_PACKAGE_CONTROL_STRICT_PERMISSION ON)
set(CPACK_DEBIAN_PACKAGE_GENERATE_SHLIBS ON)
set(CPACK_DEBIAN_PACKAGE_SHLIBDEPS_PRIVATE_DIRS ${PROJECT_BINARY_DIR})
set(CPACK_VERBATIM_VARIABLES ON)

# weir_package(COMPONENT NAME SECTION SHORT LONG) — What its control file says.
function(weir_package component name section short long)
  install(FILES ${PROJECT_SOURCE_DIR}/tools/copyright DESTINATION ${CMAKE_INSTALL_DATADIR}/doc/${name}
    COMPONENT ${component} EXCLUDE_FROM_ALL)
  string(TOUPPER ${component} key)
  set(CPACK_DEBIAN_${key}_PACKAGE_NAME ${name} PARENT_SCOPE)
  set(CPACK_DEBIAN_${key}_PACKAGE_SECTION ${section} PARENT_SCOPE)
  set(CPACK_DEBIAN_${key}_DESCRIPTION "${short}\n${long}" PARENT_SCOPE)
  set(CPACK_COMPONENT_${key}_DESCRIPTION "${short}\n${long}" PARENT_SCOPE)
endfunction()

weir_package(debcommand weir science "run, time, inspect and serve TensorFlow graphs"
  "The weir command works on dataflow graphs in TensorFlow's formats: it shows
what is in them, runs and times them, and serves them to TensorFlow's clients.")
set(CPACK_DEBIAN_DEBCOMMAND_PACKAGE_DEPENDS "libweir0 (= ${PROJECT_VERSION})")
set(CPACK_DEBIAN_DEBCOMMAND_PACKAGE_SHLIBDEPS ON)

weir_package(deblibrary libweir0 libs "dataflow graphs with mutable state: training and inference from C"
  "Weir builds, differentiates and runs TensorFlow graphs, in one process or on a
cluster. It opens OpenBLAS, libwebp, libjxl and libsqlite3 where they are
installed, and NVIDIA's libraries for GPUs.")
set(CPACK_DEBIAN_DEBLIBRARY_PACKAGE_SHLIBDEPS ON)
# What is opened at run time, which no linker knows.
set(CPACK_DEBIAN_DEBLIBRARY_PACKAGE_RECOMMENDS "libopenblas0-pthread | libopenblas0, libsqlite3-0, libwebp7, libjxl0.7 | libjxl0.11")
set(CPACK_DEBIAN_DEBLIBRARY_PACKAGE_SUGGESTS "libucx0")

weir_package(debdevelopment libweir-dev libdevel "files to build programs with Weir"
  "Headers, and files for pkg-config and CMake, of libweir0.")
set(CPACK_DEBIAN_DEBDEVELOPMENT_PACKAGE_DEPENDS "libweir0 (= ${PROJECT_VERSION})")
if(TARGET weir_static)
  set(CPACK_DEBIAN_DEBDEVELOPMENT_PACKAGE_SUGGESTS "libjpeg-dev, libnghttp2-dev, libpng-dev, libssl-dev")
endif()

if(TARGET tensorflow)
  weir_package(debtensorflow libtensorflow-weir libs "TensorFlow's C API over Weir"
    "libtensorflow.so.2 and its headers: programs that are linked to TensorFlow's
library run on Weir's.")
  set(CPACK_DEBIAN_DEBTENSORFLOW_PACKAGE_SHLIBDEPS ON)
  set(CPACK_DEBIAN_DEBTENSORFLOW_PACKAGE_RECOMMENDS "${CPACK_DEBIAN_DEBLIBRARY_PACKAGE_RECOMMENDS}")
endif()
include(CPack)
