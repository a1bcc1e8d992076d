"""What one idle election costs: anonymous memory, resident memory next to that of an empty program
linked with the same libraries, and wake-ups a second."""

import os
import re
import subprocess

from kit.clock import S, boottime_ns, wait_until


def status_field(pid, name):
    with open(f"/proc/{pid}/status") as f:
        return int(re.search(rf"^{name}:\s+(\d+)", f.read(), re.MULTILINE).group(1))


def wake_ups(pid):
    """Voluntary switches of all threads: each is one sleep that ended."""
    return sum(status_field(f"{pid}/task/{t}", "voluntary_ctxt_switches")
               for t in os.listdir(f"/proc/{pid}/task"))


def wake_ups_per_second(pid, seconds):
    began, before = boottime_ns(), wake_ups(pid)
    wait_until(lambda: boottime_ns() - began > seconds * S, seconds + 5, poll=0.2)
    return (wake_ups(pid) - before) / ((boottime_ns() - began) / S)


def libraries_of(program):
    text = subprocess.run(["ldd", program], capture_output=True, text=True, check=True).stdout
    return [path for path in re.findall(r"=> (/\S+)", text) if "libc.so" not in path]


def empty_program_kib(program, folder):
    """Resident memory of a program that only waits, linked with all that `program` is linked
    with."""
    source, binary = os.path.join(folder, "empty.c"), os.path.join(folder, "empty")
    with open(source, "w") as f:
        f.write("#include <unistd.h>\n"
                "int main(void) { return write(1, \"\", 1) == 1 ? pause() : 1; }\n")
    subprocess.run(["cc", "-o", binary, source, "-Wl,--no-as-needed", *libraries_of(program)],
                   check=True)
    with subprocess.Popen([binary], stdout=subprocess.PIPE) as process:
        try:
            process.stdout.read(1)  # it is in main(), all libraries are loaded
            return status_field(process.pid, "VmRSS")
        finally:
            process.kill()
