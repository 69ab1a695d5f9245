"""The system calls that a program in the sandbox may make: an allow-list, compiled for bwrap with libseccomp.

Left out are calls that no test needs and that were used to attack kernels or hide memory from the limit: io_uring,
keyrings, userfaultfd, ptrace and other processes' memory, personality, mounts, namespaces, BPF, perf, modules,
clocks, memfd and System V shared memory. A call that is left out fails as "not implemented", as on a
kernel without it, so that libraries use their fallback.
"""

from __future__ import annotations

from functools import cache
from tempfile import TemporaryFile

from bot.core.errors import SandboxError

_ENOSYS = 38
_ALLOWED = """
accept accept4 access alarm arch_prctl arm_fadvise64_64 bind brk cachestat capget capset chdir chmod chown chown32
clock_getres clock_getres_time64 clock_gettime clock_gettime64 clock_nanosleep clock_nanosleep_time64 close
close_range connect copy_file_range creat dup dup2 dup3 epoll_create epoll_create1 epoll_ctl epoll_ctl_old
epoll_pwait epoll_pwait2 epoll_wait epoll_wait_old eventfd eventfd2 execve execveat exit exit_group faccessat
faccessat2 fadvise64 fadvise64_64 fallocate fchdir fchmod fchmodat fchmodat2 fchown fchown32 fchownat fcntl
fcntl64 fdatasync fgetxattr flistxattr flock fork fremovexattr fsetxattr fstat fstat64 fstatat64 fstatfs
fstatfs64 fsync ftruncate ftruncate64 futex futex_requeue futex_time64 futex_wait futex_waitv futex_wake
futimesat get_robust_list get_thread_area getcpu getcwd getdents getdents64 getegid getegid32 geteuid geteuid32
getgid getgid32 getgroups getgroups32 getitimer getpeername getpgid getpgrp getpid getppid getpriority getrandom
getresgid getresgid32 getresuid getresuid32 getrlimit getrusage getsid getsockname getsockopt gettid gettimeofday
getuid getuid32 getxattr inotify_add_watch inotify_init inotify_init1 inotify_rm_watch ioctl ioprio_get ioprio_set
kill lchown lchown32 lgetxattr link linkat listen listxattr llistxattr lremovexattr lseek lsetxattr lstat lstat64
madvise map_shadow_stack membarrier mincore mkdir mkdirat mknod mknodat mlock mlock2 mlockall mmap mmap2 mprotect
mremap mseal msync munlock munlockall munmap name_to_handle_at nanosleep newfstatat open openat openat2 pause
pidfd_open pidfd_send_signal pipe pipe2 pkey_alloc pkey_free pkey_mprotect poll ppoll ppoll_time64 prctl pread64
preadv preadv2 prlimit64 pselect6 pselect6_time64 pwrite64 pwritev pwritev2 read readahead readlink readlinkat
readv recv recvfrom recvmmsg recvmmsg_time64 recvmsg removexattr rename renameat renameat2 restart_syscall
riscv_flush_icache riscv_hwprobe rmdir rseq rt_sigaction rt_sigpending rt_sigprocmask rt_sigqueueinfo
rt_sigreturn rt_sigsuspend rt_sigtimedwait rt_sigtimedwait_time64 rt_tgsigqueueinfo sched_get_priority_max
sched_get_priority_min sched_getaffinity sched_getattr sched_getparam sched_getscheduler sched_rr_get_interval
sched_setaffinity sched_setattr sched_setparam sched_setscheduler sched_yield select semctl semget semop
semtimedop send sendfile sendfile64 sendmmsg sendmsg sendto set_robust_list set_thread_area set_tid_address
setfsgid setfsuid setgid setgid32 setgroups setgroups32 setitimer setpgid setpriority setregid setregid32
setresgid setresgid32 setresuid setresuid32 setreuid setreuid32 setrlimit setsid setsockopt setuid setuid32
setxattr shutdown sigaltstack signalfd signalfd4 sigreturn socketcall splice stat stat64 statfs statfs64 statx
symlink symlinkat sync_file_range sync_file_range2 syncfs sysinfo tee tgkill time timer_create timer_delete
timer_getoverrun timer_gettime timer_gettime64 timer_settime timer_settime64 timerfd_create timerfd_gettime
timerfd_gettime64 timerfd_settime timerfd_settime64 times tkill truncate truncate64 ugetrlimit umask uname unlink
unlinkat utime utimensat utimensat_time64 utimes vfork vmsplice wait4 waitid waitpid write writev
"""
#: CLONE_NEWTIME aside, which clone cannot ask for: NEWNS, NEWCGROUP, NEWUTS, NEWIPC, NEWUSER, NEWPID, NEWNET.
_NAMESPACES = 0x00020000 | 0x02000000 | 0x04000000 | 0x08000000 | 0x10000000 | 0x20000000 | 0x40000000
_UNIX, _INET, _INET6, _NETLINK = 1, 2, 10, 16


@cache
def program() -> bytes:
    """Compile the filter for ``bwrap --seccomp``. Raises SandboxError if libseccomp is missing."""
    try:
        import pyseccomp
    except (ImportError, RuntimeError, OSError) as error:
        raise SandboxError("libseccomp is not installed (Debian, Ubuntu: apt-get install libseccomp2)") from error
    rules = pyseccomp.SyscallFilter(pyseccomp.ERRNO(_ENOSYS))
    allow, equal, masked = pyseccomp.ALLOW, pyseccomp.EQ, pyseccomp.MASKED_EQ
    for name in _ALLOWED.split():
        # An older library does not know every call, and no architecture has all of them.
        if pyseccomp.resolve_syscall(pyseccomp.Arch.NATIVE, name) != -1:
            rules.add_rule(allow, name)
    rules.add_rule(allow, "clone", pyseccomp.Arg(0, masked, _NAMESPACES, 0))
    # No sockets that end in the kernel or the machine around this one (AF_ALG, AF_VSOCK, packets).
    for family in (_UNIX, _INET, _INET6):
        rules.add_rule(allow, "socket", pyseccomp.Arg(0, equal, family))
    rules.add_rule(allow, "socket", pyseccomp.Arg(0, equal, _NETLINK), pyseccomp.Arg(2, equal, 0))
    rules.add_rule(allow, "socketpair", pyseccomp.Arg(0, equal, _UNIX))
    with TemporaryFile() as stream:
        rules.export_bpf(stream)
        stream.seek(0)
        return stream.read()
