import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { counted } from '../../base/text.ts';
import { isMounted } from '../../integrations/computers/host/disks/btrfs.ts';
import { mostStreamBytes } from '../../integrations/computers/host/disks/disks.ts';
import { computerLayout, type HostLayout, hostLayout } from '../../integrations/computers/host/layout.ts';
import { type ComputerRecord, isHosted, listRecords } from '../../integrations/computers/host/records.ts';
import { runHere } from '../../integrations/computers/system/programs.ts';
import { pack } from '../../integrations/computers/system/tar.ts';
import type { ComputerLimits } from '../../integrations/computers/types.ts';
import { BackupError } from '../errors.ts';
import type { Manifest } from '../vault/manifests.ts';
import type { Stored, Vault } from '../vault/vault.ts';
import { inOrder } from './inOrder.ts';

const atOnce = 2;
/** An hour, plus time to read the largest home at 10 MiB a second. */
const mostMs = ({ diskMiB }: ComputerLimits) => 3_600_000 + diskMiB * 100;
/** Suffix of a home's snapshot. */
const frozen = '.backup';

type Homes = Pick<Manifest, 'homes' | 'gaps'>;

interface Deps {
  vault: Vault;
  /** The computers' folder on this machine. */
  dir: string;
  signal: AbortSignal;
}

/**
 * Stores the homes of the computers that this machine hosts, while they run. A home that is a subvolume is stored as of
 * one moment. Otherwise each file is stored as of the moment it was read.
 */
export async function storeHomes({ vault, dir, signal }: Deps): Promise<Homes> {
  const layout = hostLayout(dir);
  if (!existsSync(layout.identity)) return { homes: null, gaps: [] };
  const { hostId } = JSON.parse(readFileSync(layout.identity, 'utf8')) as { hostId: string };
  if (existsSync(layout.image) && !isMounted(layout.homes)) {
    return { homes: { hostId, computers: [] }, gaps: [`the homes in ${layout.image}, which is not mounted`] };
  }
  const records = listRecords(layout).filter((record) => {
    return isHosted(record) && existsSync(computerLayout(layout, record.computerId).home);
  });
  const withSnapshots = isMounted(layout.homes);
  if (withSnapshots) await removeFrozen(layout);
  const computers: NonNullable<Manifest['homes']>['computers'] = [];
  const gaps: string[] = [];
  async function* tasks() {
    for (const record of records) yield () => storeHome({ vault, layout, withSnapshots, signal }, record);
  }
  for await (const { record, content, leftOut = 0, failure } of inOrder(tasks(), atOnce)) {
    const { computerId, limits } = record;
    const spaceId = record.run?.spec.spaceId ?? record.spaceId ?? '';
    if (leftOut > 0) gaps.push(`${counted(leftOut, 'file')} of the home of ${computerId} that may not be read`);
    if (content !== undefined) computers.push({ computerId, spaceId, limits: { ...limits }, content });
    // A computer deleted meanwhile is no gap.
    else if (existsSync(computerLayout(layout, computerId).home)) gaps.push(`the home of ${computerId} (${failure})`);
  }
  return { homes: { hostId, computers }, gaps };
}

async function storeHome(
  { vault, layout, withSnapshots, signal }: Omit<Deps, 'dir'> & { layout: HostLayout; withSnapshots: boolean },
  record: ComputerRecord,
): Promise<{ record: ComputerRecord; content?: Stored; leftOut?: number; failure?: string }> {
  signal.throwIfAborted();
  const { home } = computerLayout(layout, record.computerId);
  const source = withSnapshots ? home + frozen : home;
  const late = AbortSignal.timeout(mostMs(record.limits));
  try {
    if (withSnapshots) await runHere('btrfs', ['subvolume', 'snapshot', '-r', home, source]);
    let leftOut = 0;
    const bytes = pack(source, AbortSignal.any([signal, late]), () => (leftOut += 1));
    const content = await vault.store(bounded(bytes, mostStreamBytes(record.limits)));
    return { record, content, leftOut };
  } catch (error) {
    signal.throwIfAborted();
    if (late.aborted) return { record, failure: 'it took too long to read' };
    return { record, failure: (error as Error).message };
  } finally {
    if (withSnapshots) await runHere('btrfs', ['subvolume', 'delete', source]).catch(() => undefined);
  }
}

async function* bounded(bytes: AsyncIterable<Buffer>, most: number): AsyncGenerator<Buffer> {
  let count = 0;
  for await (const chunk of bytes) {
    count += chunk.length;
    if (count > most) throw new BackupError(`it has more than ${most / 1_048_576} MiB as a stream`);
    yield chunk;
  }
}

/** Removes the snapshots of a killed backup. */
async function removeFrozen(layout: HostLayout): Promise<void> {
  for (const name of readdirSync(layout.homes).filter((one) => one.endsWith(frozen))) {
    await runHere('btrfs', ['subvolume', 'delete', `${layout.homes}/${name}`]);
  }
}
