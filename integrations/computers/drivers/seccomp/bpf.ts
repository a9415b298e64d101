import {
  AF_NETLINK,
  auditArch,
  btrfsRequests,
  errors,
  families,
  filterOptions,
  inspected,
  type Machine,
  netlinkProtocols,
  newNamespaces,
  refused,
  SOL_SOCKET,
  sharingRequests,
  terminalRequests,
} from './syscalls.ts';

// Classic BPF, 8 bytes per instruction. `NR` and `ARCH` are offsets into struct seccomp_data.
const LD = 0x20;
const AND = 0x54;
const JEQ = 0x15;
const JGE = 0x35;
const JSET = 0x45;
const RET = 0x06;
const NR = 0;
const ARCH = 4;
/** The low half of an argument. The kernel takes these arguments as 32 bits, so the high half must not matter. */
const argument = (index: number) => 16 + 8 * index;

const ALLOW = 0x7fff0000;
const KILL = 0x80000000;
const errno = (number: number) => 0x00050000 | number;
const { EPERM, ENOTTY, ENOSYS, EPROTONOSUPPORT, EAFNOSUPPORT } = errors;

/** System-call numbers of the x32 ABI begin here. */
const x32 = 0x40000000;

type Instruction = [code: number, whenTrue: number, whenFalse: number, value: number];

const load = (offset: number): Instruction => [LD, 0, 0, offset];
const answer = (value: number): Instruction => [RET, 0, 0, value];
/** Runs `then`, which must end in an answer, if the loaded number is `value`. */
const ifEqual = (value: number, then: Instruction[]): Instruction[] => [[JEQ, 0, then.length, value], ...then];

/** Calls that a sandbox's own root may make: they change nothing outside of its root file system. */
const ofRoot = new Set(['chroot']);

/**
 * The system-call filter of a sandbox, for `bwrap --seccomp`. A refused call fails with EPERM. A call for another
 * machine (`int 0x80`, x32) has other numbers and would evade the filter, so it ends the process.
 */
export function seccompFilter(machine: Machine, { isRoot = false } = {}): Buffer {
  const column = machine === 'x64' ? 0 : 1;
  const program: Instruction[] = [
    load(ARCH),
    [JEQ, 1, 0, auditArch[machine]],
    answer(KILL),
    load(NR),
    ...(machine === 'x64' ? [[JGE, 0, 1, x32] as Instruction, answer(KILL)] : []),
    ...Object.entries(refused).flatMap(([name, numbers]) => {
      const number = numbers[column];
      return number == null || (isRoot && ofRoot.has(name)) ? [] : ifEqual(number, [answer(errno(EPERM))]);
    }),
    // The flags of clone3 are in memory, where a filter cannot look. After ENOSYS the C library falls back to clone.
    ...ifEqual(inspected.clone3[column], [answer(errno(ENOSYS))]),
    ...ifEqual(inspected.clone[column], [
      load(argument(0)),
      [JSET, 0, 1, newNamespaces],
      answer(errno(EPERM)),
      answer(ALLOW),
    ]),
    ...ifEqual(inspected.socket[column], [
      load(argument(0)),
      ...families.flatMap((family) => ifEqual(family, [answer(ALLOW)])),
      ...ifEqual(AF_NETLINK, [
        load(argument(2)),
        ...netlinkProtocols.flatMap((protocol) => ifEqual(protocol, [answer(ALLOW)])),
        answer(errno(EPROTONOSUPPORT)),
      ]),
      answer(errno(EAFNOSUPPORT)),
    ]),
    ...ifEqual(inspected.setsockopt[column], [
      load(argument(1)),
      ...ifEqual(SOL_SOCKET, [
        load(argument(2)),
        ...filterOptions.flatMap((option) => ifEqual(option, [answer(errno(EPERM))])),
        answer(ALLOW),
      ]),
      answer(ALLOW),
    ]),
    ...ifEqual(inspected.ioctl[column], [
      load(argument(1)),
      ...terminalRequests.flatMap((request) => ifEqual(request, [answer(errno(EPERM))])),
      [AND, 0, 0, 0xffff],
      ...sharingRequests.flatMap((request) => ifEqual(request, [answer(ALLOW)])),
      [AND, 0, 0, 0xff00],
      ...ifEqual(btrfsRequests, [answer(errno(ENOTTY))]),
      answer(ALLOW),
    ]),
    answer(ALLOW),
  ];
  const bytes = Buffer.alloc(program.length * 8);
  program.forEach(([code, whenTrue, whenFalse, value], index) => {
    bytes.writeUInt16LE(code, index * 8);
    bytes.writeUInt8(whenTrue, index * 8 + 2);
    bytes.writeUInt8(whenFalse, index * 8 + 3);
    bytes.writeUInt32LE(value, index * 8 + 4);
  });
  return bytes;
}
