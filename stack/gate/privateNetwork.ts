import { spawnSync } from 'node:child_process';
import type { Environment } from '../../config/index.ts';
import { findProgram } from '../context.ts';

/** How to run a command in its own network namespace, or why that is not possible here. */
export type PrivateNetwork = { wrap(command: string[]): string[] } | { missing: string };

const probeTimeoutMs = 5_000;

/**
 * A network namespace with nothing in it but its own loopback: no other process can connect to what listens there, and
 * what runs there reaches nothing outside. Root may make one, others where the system has user namespaces. A container
 * usually has neither.
 */
export function findPrivateNetwork(environment: Environment): PrivateNetwork {
  if (process.platform !== 'linux') return { missing: 'only Linux has network namespaces' };
  const unshare = findProgram('unshare', environment);
  const ip = findProgram('ip', environment);
  if (unshare === undefined) return { missing: 'the program "unshare" is missing (install util-linux)' };
  if (ip === undefined) return { missing: 'the program "ip" is missing (install iproute2)' };

  const asUser = process.getuid?.() === 0 ? [] : ['--user', '--map-root-user'];
  const wrap = (command: string[]) => [
    ...[unshare, '--net', ...asUser, '--'],
    ...['/bin/sh', '-c', '"$0" link set lo up && exec "$@"', ip, ...command],
  ];
  const [program = '', ...args] = wrap(['/bin/sh', '-c', 'exit 0']);
  const probe = spawnSync(program, args, { timeout: probeTimeoutMs, encoding: 'utf8' });
  if (probe.status === 0) return { wrap };
  const reason = probe.error?.message ?? probe.stderr.trim().split('\n')[0] ?? '';
  return { missing: `the system lets this user make no network namespace (${reason})` };
}
