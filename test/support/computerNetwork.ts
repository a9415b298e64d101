import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdir, writeFile } from 'node:fs/promises';
import path from 'node:path';
import type { Duplex } from 'node:stream';
import { Agent } from '../../integrations/computers/holder/agent.ts';
import { runWith } from './agentProcess.ts';
import { agentProgram } from './computerPrograms.ts';

export interface Ran {
  code: number | string;
  stdout: string;
  stderr: string;
}

export interface NetworkedComputer extends AsyncDisposable {
  faults: string[];
  run(command: string, env?: Record<string, string>): Promise<Ran>;
  /** Connects to a port inside. */
  dial(port: number): Promise<Duplex>;
}

/**
 * An agent with a computer's network, in a new user and network namespace that has only loopback, with
 * `/etc/resolv.conf` set to 127.0.0.1. Traffic leaves through this socket. `ports` are listened on in addition.
 */
export async function networkedComputer(
  folder: string,
  socketPath: string,
  ports: readonly number[] = [],
): Promise<NetworkedComputer> {
  const home = path.join(folder, 'home');
  await mkdir(home, { recursive: true });
  await writeFile(path.join(folder, 'resolv.conf'), 'nameserver 127.0.0.1\n');
  await writeFile(path.join(folder, 'nsswitch.conf'), 'hosts: files dns\n');
  await writeFile(path.join(folder, 'hosts'), '127.0.0.1 localhost\n::1 localhost\n');
  const bind = (name: string) => `--ro-bind ${path.join(folder, name)} /etc/${name}`;
  const script = [
    'ip link set lo up',
    'echo 0 > /proc/sys/net/ipv4/ip_unprivileged_port_start',
    `exec bwrap --bind / / --dev-bind /dev /dev ${['resolv.conf', 'nsswitch.conf', 'hosts'].map(bind).join(' ')} \
      --die-with-parent ${await agentProgram()}`,
  ].join(' && ');
  const child = spawn('unshare', ['-Urn', 'sh', '-c', script], {
    stdio: ['pipe', 'pipe', 'inherit'],
    env: { PATH: '/usr/sbin:/usr/bin:/sbin:/bin' },
  });
  const ended = once(child, 'close');
  const ignore = () => undefined;
  const agent = new Agent(child.stdout, child.stdin, { egressSocket: socketPath, onReady: ignore, onEnd: ignore });
  const network = { kind: 'network', ports: [22, 80, 443, ...ports], maxConnections: 64 } as const;
  const { faults } = await agent.ask<{ faults: string[] }>(network, { deadlineMs: 60_000 });
  return {
    faults,
    async run(command, env = {}) {
      const all = { PATH: '/usr/local/bin:/usr/bin:/bin', HOME: home, ...env };
      const { stdout, stderr, exitCode, signal } = await runWith(agent, command, { cwd: home, env: all });
      return { code: exitCode ?? signal ?? '', stdout, stderr };
    },
    async dial(port) {
      const { stream } = await agent.open({ kind: 'port', port }, { deadlineMs: 60_000, send: () => undefined });
      return stream;
    },
    async [Symbol.asyncDispose]() {
      agent.end(new Error('The test has ended.'));
      child.kill('SIGKILL');
      await ended;
    },
  };
}
