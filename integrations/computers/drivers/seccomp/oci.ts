import {
  AF_NETLINK,
  btrfsRequests,
  errors,
  families,
  filterOptions,
  type Machine,
  netlinkProtocols,
  newNamespaces,
  refused,
  SOL_SOCKET,
  sharingRequests,
  terminalRequests,
} from './syscalls.ts';

/** A filter as OCI runtimes and Docker take it. */
interface OciFilter {
  defaultAction: string;
  architectures: string[];
  syscalls: OciRule[];
}

interface OciRule {
  names: string[];
  action: string;
  errnoRet?: number;
  args?: Condition[];
}

interface Condition {
  index: number;
  value: number;
  valueTwo?: number;
  op: string;
}

const architectures: Record<Machine, string> = { x64: 'SCMP_ARCH_X86_64', arm64: 'SCMP_ARCH_AARCH64' };

/**
 * The filter of `bpf.ts` in the words of the OCI specification. Calls made for another machine are not of the one
 * architecture here, for which runtimes end the process.
 */
export function ociFilter(machine: Machine, { isGvisor = false } = {}): OciFilter {
  const refuse = (names: string[], errnoRet: number, args?: OciRule['args']): OciRule => ({
    names,
    action: 'SCMP_ACT_ERRNO',
    errnoRet,
    ...(args !== undefined && { args }),
  });
  const { EPERM, ENOTTY, ENOSYS, EPROTONOSUPPORT, EAFNOSUPPORT } = errors;
  const netlink = equals(0, AF_NETLINK);
  return {
    defaultAction: 'SCMP_ACT_ALLOW',
    architectures: [architectures[machine]],
    syscalls: [
      refuse(Object.keys(refused), EPERM),
      // gVisor gives no error but EPERM, for which the C library does not fall back to clone. What is to be traced fails
      // with ENOSYS where nobody traces. Who does reaches no more by it than a namespace that gVisor makes up itself.
      isGvisor ? { names: ['clone3'], action: 'SCMP_ACT_TRACE' } : refuse(['clone3'], ENOSYS),
      ...bitsOf(newNamespaces).map((bit) => refuse(['clone'], EPERM, [masked(0, bit, bit)])),
      ...allBut(0, [...families, AF_NETLINK]).map((one) => refuse(['socket'], EAFNOSUPPORT, [one])),
      ...allBut(2, netlinkProtocols).map((one) => refuse(['socket'], EPROTONOSUPPORT, [netlink, one])),
      ...filterOptions.map((option) => refuse(['setsockopt'], EPERM, [equals(1, SOL_SOCKET), equals(2, option)])),
      ...terminalRequests.map((request) => refuse(['ioctl'], EPERM, [equals(1, request)])),
      ...prefixesWithout(sharingRequests, { prefix: btrfsRequests, freeBits: 8 }).map(({ prefix, freeBits }) =>
        refuse(['ioctl'], ENOTTY, [masked(1, 0x10000 - 2 ** freeBits, prefix)]),
      ),
    ],
  };
}

const masked = (index: number, mask: number, value: number): Condition => ({
  index,
  value: mask,
  valueTwo: value,
  op: 'SCMP_CMP_MASKED_EQ',
});

/** Of the low half of an argument: the kernel takes these as 32 bits, so the high half must not matter. */
const equals = (index: number, value: number) => masked(index, 0xffffffff, value);

/** Each is true of some numbers that are none of these, and together they are of all such. */
function allBut(index: number, values: readonly number[]): Condition[] {
  const last = Math.max(...values);
  const between = Array.from({ length: last }, (_, value) => value).filter((value) => !values.includes(value));
  return [...between.map((value) => equals(index, value)), { index, value: last, op: 'SCMP_CMP_GT' }];
}

const bitsOf = (flags: number) => Array.from({ length: 31 }, (_, at) => 2 ** at).filter((bit) => (flags & bit) !== 0);

interface Prefix {
  prefix: number;
  /** How many bits after it may be anything. */
  freeBits: number;
}

/** All numbers with this prefix but these, as few prefixes: rules of this kind know no “unless”. */
function prefixesWithout(values: number[], whole: Prefix): Prefix[] {
  const { prefix, freeBits } = whole;
  const inside = values.filter((value) => value >= prefix && value < prefix + 2 ** freeBits);
  if (inside.length === 0) return [whole];
  if (freeBits === 0) return [];
  const half = { prefix, freeBits: freeBits - 1 };
  return [half, { ...half, prefix: prefix + 2 ** half.freeBits }].flatMap((part) => prefixesWithout(inside, part));
}
