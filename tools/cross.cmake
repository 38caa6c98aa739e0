# cross.cmake — A toolchain for the other of Weir's two processors, of Debian's packages: aarch64 on x86-64, and the other way round.
# What the build runs itself, it runs in QEMU (qemu-user-static). For another processor, copy this file and change the name.
cmake_host_system_information(RESULT host QUERY OS_PLATFORM)
if(host MATCHES "x86_64|amd64")
  set(CMAKE_SYSTEM_PROCESSOR aarch64)
else()
  set(CMAKE_SYSTEM_PROCESSOR x86_64)
endif()
set(CMAKE_SYSTEM_NAME Linux)
set(triplet ${CMAKE_SYSTEM_PROCESSOR}-linux-gnu)
set(CMAKE_C_COMPILER ${triplet}-gcc)
set(CMAKE_AR ${triplet}-ar)
set(CMAKE_RANLIB ${triplet}-ranlib)
set(CMAKE_OBJCOPY ${triplet}-objcopy)
set(CMAKE_STRIP ${triplet}-strip)

# Libraries and headers of this machine are not the other's.
set(CMAKE_FIND_ROOT_PATH /usr/${triplet})
set(CMAKE_FIND_ROOT_PATH_MODE_PROGRAM NEVER)
set(CMAKE_FIND_ROOT_PATH_MODE_LIBRARY ONLY)
set(CMAKE_FIND_ROOT_PATH_MODE_INCLUDE ONLY)
set(CMAKE_FIND_ROOT_PATH_MODE_PACKAGE ONLY)

find_program(WEIR_EMULATOR qemu-${CMAKE_SYSTEM_PROCESSOR}-static)
if(WEIR_EMULATOR)
  set(CMAKE_CROSSCOMPILING_EMULATOR ${WEIR_EMULATOR})
endif()
