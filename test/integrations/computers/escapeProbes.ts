import { inspected, refused } from '../../../integrations/computers/drivers/seccomp/syscalls.ts';

/**
 * The user who runs the same program outside of the sandbox, where it must succeed: the computer's own user, another
 * computer's user, or root. This shows that the probe can fail.
 */
export type Twin = 'user' | 'root' | 'otherUser';

export interface Probe {
  name: string;
  /** Perl, since every Debian has it and it has `syscall`. The code ends by `through` or `stopped`. */
  code: string;
  twin: Twin;
  /** Not every machine has the feature that the probe tries. Then a line says that the twin showed nothing. */
  mayBeLacking?: boolean;
}

const column = process.arch === 'arm64' ? 1 : 0;
const numbers: Record<string, number> = {
  pidfd_open: 434,
  ptrace: [101, 117][column] ?? 0,
  process_vm_readv: [310, 270][column] ?? 0,
  ...Object.fromEntries(Object.entries({ ...inspected, ...refused }).map(([name, row]) => [name, row[column] ?? -1])),
};

/** `call(NAME, …)` makes a system call. `%c` has the values of the canary, which the probes look for. */
export const prelude = `
$| = 1; use strict; use warnings; no warnings 'portable'; use Socket; use POSIX (); use Errno qw(EPERM EACCES);
our %nr = (${Object.entries(numbers)
  .map(([name, number]) => `${name} => ${number}`)
  .join(', ')});
our %c = map { $_ => $ENV{"CANARY_\\U$_"} } qw(file pid port udp address socket abstract holder home other mark dir);
sub through { print "THROUGH\\n"; POSIX::_exit(0) }
sub stopped { print "STOPPED $!\\n"; POSIX::_exit(0) }
sub call { my $name = shift; return syscall($nr{$name}, @_) }
# The call was let in, whatever it then said of its arguments.
sub letin { my $r = call(@_); ($r >= 0 || ($! != EPERM && $! != EACCES && !$!{ENOSYS})) ? through() : stopped() }
sub works { my $r = call(@_); $r >= 0 ? through() : stopped() }
sub reads { open(my $f, '<', $_[0]) or stopped(); sysread($f, my $x, 1) ? through() : stopped() }
sub opens { my ($path, $how) = @_; open(my $f, $how, $path) ? through() : stopped() }
`;

const user = (name: string, code: string, more: Partial<Probe> = {}): Probe => ({ name, code, twin: 'user', ...more });
const root = (name: string, code: string, more: Partial<Probe> = {}): Probe => ({ name, code, twin: 'root', ...more });
const perhaps = { mayBeLacking: true };

const inProc = (file: string) =>
  `for my $f (glob '/proc/[0-9]*/${file}') { next if $f =~ m{/$$/}; open(my $h, '<', $f) or next; local $/; my $t = <$h> // ''; through() if index($t, $c{mark}) >= 0 } $! = 0; stopped()`;
const connects = (domain: string, address: string) =>
  `socket(my $s, ${domain}, SOCK_STREAM, 0) or stopped(); connect($s, ${address}) ? through() : stopped()`;
const onTerminal = (request: string) => `
  open(my $m, '+<', '/dev/ptmx') or stopped(); my $u = pack('i', 0); ioctl($m, 0x40045431, $u); my $n = pack('i', 0); ioctl($m, 0x80045430, $n);
  my $pid = fork; if ($pid) { waitpid($pid, 0); POSIX::_exit(0) }
  POSIX::setsid(); open(my $t, '+<', '/dev/pts/' . unpack('i', $n)) or stopped(); ioctl($t, 0x540E, 0); my $b = 'x';
  syscall($nr{ioctl}, fileno($t), ${request}, $b) >= 0 ? through() : stopped()`;

export const probes: Probe[] = [
  // Files and processes of others on this host.
  user('a host file by its path', 'reads($c{file})'),
  user('the environment of another process', inProc('environ')),
  user('the command line of another process', inProc('cmdline')),
  user('a signal to another process', 'kill(0, $c{pid}) ? through() : stopped()'),
  user('pidfd_open of another process', 'works("pidfd_open", $c{pid} + 0, 0)'),
  root('ptrace of another process', 'works("ptrace", 0x4206, $c{pid} + 0, 0, 0)'),
  root(
    'process_vm_readv of another process',
    'my $v = pack("QQ", 0, 8); letin("process_vm_readv", $c{pid} + 0, $v, 0, $v, 0, 0) unless !kill(0, $c{pid}); stopped()',
  ),
  root(
    'more in the environment of the first process than every process has',
    'open(my $f, "<", "/proc/1/environ") or stopped(); local $/; my %e = map { (split /=/, $_, 2)[0] => 1 } split /\\0/, <$f> // ""; delete @e{qw(PATH HOME USER LOGNAME SHELL LANG HOSTNAME PWD OLDPWD SHLVL _)}; %e ? through() : stopped()',
    perhaps,
  ),
  {
    name: 'the home of another computer',
    code: 'opendir(my $d, $c{other}) ? through() : stopped()',
    twin: 'otherUser',
  },
  user('the home by its path on the host', 'opendir(my $d, $c{home}) ? through() : stopped()'),
  root('the folder of the host', 'opendir(my $d, $c{dir}) ? through() : stopped()'),
  // Connections to others on this host.
  user('a port on the loopback of the host', connects('PF_INET', 'sockaddr_in($c{port}, inet_aton("127.0.0.1"))')),
  user('a port on the address of the host', connects('PF_INET', 'sockaddr_in($c{port}, inet_aton($c{address}))')),
  user(
    'a datagram to the host',
    'socket(my $s, PF_INET, SOCK_DGRAM, 0) or stopped(); send($s, "x", 0, sockaddr_in($c{udp}, inet_aton($c{address}))) ? through() : stopped()',
  ),
  user('a unix socket by its path', connects('PF_UNIX', 'sockaddr_un($c{socket})')),
  user('an abstract unix socket', connects('PF_UNIX', 'pack("S", 1) . "\\0" . $c{abstract}')),
  user('the socket of its own holder', connects('PF_UNIX', 'sockaddr_un($c{holder})')),
  user('a vsock socket', 'socket(my $s, 40, SOCK_STREAM, 0) ? through() : stopped()', perhaps),
  user('a crypto socket (AF_ALG)', 'socket(my $s, 38, SOCK_SEQPACKET, 0) ? through() : stopped()', perhaps),
  user('a netlink socket that other programs can send to', 'socket(my $s, 16, SOCK_RAW, 2) ? through() : stopped()'),
  user(
    'a netlink socket that lists the sockets of others',
    'socket(my $s, 16, SOCK_RAW, 4) ? through() : stopped()',
    perhaps,
  ),
  user(
    'a filter on a socket, compiled into memory of the whole machine',
    'socket(my $s, PF_INET, SOCK_DGRAM, 0) or stopped(); my $code = pack("SCCL", 6, 0, 0, 0xffff); setsockopt($s, 1, 26, pack("Sx6P", 1, $code)) ? through() : stopped()',
  ),
  user(
    'a filter that spreads connections, compiled into memory of the whole machine',
    'socket(my $s, PF_INET, SOCK_DGRAM, 0) or stopped(); setsockopt($s, 1, 15, pack("i", 1)); my $code = pack("SCCL", 6, 0, 0, 0); setsockopt($s, 1, 51, pack("Sx6P", 1, $code)) ? through() : stopped()',
  ),
  root('a packet socket', 'socket(my $s, 17, SOCK_RAW, 0) ? through() : stopped()'),
  root('a raw socket', 'socket(my $s, PF_INET, SOCK_RAW, 1) ? through() : stopped()'),
  // Namespaces and mounts.
  user('unshare of a user namespace', 'works("unshare", 0x10000000)'),
  user(
    'clone into a user namespace',
    'my $r = call("clone", 0x10000000 | 17, 0, 0, 0, 0); POSIX::_exit(0) if $r == 0; $r > 0 ? through() : stopped()',
  ),
  user(
    'clone3 into a user namespace',
    'my $a = pack("Q11", 0x10000000, 0, 0, 0, 17, (0) x 6); my $r = call("clone3", $a, 88); POSIX::_exit(0) if $r == 0; $r > 0 ? through() : stopped()',
  ),
  root('setns', 'open(my $f, "<", "/proc/self/ns/net") or stopped(); works("setns", fileno($f), 0)'),
  root('chroot', 'my $p = "/usr"; works("chroot", $p)'),
  root('pivot_root', 'my $p = "/"; my $q = "/"; letin("pivot_root", $p, $q)'),
  root(
    'a remount of /usr for writing',
    'my ($s, $p, $n) = ("none", "/usr", "none"); letin("mount", $s, $p, $n, 0x1020, 0)',
  ),
  root('a mount', 'my ($s, $p, $n) = ("tmpfs", "/none/such", "tmpfs"); letin("mount", $s, $p, $n, 0, 0)'),
  root('umount', 'my $p = "/none/such"; letin("umount2", $p, 0)'),
  root('open_tree', 'my $p = "/"; works("open_tree", -100, $p, 1)'),
  root('fsopen', 'my $p = "tmpfs"; works("fsopen", $p, 0)'),
  root('move_mount', 'my $p = "/none/such"; letin("move_mount", -100, $p, -100, $p, 0)'),
  root(
    'mount_setattr',
    'my $p = "/none/such"; my $a = pack("Q4", 0, 0, 0, 0); letin("mount_setattr", -100, $p, 0, $a, 32)',
  ),
  // The kernel.
  user('add_key', 'my ($t, $d, $p) = ("user", "atrium", "x"); works("add_key", $t, $d, $p, 1, -2)'),
  user('keyctl', 'works("keyctl", 0, -2, 1)'),
  user('request_key', 'my ($t, $d) = ("user", "atrium"); letin("request_key", $t, $d, 0, 0)'),
  user('io_uring_setup', 'my $p = "\\0" x 120; works("io_uring_setup", 1, $p)', perhaps),
  user(
    'a context of asynchronous reads, of which the machine has a number',
    'my $c = pack("Q", 0); works("io_setup", 1, $c)',
    perhaps,
  ),
  user('userfaultfd', 'works("userfaultfd", 1)', perhaps),
  user('memfd_secret', 'works("memfd_secret", 0)', perhaps),
  user(
    'name_to_handle_at',
    'my $p = "/usr"; my $h = pack("Ii", 0, 0) . "\\0" x 128; my $m = pack("i", 0); letin("name_to_handle_at", -100, $p, $h, $m, 0)',
  ),
  root('open_by_handle_at', 'my $h = pack("Ii", 8, 1) . "\\0" x 128; letin("open_by_handle_at", -100, $h, 0)'),
  user('kcmp', 'works("kcmp", $$ + 0, $$ + 0, 0, 0, 0)', perhaps),
  user('pidfd_getfd', 'letin("pidfd_getfd", -1, 0, 0)'),
  user('process_vm_writev', 'my $v = pack("QQ", 0, 0); letin("process_vm_writev", $$ + 0, $v, 1, $v, 1, 0)'),
  root('bpf', 'my $a = "\\0" x 128; letin("bpf", 0, $a, 128)'),
  root('perf_event_open', 'my $a = "\\0" x 128; letin("perf_event_open", $a, 0, -1, -1, 0)'),
  root('the log of the kernel', 'works("syslog", 10, 0, 0)'),
  root('quotactl', 'letin("quotactl", 0, 0, 0, 0)', perhaps),
  root('a kernel module', 'my ($m, $p) = ("", ""); letin("init_module", $m, 0, $p)', perhaps),
  root('a reboot (with a wrong magic number)', 'letin("reboot", 0, 0, 0, 0)'),
  root('swapon', 'my $p = "/none/such"; letin("swapon", $p, 0)'),
  root('acct', 'my $p = "/none/such"; letin("acct", $p)', perhaps),
  user('clock_settime', 'letin("clock_settime", 0, 0)'),
  root('TIOCSTI', onTerminal('0x5412')),
  root('TIOCSTI with a bit set that the kernel drops', onTerminal('0x100005412')),
  user('TIOCLINUX', 'my $b = "\\0"; letin("ioctl", 0, 0x541C, $b)'),
  // Files and devices.
  root('a write to /usr', 'opens("/usr/lib/os-release", ">>")'),
  root('a write to /etc', 'opens("/etc/passwd", ">>")'),
  user('the cgroups', 'opendir(my $d, "/sys/fs/cgroup") ? through() : stopped()'),
  user('sysfs', 'opendir(my $d, "/sys/kernel") ? through() : stopped()'),
  root('core_pattern', 'opens("/proc/sys/kernel/core_pattern", "+<")'),
  root('sysrq', 'opens("/proc/sysrq-trigger", ">")', perhaps),
  root('the memory of the kernel', 'opens("/proc/kcore", "<")', perhaps),
  root('a block device', '-b $_ and opens($_, "<") for glob "/dev/*"; stopped()'),
  root(
    'mknod',
    'my $p = "/tmp/atrium-node-$$"; system("mknod $p b 7 0 2>/dev/null"); -b $p ? (unlink($p), through()) : stopped()',
  ),
  root('to become root', '$< = 0; $> = 0; $> == 0 ? through() : stopped()'),
  user(
    'privileges by a setuid program',
    'open(my $f, "<", "/proc/self/status"); my $s = join "", <$f>; $s =~ /NoNewPrivs:\\t1/ ? stopped() : through()',
  ),
  user(
    'the descriptors of who started it',
    'my @f = grep { $_ > 2 && -e "/proc/self/fd/$_" } 3 .. 1023; @f ? through() : stopped()',
  ),
];
