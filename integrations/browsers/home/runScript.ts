import { randomBytes } from 'node:crypto';
import { DomainError } from '../../../base/errors.ts';
import type { HostClient } from '../../computers/hostClient.ts';
import { type Exit, noteOf } from '../../computers/processes/records.ts';

const longestMs = 5 * 60_000;

/**
 * Runs a shell script of ours in the home of a computer, as one of Atrium's own processes; everything else comes in as
 * its arguments, from `$1` on. Gives its exit code. Throws 502 `PROFILE_WORK_ENDED` where it came to no end of its own.
 */
export async function runScript(
  { own }: HostClient,
  script: string,
  args: readonly string[],
  signal: AbortSignal,
): Promise<number> {
  const processId = `profile_${randomBytes(12).toString('hex')}`;
  try {
    await own.startProcess({ processId, command: ['/bin/sh', '-c', script, 'sh', ...args], timeoutMs: longestMs });
    let code: number | null = null;
    for await (const record of own.output(processId, { follow: true, signal })) {
      if (record.kind !== 'exit') continue;
      // One that was ended, as with what runs beside a computer that starts, has come to no end of its own.
      const { exitCode, killedBy } = noteOf<Exit>(record);
      code = killedBy === null ? exitCode : null;
    }
    signal.throwIfAborted();
    if (code !== null) return code;
    throw new DomainError('upstream', 'PROFILE_WORK_ENDED', 'The computer has ended what works on a profile.');
  } catch (error) {
    if (signal.aborted) await own.signalProcess(processId, 'SIGKILL').catch(() => undefined);
    throw error;
  } finally {
    void own.forgetProcess(processId).catch(() => undefined); // else it is pruned later
  }
}
