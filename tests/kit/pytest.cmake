include_guard(GLOBAL)

# The first python that has pytest; Debian's own before another one in PATH.
if(NOT GAVEL_PYTHON)
    foreach(candidate /usr/bin/python3 python3)
        execute_process(COMMAND ${candidate} -c "import pytest" RESULT_VARIABLE failed
            OUTPUT_QUIET ERROR_QUIET)
        if(NOT GAVEL_PYTHON AND "${failed}" STREQUAL "0")
            set(GAVEL_PYTHON ${candidate} CACHE STRING "A python3 that has pytest")
        endif()
    endforeach()
    if(NOT GAVEL_PYTHON)
        message(FATAL_ERROR "no python3 with pytest (package python3-pytest); -DGAVEL_TESTS=OFF builds without tests")
    endif()
endif()

get_filename_component(gavel_build_name ${CMAKE_BINARY_DIR} NAME)
if(CMAKE_BUILD_TYPE STREQUAL "Debug" OR GAVEL_SANITIZE)
    set(gavel_timing 0)
else()
    set(gavel_timing 1)
endif()
set(gavel_pytest_environment
    "GAVEL_BIN=${CMAKE_BINARY_DIR};GAVEL_TIMING=${gavel_timing};PYTHONDONTWRITEBYTECODE=1"
    CACHE INTERNAL "")
set(gavel_timing ${gavel_timing} CACHE INTERNAL "time bounds are asserted in this build")
set(gavel_build_name ${gavel_build_name} CACHE INTERNAL "")

# gavel_pytest(NAME PATHS...): one ctest test of pytest files, named from the folder tests/.
function(gavel_pytest name)
    add_test(NAME ${name} WORKING_DIRECTORY ${CMAKE_SOURCE_DIR}/tests
        COMMAND ${GAVEL_PYTHON} -m pytest -q -s -c pytest.ini ${ARGN})
    set_tests_properties(${name} PROPERTIES ENVIRONMENT "${gavel_pytest_environment}")
endfunction()
