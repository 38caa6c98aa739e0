# static.cmake — libweir.a: weir_archive(TARGET) makes it, of the objects that the shared library is made of.

# What it needs of others, by the names that linkers know.
set(WEIR_PRIVATE_LIBRARIES m pthread ${CMAKE_DL_LIBS})
if(JPEG_FOUND)
  list(APPEND WEIR_PRIVATE_LIBRARIES jpeg)
endif()
if(PNG_FOUND)
  list(APPEND WEIR_PRIVATE_LIBRARIES png z)
endif()
if(WEIR_CLUSTER)
  list(APPEND WEIR_PRIVATE_LIBRARIES nghttp2 ssl crypto)
endif()

function(weir_archive target)
  add_library(${target} STATIC $<TARGET_OBJECTS:weir_core> $<TARGET_OBJECTS:weir_library>)
  set_target_properties(${target} PROPERTIES OUTPUT_NAME weir LINKER_LANGUAGE C)
  target_link_libraries(${target} INTERFACE ${WEIR_PRIVATE_LIBRARIES})
  add_custom_command(TARGET ${target} POST_BUILD
    COMMAND ${PROJECT_SOURCE_DIR}/tools/one_object.sh $<TARGET_FILE:${target}> ${CMAKE_C_COMPILER} ${CMAKE_OBJCOPY} ${CMAKE_AR} VERBATIM)
endfunction()
