/**
 * A program for tests. It runs where loopback is the only network, starts a computer's network over a unix socket, and
 * runs commands: one line of JSON each, answered by one line.
 */
import { execFile } from 'node:child_process';
import { connect } from 'node:net';
import { createInterface } from 'node:readline';
import { startNetwork } from '../../integrations/computers/agent/network/network.ts';

const [, , socketPath = '', ...ports] = process.argv;
const beganAt = performance.now();
const { faults } = await startNetwork({
  open: () => connect({ path: socketPath, allowHalfOpen: true }),
  ports: [22, 80, 443, ...ports.map(Number)],
  maxConnections: 64,
});
const say = (value: unknown) => process.stdout.write(`${JSON.stringify(value)}\n`);
say({ faults, startedMs: performance.now() - beganAt });

createInterface({ input: process.stdin }).on('line', (line) => {
  const { id, command, env } = JSON.parse(line) as { id: number; command: string; env: Record<string, string> };
  const options = { env, timeout: 60_000, maxBuffer: 1 << 24 };
  execFile('/bin/bash', ['-c', command], options, (error, stdout, stderr) => {
    say({ id, code: error === null ? 0 : (error.code ?? error.signal), stdout, stderr });
  });
});
