# shared.cmake — libweir.so: what it exports, and how it is linked.
add_library(weir SHARED $<TARGET_OBJECTS:weir_library>)
target_link_libraries(weir PRIVATE weir_core)
set_target_properties(weir PROPERTIES VERSION ${PROJECT_VERSION} SOVERSION 0)
target_link_options(weir PRIVATE -Wl,--version-script=${PROJECT_SOURCE_DIR}/tools/weir.map)
if(NOT WEIR_SANITIZE)  # the sanitizers' own symbols come with the program
  target_link_options(weir PRIVATE -Wl,--no-undefined)
endif()
target_link_options(weir PRIVATE -Wl,-Bsymbolic-functions)  # calls of its own functions go straight
target_link_options(weir PRIVATE $<$<CONFIG:MinSizeRel>:-Wl,--gc-sections>)
target_link_options(weir PRIVATE $<$<CONFIG:Release,MinSizeRel>:-s>)  # names of static functions: a tenth of the file
# Tables of ops are pointers, each of which the loader sets: packed, they take a twentieth. Loaders know it since glibc 2.36.
include(CheckLinkerFlag)
check_linker_flag(C "-Wl,-z,pack-relative-relocs" WEIR_HAS_PACKED_RELOCATIONS)
if(WEIR_HAS_PACKED_RELOCATIONS)
  target_link_options(weir PRIVATE $<$<CONFIG:Release,MinSizeRel>:-Wl,-z,pack-relative-relocs>)
endif()
set_target_properties(weir PROPERTIES LINK_DEPENDS ${PROJECT_SOURCE_DIR}/tools/weir.map)
