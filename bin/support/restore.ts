import { join } from 'node:path';
import { BackupError, DamageError, NotEmptyError } from '../../backup/errors.ts';
import type { Watch } from '../../backup/pace.ts';
import { beginJournal, findRestored, type Journal, openJournal } from '../../backup/restore/journal.ts';
import { removeKeyFiles, removeKeys, restoreKeys } from '../../backup/restore/keysPart.ts';
import { assertKnown, restoreBackup } from '../../backup/restore/restoreBackup.ts';
import { type Manifest, readManifest } from '../../backup/vault/manifests.ts';
import { openVault } from '../../backup/vault/openVault.ts';
import type { BackupConfig } from '../../config/backup.ts';
import { loadConfig } from '../../config/index.ts';
import { type LaunchConfig, loadLaunchConfig } from '../../config/launch.ts';
import { startStack } from '../../stack/index.ts';
import type { Report } from '../../stack/report.ts';
import { commandLine } from './commandLine.ts';
import { findInstallation } from './findInstallation.ts';
import { takeDataDir } from './running.ts';
import { stopOnSignals } from './signals.ts';

export interface Restored {
  backup: string;
  at: string;
  dataDir: string;
  /** Whether the installation waits for `atrium resume`. */
  isQuiet: boolean;
  /** The parts that the backup lacks, in words. */
  gaps: string[];
  /** Objects that the bucket had lost before the backup. */
  missing: Manifest['missing'];
}

/** Restores a backup: the newest, or the one with `id`. Parts of this machine run only for the restore. */
export async function restore(
  backups: BackupConfig,
  id: string | undefined,
  { report, watch, resumes }: { report: Report; watch?: Watch | undefined; resumes: boolean },
): Promise<Restored> {
  const signal = stopOnSignals();
  const launch = loadLaunchConfig();
  const vault = await openVault(backups);
  await using done = new AsyncDisposableStack();
  done.defer(() => vault.place.close());
  const manifest = await readManifest(vault, id);
  assertKnown(manifest);
  report(`The backup ${manifest.id}, of ${manifest.at}`);
  const lock = await takeDataDir(launch.dataDir, report, signal);
  done.defer(() => lock.release());
  const journal =
    openJournal(launch.dataDir, manifest.id) ??
    begin(launch, { backup: manifest.id, from: vault.place.title, keyFile: backups.keyFile ?? '' });
  await restoreKeys(manifest, launch.dataDir);
  // Temporal starts empty. The sweeper restarts pending work from the database.
  const stack = await startStack({ ...launch, need: { ...launch.need, temporal: false }, report, signal });
  done.defer(() => stack.stop());
  const config = loadConfig({
    ATRIUM_TEMPORAL_ADDRESS: noTemporal,
    ...placeOfHomes(launch),
    ...launch.environment,
    ...stack.environment,
  });
  const { gaps } = await restoreBackup({
    vault,
    manifest,
    config,
    need: launch.need,
    journal,
    report,
    watch,
    resumes,
    signal,
  }).catch(async (error) => {
    if (error instanceof DamageError) throw new BackupError(`${error.message} ${howeverDamaged}`, { cause: error });
    if (!(error instanceof NotEmptyError)) throw error;
    // An attempt that has written nothing leaves no trace, so that the next one checks the folder again.
    await removeKeyFiles(launch.dataDir);
    journal.discard();
    throw error;
  });
  await removeKeys(config);
  journal.finish();
  return {
    backup: manifest.id,
    at: manifest.at,
    dataDir: launch.dataDir,
    isQuiet: !resumes,
    gaps,
    missing: manifest.missing,
  };
}

const howeverDamaged = `An older backup may still be whole ("${commandLine} backup verify ID"): restore that one by --backup into another data directory, which is empty.`;

/** A placeholder: a configuration must have an address, but a restore does not use it. */
const noTemporal = '127.0.0.1:1';

/** The folder that `npm start` uses for homes, even while computers are off. */
function placeOfHomes({ dataDir, need }: LaunchConfig): Record<string, string> {
  return need.database ? { ATRIUM_COMPUTERS_DIR: join(dataDir, 'services', 'computers') } : {};
}

function begin(launch: LaunchConfig, backup: { backup: string; from: string; keyFile: string }): Journal {
  const { dataDir } = launch;
  const found = findInstallation(launch);
  if (found === undefined) return beginJournal(dataDir, backup);
  const restored = findRestored(dataDir);
  const done =
    restored === undefined
      ? ''
      : `The backup ${restored} was restored into ${dataDir} and that has finished: start Atrium by "npm start". `;
  throw new BackupError(
    `${done}A backup is restored into an empty installation, and there is ${found}. Nothing was changed. To restore here, set ATRIUM_DATA_DIR to an empty folder, or move ${dataDir} away first.`,
  );
}
