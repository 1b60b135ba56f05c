/** The system calls that programs in the sandbox may not use. Everything else is allowed. */
import type { Syscall } from './seccomp-syscalls.ts'

/** Compares the lower 32 bits of an argument: the kernel ignores the rest of the arguments below. */
export type Condition = { readonly argument: number } & (
  | { readonly hasAnyOf: number }
  | { readonly isOneOf: readonly number[] }
  | { readonly isNoneOf: readonly number[] }
)

/** The call fails with `errno` if all conditions are true; without conditions, always. */
export type Rule = { readonly calls: readonly Syscall[]; readonly errno: number; readonly when?: readonly Condition[] }

const EPERM = 1
const ENOSYS = 38
const EPROTONOSUPPORT = 93
const EAFNOSUPPORT = 97

const deny = (...calls: readonly Syscall[]): Rule => ({ calls, errno: EPERM })

/** Programs then use the older call, whose arguments can be inspected. */
const hide = (...calls: readonly Syscall[]): Rule => ({ calls, errno: ENOSYS })

/** CLONE_NEWNS, NEWCGROUP, NEWUTS, NEWIPC, NEWUSER, NEWPID, NEWNET. */
const NEW_NAMESPACE = 0x00020000 | 0x02000000 | 0x04000000 | 0x08000000 | 0x10000000 | 0x20000000 | 0x40000000
/** The flag is for `unshare` alone: for `clone` it is part of the signal number. */
const CLONE_NEWTIME = 0x80

/** S_ISUID, S_ISGID: a program with them runs with its owner's rights, even if another user of the host starts it. */
const SET_ID = 0o6000
/** O_CREAT, and the distinguishing bit of O_TMPFILE: without them the mode is ignored, and may have any value. */
const CREATES = 0o100 | 0o20000000

/** PTRACE_ATTACH, PTRACE_SEIZE. */
const ATTACH = [16, 0x4206]

/** TIOCSTI types into a terminal, TIOCLINUX pastes into a console. */
const TERMINAL_INPUT = [0x5412, 0x541c]

/** AF_UNIX, AF_INET, AF_INET6, AF_NETLINK. Not AF_VSOCK (the hypervisor), AF_PACKET, AF_ALG, … */
const FAMILIES = [1, 2, 10, 16]
const AF_NETLINK = 16
/** Lists addresses and routes. The other families are for auditing, devices and packet filters. */
const NETLINK_ROUTE = 0

/** PER_LINUX, PER_LINUX32, each also with UNAME26, ADDR_NO_RANDOMIZE (debuggers), and the query. */
const PERSONALITIES = [0, 0x8, 0x20000, 0x20008, 0x40000, 0xffffffff]

/**
 * F_SETLEASE, and F_SETDELEG of Linux 6.19: opening the file, or changing the directory, then blocks for up to 45 seconds,
 * also for the server and other conversations' shells.
 */
const SET_LEASE = [1024, 1040]

export const RULES: readonly Rule[] = [
  // Keyrings belong to a user, not to a sandbox: all conversations would share them.
  deny('add_key', 'request_key', 'keyctl'),
  // Large parts of the kernel that hardly any program needs, and that many sandbox escapes used.
  deny('bpf', 'userfaultfd', 'perf_event_open', 'io_uring_setup', 'io_uring_enter', 'io_uring_register'),
  // Mounts hide the host's files. `setns` and new namespaces give the rights to change them.
  deny('mount', 'umount2', 'pivot_root', 'move_mount', 'open_tree', 'open_tree_attr'),
  deny('fsopen', 'fsconfig', 'fsmount', 'fspick', 'mount_setattr'),
  deny('setns'),
  { calls: ['unshare'], errno: EPERM, when: [{ argument: 0, hasAnyOf: NEW_NAMESPACE | CLONE_NEWTIME }] },
  { calls: ['clone'], errno: EPERM, when: [{ argument: 0, hasAnyOf: NEW_NAMESPACE }] },
  hide('clone3'),
  // Handles reach files that no mount shows.
  deny('open_by_handle_at', 'name_to_handle_at', 'fanotify_init'),
  // Access to other processes: only those of the sandbox are visible. Debuggers work, but not on its init, which ends
  // the sandbox with the server.
  deny('process_vm_readv', 'process_vm_writev', 'process_madvise', 'pidfd_getfd'),
  {
    calls: ['ptrace'],
    errno: EPERM,
    when: [
      { argument: 0, isOneOf: ATTACH },
      { argument: 1, isOneOf: [1] },
    ],
  },
  // These affect the whole machine.
  deny('kexec_load', 'kexec_file_load', 'init_module', 'finit_module', 'delete_module'),
  deny('create_module', 'get_kernel_syms', 'query_module'),
  deny('reboot', 'swapon', 'swapoff', 'acct', 'syslog', 'quotactl', 'quotactl_fd', 'settimeofday', 'clock_settime'),
  deny('iopl', 'ioperm', 'modify_ldt', 'vhangup', 'lookup_dcookie', 'nfsservctl', 'uselib', '_sysctl'),
  { calls: ['personality'], errno: EPERM, when: [{ argument: 0, isNoneOf: PERSONALITIES }] },
  { calls: ['ioctl'], errno: EPERM, when: [{ argument: 1, isOneOf: TERMINAL_INPUT }] },
  { calls: ['fcntl'], errno: EPERM, when: [{ argument: 1, isOneOf: SET_LEASE }] },
  { calls: ['socket', 'socketpair'], errno: EAFNOSUPPORT, when: [{ argument: 0, isNoneOf: FAMILIES }] },
  {
    calls: ['socket'],
    errno: EPROTONOSUPPORT,
    when: [
      { argument: 0, isOneOf: [AF_NETLINK] },
      { argument: 2, isNoneOf: [NETLINK_ROUTE] },
    ],
  },
  // Files with these bits would remain in the workdir after the sandbox.
  { calls: ['chmod', 'fchmod', 'mknod', 'creat'], errno: EPERM, when: [{ argument: 1, hasAnyOf: SET_ID }] },
  { calls: ['fchmodat', 'fchmodat2', 'mknodat'], errno: EPERM, when: [{ argument: 2, hasAnyOf: SET_ID }] },
  {
    calls: ['open'],
    errno: EPERM,
    when: [
      { argument: 1, hasAnyOf: CREATES },
      { argument: 2, hasAnyOf: SET_ID },
    ],
  },
  {
    calls: ['openat'],
    errno: EPERM,
    when: [
      { argument: 2, hasAnyOf: CREATES },
      { argument: 3, hasAnyOf: SET_ID },
    ],
  },
  // Its mode is in memory, where the filter cannot read it.
  hide('openat2'),
]
