import { execFileSync } from 'node:child_process';
import { existsSync, readdirSync } from 'node:fs';
import type { Host, StoredSave } from '../../integrations/computers/host/host.ts';
import { computerLayout, hostLayout } from '../../integrations/computers/host/layout.ts';
import { usualLimits } from './host.ts';

const { signal } = new AbortController();

/** A save with all of its bytes. */
export interface ReadSave extends StoredSave {
  bytes: Buffer;
}

export async function readSave(
  { saves }: Pick<Host, 'saves'>,
  computerId: string,
  saveId: string,
  parentId: string | null = null,
): Promise<Buffer> {
  const chunks: Buffer[] = [];
  for await (const chunk of saves.read(computerId, saveId, parentId, signal)) chunks.push(chunk);
  return Buffer.concat(chunks);
}

/** Takes a save of a computer and reads it. */
export async function saveHome(
  host: Pick<Host, 'saves'>,
  computerId: string,
  saveId: string,
  parentId: string | null = null,
): Promise<ReadSave> {
  const { takenAt: _, ...taken } = await host.saves.take(computerId, saveId);
  const bytes = await readSave(host, computerId, saveId, parentId);
  return { ...taken, saveId, bytes, open: () => inPieces(bytes) };
}

async function* inPieces(bytes: Buffer): AsyncGenerator<Buffer> {
  for (let at = 0; at < bytes.length; at += 100_000) yield bytes.subarray(at, at + 100_000);
}

/** A save of which only half comes. */
export const cutOff = (whole: ReadSave): StoredSave => ({
  ...whole,
  async *open() {
    yield* inPieces(whole.bytes.subarray(0, whole.bytes.length / 2));
    throw new Error('the store is away');
  },
});

export const filling = { limits: usualLimits, spaceId: 'spc_test', signal };

/** A command that makes files of all kinds, with a folder that is closed to its owner. */
export const allKinds = `mkdir -p a/b; echo one > a/b/one; ln -s b/one a/link; ln a/b/one hard; mkfifo pipe
  head -c 3000000 /dev/urandom > big; truncate -s 50M holes; echo end >> holes; chmod 750 a/b/one; chmod 000 a/b
  printf x > "$(printf 'new\\nline')"`;

/** Everything in a home: names, types, rights, times, links, targets and content. */
export function contentOf(dir: string, computerId: string): string {
  const { home } = computerLayout(hostLayout(dir), computerId);
  const list = `{ find . -printf '%P %y %m %TY%Tm%Td%TH%TM %n %l\\n'; find . -type f -exec md5sum {} +; } | sort`;
  return execFileSync('sh', ['-c', list], { cwd: home }).toString();
}

/** What a host has of saves on its disk. */
export function savesIn(dir: string): string[] {
  const { saves, snapshots } = hostLayout(dir);
  const folders = [saves, snapshots].filter((folder) => existsSync(folder));
  return folders.flatMap((folder) => readdirSync(folder, { recursive: true }).map(String));
}
