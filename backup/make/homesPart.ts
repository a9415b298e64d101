import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { isMounted } from '../../integrations/computers/host/disks/btrfs.ts';
import { computerLayout, type HostLayout, hostLayout } from '../../integrations/computers/host/layout.ts';
import { type ComputerRecord, listRecords } from '../../integrations/computers/host/records.ts';
import { runHere } from '../../integrations/computers/spawner/runHere.ts';
import { pack } from '../tar.ts';
import type { Manifest } from '../vault/manifests.ts';
import type { Stored, Vault } from '../vault/vault.ts';
import { inOrder } from './inOrder.ts';

const atOnce = 2;
/** What a home is called as it was at the moment of its backup. */
const frozen = '.backup';

type Homes = Pick<Manifest, 'homes' | 'gaps'>;

interface Deps {
  vault: Vault;
  /** The host's folder on this machine. */
  dir: string;
  signal: AbortSignal;
}

/**
 * The homes of the computers that this machine hosts, while they run. Where homes are subvolumes, each is as it was at
 * one moment; else each of its files is as it was when it was read.
 */
export async function storeHomes({ vault, dir, signal }: Deps): Promise<Homes> {
  const layout = hostLayout(dir);
  if (!existsSync(layout.identity)) return { homes: null, gaps: [] };
  const { hostId } = JSON.parse(readFileSync(layout.identity, 'utf8')) as { hostId: string };
  if (existsSync(layout.image) && !isMounted(layout.homes)) {
    return { homes: { hostId, computers: [] }, gaps: [`the homes in ${layout.image}, which is not mounted`] };
  }
  const records = listRecords(layout).filter(({ computerId, removing }) => {
    return removing !== true && existsSync(computerLayout(layout, computerId).home);
  });
  const withSnapshots = isMounted(layout.homes);
  if (withSnapshots) await removeFrozen(layout);
  const computers: NonNullable<Manifest['homes']>['computers'] = [];
  const gaps: string[] = [];
  async function* tasks() {
    for (const record of records) yield () => storeHome({ vault, layout, withSnapshots, signal }, record);
  }
  for await (const { record, content, failure } of inOrder(tasks(), atOnce)) {
    const { computerId, limits } = record;
    const spaceId = record.run?.spec.spaceId ?? record.spaceId ?? '';
    if (content !== undefined) computers.push({ computerId, spaceId, limits: { ...limits }, content });
    // One that was deleted meanwhile is nobody's.
    else if (existsSync(computerLayout(layout, computerId).home)) gaps.push(`the home of ${computerId} (${failure})`);
  }
  return { homes: { hostId, computers }, gaps };
}

async function storeHome(
  { vault, layout, withSnapshots, signal }: Omit<Deps, 'dir'> & { layout: HostLayout; withSnapshots: boolean },
  record: ComputerRecord,
): Promise<{ record: ComputerRecord; content?: Stored; failure?: string }> {
  signal.throwIfAborted();
  const { home } = computerLayout(layout, record.computerId);
  const source = withSnapshots ? home + frozen : home;
  try {
    if (withSnapshots) await runHere('btrfs', ['subvolume', 'snapshot', '-r', home, source]);
    return { record, content: await vault.store(pack(source, signal)) };
  } catch (error) {
    signal.throwIfAborted();
    return { record, failure: (error as Error).message };
  } finally {
    if (withSnapshots) await runHere('btrfs', ['subvolume', 'delete', source]).catch(() => undefined);
  }
}

/** Of a backup that was killed. */
async function removeFrozen(layout: HostLayout): Promise<void> {
  for (const name of readdirSync(layout.homes).filter((one) => one.endsWith(frozen))) {
    await runHere('btrfs', ['subvolume', 'delete', `${layout.homes}/${name}`]);
  }
}
