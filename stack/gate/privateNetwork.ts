import { spawnSync } from 'node:child_process';
import type { Environment } from '../../config/index.ts';
import { findProgram } from '../context.ts';

/** How to run a command in its own network namespace, or why this machine cannot. */
export type PrivateNetwork = { wrap(command: string[]): string[] } | { missing: string };

const probeTimeoutMs = 5_000;

/**
 * Finds how to make a network namespace that contains only its own loopback. Other processes cannot connect into it,
 * and its processes reach nothing outside. Root may make one, and other users where the system has user namespaces. A
 * container usually allows neither.
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
