import { Socket } from 'node:net';
import { dirname, join } from 'node:path';
import { createInterface } from 'node:readline';
import { type HolderOrder, type HolderReport, type HolderSpec, rehearsalsFolder } from '../protocol/holderSpec.ts';
import { holdComputer } from './holder.ts';
import { rehearse } from './rehearse.ts';

/**
 * The holder: a process for each running computer. It owns the computer's sandbox, its processes' logs and its socket.
 * It lives as long as its sandbox, even after the host that started it has ended (`protocol/holderSpec.ts` says how the
 * two talk until then).
 */
const orders = new Socket({ fd: 0, readable: true, writable: false });
const reports = new Socket({ fd: 3, readable: false, writable: true });
for (const pipe of [orders, reports]) pipe.on('error', () => undefined);
// Both go to a log. A full disk must not end a computer.
for (const stream of [process.stdout, process.stderr]) stream.on('error', () => undefined);
/** A holder that gets no computer within this time is a spare, and rehearses. */
const waitsMs = 100;
const lines = createInterface({ input: orders })[Symbol.asyncIterator]();

// The host may end or be interrupted. The holder goes on.
for (const signal of ['SIGHUP', 'SIGINT', 'SIGPIPE'] as const) process.on(signal, () => undefined);

const report = (message: HolderReport) =>
  new Promise<void>((resolve) => {
    reports.write(`${JSON.stringify(message)}\n`, () => resolve());
  });
const ordered = async <T extends HolderOrder['type']>(type: T) => {
  const order = await lines.next();
  const said = order.done === true ? undefined : (JSON.parse(order.value) as HolderOrder);
  return said?.type === type ? (said as Extract<HolderOrder, { type: T }>) : undefined;
};

void hold();

async function hold(): Promise<never> {
  const rehearsal = rehearseSoon();
  const first = await lines.next();
  await rehearsal.over();
  // The host has closed the pipe: this spare is not needed.
  if (first.done === true) process.exit(0);
  process.exit(await holdComputer(JSON.parse(first.value) as HolderSpec, { report, ordered }));
}

/** Rehearses a start, unless a computer comes at once. Only an installed program has a folder for it. */
function rehearseSoon(): { over(): Promise<void> } {
  const program = process.argv[1] ?? '';
  let rehearsal: Promise<boolean> | undefined;
  const begin = () => {
    rehearsal = rehearse(join(dirname(program), rehearsalsFolder, String(process.pid)));
  };
  const timer = program.endsWith('.cjs') ? setTimeout(begin, waitsMs) : undefined;
  return {
    async over() {
      clearTimeout(timer);
      await rehearsal;
    },
  };
}
