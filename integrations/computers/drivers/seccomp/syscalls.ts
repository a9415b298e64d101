/** The machines that the filters support, as Node names them. */
export type Machine = 'x64' | 'arm64';

/** From the kernel's `audit.h`: the machine that a system call was made for. */
export const auditArch: Record<Machine, number> = { x64: 0xc000003e, arm64: 0xc00000b7 };

/** System calls whose arguments the filter checks; numbers on x64 and arm64. */
export const inspected = {
  clone: [56, 220],
  clone3: [435, 435],
  ioctl: [16, 29],
  setsockopt: [54, 208],
  socket: [41, 198],
} as const;

/** CLONE_NEWNS, NEWCGROUP, NEWUTS, NEWIPC, NEWUSER, NEWPID and NEWNET. NEWTIME is not for clone. */
export const newNamespaces = 0x7e020000;
/** ioctls that type into the terminal of the sandbox's starter. */
export const terminalRequests = [0x5412 /* TIOCSTI */, 0x541c /* TIOCLINUX */];
/** The low 16 bits of FICLONE, FICLONERANGE and FIDEDUPERANGE. */
export const sharingRequests = [0x9409, 0x940d, 0x9436];
/** All ioctls of btrfs. A new subvolume would not count against the home's limit. */
export const btrfsRequests = 0x9400;
/** AF_UNIX, AF_INET, AF_INET6. */
export const families = [1, 2, 10];
export const AF_NETLINK = 16;
/**
 * Netlink families with which programs list network interfaces and watch devices. Memory limits do not count data that
 * waits in a netlink socket, and other families would let programs send each other any amount.
 */
export const netlinkProtocols = [0 /* NETLINK_ROUTE */, 15 /* NETLINK_KOBJECT_UEVENT */];
export const SOL_SOCKET = 1;
/** SO_ATTACH_FILTER and the like: all compiled filters of the machine share one space, also this sandbox's own. */
export const filterOptions = [26, 50, 51, 52];

export const errors = { EPERM: 1, ENOTTY: 25, ENOSYS: 38, EPROTONOSUPPORT: 93, EAFNOSUPPORT: 97 } as const;

/**
 * System calls that always fail with EPERM: they make or enter namespaces and mounts, reach into the kernel, or have
 * led out of sandboxes more often than sandboxes need them. `null` if a machine lacks the call. Most need capabilities
 * that a sandbox lacks; the filter also holds if the kernel has a bug there.
 */
export const refused: Record<string, readonly [x64: number | null, arm64: number | null]> = {
  // namespaces and mounts
  unshare: [272, 97],
  setns: [308, 268],
  chroot: [161, 51],
  pivot_root: [155, 41],
  mount: [165, 40],
  umount2: [166, 39],
  move_mount: [429, 429],
  open_tree: [428, 428],
  open_tree_attr: [467, 467],
  fsopen: [430, 430],
  fsconfig: [431, 431],
  fsmount: [432, 432],
  fspick: [433, 433],
  mount_setattr: [442, 442],
  // large interfaces with a history
  bpf: [321, 280],
  io_uring_setup: [425, 425],
  io_uring_enter: [426, 426],
  io_uring_register: [427, 427],
  // The contexts of io_setup share one table of the whole machine, which databases need.
  io_setup: [206, 0],
  io_destroy: [207, 1],
  io_getevents: [208, 4],
  io_submit: [209, 2],
  io_cancel: [210, 3],
  io_pgetevents: [333, 292],
  perf_event_open: [298, 241],
  userfaultfd: [323, 282],
  add_key: [248, 217],
  request_key: [249, 218],
  keyctl: [250, 219],
  memfd_secret: [447, 447],
  // other processes, and files past their folders
  process_vm_writev: [311, 271],
  process_madvise: [440, 440],
  pidfd_getfd: [438, 438],
  kcmp: [312, 272],
  migrate_pages: [256, 238],
  move_pages: [279, 239],
  open_by_handle_at: [304, 265],
  name_to_handle_at: [303, 264],
  fanotify_init: [300, 262],
  lookup_dcookie: [212, 18],
  // the machine itself
  syslog: [103, 116],
  quotactl: [179, 60],
  quotactl_fd: [443, 443],
  init_module: [175, 105],
  finit_module: [313, 273],
  delete_module: [176, 106],
  create_module: [174, null],
  kexec_load: [246, 104],
  kexec_file_load: [320, 294],
  swapon: [167, 224],
  swapoff: [168, 225],
  clock_settime: [227, 112],
  clock_adjtime: [305, 266],
  settimeofday: [164, 170],
  adjtimex: [159, 171],
  reboot: [169, 142],
  acct: [163, 89],
  nfsservctl: [180, 42],
  iopl: [172, null],
  ioperm: [173, null],
  vhangup: [153, 58],
  uselib: [134, null],
  ustat: [136, null],
  sysfs: [139, null],
  _sysctl: [156, null],
};
