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

/** A filter in the format of OCI runtimes and Docker. */
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
 * The filter of `bpf.ts` in the OCI format. It lists one architecture; runtimes end processes that call for another.
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
      // gVisor can only answer EPERM, after which the C library does not fall back to clone. So clone3 is traced
      // instead, which fails with ENOSYS without a tracer. A tenant with a tracer only reaches a namespace that gVisor
      // itself makes up.
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

/**
 * Conditions on the low half of an argument. The kernel takes these arguments as 32 bits, so the high half must not
 * matter.
 */
const equals = (index: number, value: number) => masked(index, 0xffffffff, value);

/** Conditions that together match every number except these. */
function allBut(index: number, values: readonly number[]): Condition[] {
  const last = Math.max(...values);
  const between = Array.from({ length: last }, (_, value) => value).filter((value) => !values.includes(value));
  return [...between.map((value) => equals(index, value)), { index, value: last, op: 'SCMP_CMP_GT' }];
}

const bitsOf = (flags: number) => Array.from({ length: 31 }, (_, at) => 2 ** at).filter((bit) => (flags & bit) !== 0);

interface Prefix {
  prefix: number;
  /** How many of the following bits are free. */
  freeBits: number;
}

/** All numbers with this prefix except `values`, as few prefixes. OCI rules cannot say "unless". */
function prefixesWithout(values: number[], whole: Prefix): Prefix[] {
  const { prefix, freeBits } = whole;
  const inside = values.filter((value) => value >= prefix && value < prefix + 2 ** freeBits);
  if (inside.length === 0) return [whole];
  if (freeBits === 0) return [];
  const half = { prefix, freeBits: freeBits - 1 };
  return [half, { ...half, prefix: prefix + 2 ** half.freeBits }].flatMap((part) => prefixesWithout(inside, part));
}
