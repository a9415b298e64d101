import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdir, writeFile } from 'node:fs/promises';
import path from 'node:path';
import { createInterface } from 'node:readline';

export interface Ran {
  code: number | string;
  stdout: string;
  stderr: string;
}

export interface NetworkedComputer extends AsyncDisposable {
  faults: string[];
  startedMs: number;
  run(command: string, env?: Record<string, string>): Promise<Ran>;
}

const program = path.join(import.meta.dirname, 'networkedComputer.ts');

/**
 * A computer's network in a new user and network namespace that has only loopback, with `/etc/resolv.conf` set to
 * 127.0.0.1. Traffic leaves through this socket. `ports` are listened on in addition.
 */
export async function networkedComputer(
  folder: string,
  socketPath: string,
  ports: readonly number[] = [],
): Promise<NetworkedComputer> {
  await mkdir(path.join(folder, 'home'), { recursive: true });
  await writeFile(path.join(folder, 'resolv.conf'), 'nameserver 127.0.0.1\n');
  await writeFile(path.join(folder, 'nsswitch.conf'), 'hosts: files dns\n');
  await writeFile(path.join(folder, 'hosts'), '127.0.0.1 localhost\n::1 localhost\n');
  const bind = (name: string) => `--ro-bind ${path.join(folder, name)} /etc/${name}`;
  const script = [
    'ip link set lo up',
    'echo 0 > /proc/sys/net/ipv4/ip_unprivileged_port_start',
    `exec bwrap --bind / / --dev-bind /dev /dev ${['resolv.conf', 'nsswitch.conf', 'hosts'].map(bind).join(' ')} \
      --die-with-parent ${process.execPath} ${program} ${[socketPath, ...ports].join(' ')}`,
  ].join(' && ');
  const child = spawn('unshare', ['-Urn', 'sh', '-c', script], {
    stdio: ['pipe', 'pipe', 'inherit'],
    env: { PATH: '/usr/sbin:/usr/bin:/sbin:/bin', HOME: path.join(folder, 'home') },
  });
  return talkTo(child, path.join(folder, 'home'));
}

async function talkTo(child: ChildProcess, home: string): Promise<NetworkedComputer> {
  const { stdin, stdout } = child;
  if (stdin === null || stdout === null) throw new Error('A computer needs pipes.');
  const ended = once(child, 'close');
  const waiting = new Map<number, (ran: Ran) => void>();
  const started = Promise.withResolvers<{ faults: string[]; startedMs: number }>();
  createInterface({ input: stdout }).on('line', (line) => {
    const said = JSON.parse(line) as Ran & { id?: number; faults: string[]; startedMs: number };
    if (said.id === undefined) started.resolve(said);
    else waiting.get(said.id)?.(said);
  });
  ended.then(() => started.reject(new Error('The computer has ended.')));
  let count = 0;
  return {
    ...(await started.promise),
    async run(command, env = {}) {
      const id = ++count;
      const answered = Promise.withResolvers<Ran>();
      waiting.set(id, answered.resolve);
      const all = { PATH: '/usr/local/bin:/usr/bin:/bin', HOME: home, ...env };
      stdin.write(`${JSON.stringify({ id, command, env: all })}\n`);
      return answered.promise;
    },
    async [Symbol.asyncDispose]() {
      stdin.destroy();
      child.kill('SIGKILL');
      await ended;
    },
  };
}
