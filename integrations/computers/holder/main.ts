import { Socket } from 'node:net';
import { createInterface } from 'node:readline';
import type { HolderOrder, HolderReport, HolderSpec } from '../host/holderSpec.ts';
import { holdComputer } from './holder.ts';

/**
 * The holder: a process of its own for each computer that runs, which has its sandbox, its processes’ logs and its
 * socket. It lives as long as its sandbox, whatever becomes of the host that has started it (`host/holderSpec.ts` says
 * how they talk until then).
 */
const orders = new Socket({ fd: 0, readable: true, writable: false });
const reports = new Socket({ fd: 3, readable: false, writable: true });
for (const pipe of [orders, reports]) pipe.on('error', () => undefined);
const lines = createInterface({ input: orders })[Symbol.asyncIterator]();

// Whoever has started us may end, or be interrupted: that is nothing to us.
for (const signal of ['SIGHUP', 'SIGINT', 'SIGPIPE'] as const) process.on(signal, () => undefined);

const first = await lines.next();
// A spare that nobody needs any more.
if (first.done === true) process.exit(0);

const spec = JSON.parse(first.value) as HolderSpec;
const report = (message: HolderReport) =>
  new Promise<void>((resolve) => {
    reports.write(`${JSON.stringify(message)}\n`, () => resolve());
  });
const released = async () => {
  const order = await lines.next();
  const said = order.done === true ? undefined : (JSON.parse(order.value) as HolderOrder);
  return said?.type === 'release' ? said : undefined;
};
process.exitCode = await holdComputer(spec, { report, released });
process.exit();
