import { createReadStream } from 'node:fs';
import { writeFile } from 'node:fs/promises';
import { createHost } from '../../integrations/computers/host/createHost.ts';
import type { Host, HostOptions } from '../../integrations/computers/host/host.ts';
import type { FiledSave, HostCall, HostReply, RemoteSaves } from '../builders/hostProcess.ts';
import { nodeInside } from './computerPrograms.ts';

/**
 * A host in its own process, for tests that kill it or run it as another user. It takes calls from its parent process
 * and ends with it. Its computers go on, as when a worker is killed.
 */
const given = JSON.parse(process.argv[2] ?? '{}') as HostOptions;
const options = { ...given, readOnly: () => [nodeInside] };
const reply = (message: HostReply) => process.send?.(message);

let host: Host;
try {
  host = await createHost({ ...options, onEnd: (computerId, end) => reply({ ended: { computerId, end } }) });
} catch (error) {
  reply({ refused: describe(error) });
  process.exit(1);
}
const { signal } = new AbortController();
/** A host's methods that lose their object when they are called by name, and those whose bytes are in files. */
const saves: { [name in keyof RemoteSaves]: (...args: never[]) => Promise<unknown> } = {
  changed: () => host.saves.changed(),
  kept: async (computerId: string) => host.saves.kept(computerId),
  take: (computerId: string, saveId: string) => host.saves.take(computerId, saveId),
  keepOnly: (computerId: string, saveIds: string[]) => host.saves.keepOnly(computerId, saveIds),
  readTo: (file: string, computerId: string, saveId: string, parentId: string | null) =>
    writeFile(file, host.saves.read(computerId, saveId, parentId, signal)),
  fillFrom: (computerId: string, chain: FiledSave[], options: Parameters<RemoteSaves['fillFrom']>[2]) =>
    host.saves.fill(
      computerId,
      chain.map((save) => ({ ...save, open: () => bytesOf(save) })),
      { ...options, signal },
    ),
};
process.on('disconnect', () => process.exit(0));
process.on('message', (call: HostCall) => void answer(call));
const { hostId, drivers, rights, limits } = host;
reply({ ready: { hostId, drivers, rights, limits } });

async function answer({ id, method, args }: HostCall): Promise<void> {
  try {
    const called = ({ ...host, ...saves } as Record<string, unknown>)[method] as (
      ...given: unknown[]
    ) => Promise<unknown>;
    const value = await called(...args);
    reply({ id, value });
  } catch (error) {
    reply({ id, error: describe(error) });
  }
}

async function* bytesOf({ file, most }: FiledSave): AsyncGenerator<Buffer> {
  yield* createReadStream(file, most === undefined ? {} : { end: most - 1 }) as AsyncIterable<Buffer>;
  if (most !== undefined) await new Promise(() => undefined);
}

function describe(error: unknown): { code: string; message: string } {
  const { code = 'UNKNOWN', message } = error as { code?: string; message: string };
  return { code, message };
}
