import { spawn } from 'node:child_process';
import { once } from 'node:events';
import type { Duplex } from 'node:stream';
import type { SandboxCommand } from '../protocol/holderSpec.ts';

interface TrialOptions {
  uid: number | undefined;
  timeoutMs: number;
  /** Wait for `exit` if a leftover of a killed sandbox could hold its output open. */
  until: 'close' | 'exit';
}

/** Runs a sandbox that does nothing. Returns undefined if it works, otherwise the last line that it wrote. */
export async function complaintOf(
  { file, args, descriptors }: Pick<SandboxCommand, 'file' | 'args' | 'descriptors'>,
  { uid, timeoutMs, until }: TrialOptions,
): Promise<string | undefined> {
  const child = spawn(file, args, {
    cwd: '/',
    env: {},
    stdio: ['ignore', 'ignore', 'pipe', ...descriptors.map(() => 'pipe' as const)],
    timeout: timeoutMs,
    killSignal: 'SIGKILL',
    ...(uid !== undefined && { uid, gid: uid }),
  });
  let text = '';
  child.stderr?.setEncoding('utf8').on('data', (chunk: string) => {
    text = (text + chunk).slice(-1_000);
  });
  for (const [at, descriptor] of descriptors.entries()) {
    const pipe = child.stdio[at + 3] as Duplex;
    pipe.on('error', () => undefined);
    if (descriptor.kind === 'write') pipe.end(Buffer.from(descriptor.data, 'base64'));
    else if (descriptor.kind === 'block') pipe.end('x');
    // Read and discard it: bwrap would end early if the pipe were closed.
    else pipe.resume();
  }
  const [code, signal] = (await once(child, until)) as [number | null, string | null];
  return code === 0 ? undefined : text.trim().split('\n').at(-1) || `it ended with ${signal ?? code}`;
}
