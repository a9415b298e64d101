import { type Command, InvalidArgumentError } from 'commander';
import { describeBytes } from '../../backup/describeBytes.ts';
import { DamageError } from '../../backup/errors.ts';
import { listBackups, type Manifest, type NamedManifest, readManifest } from '../../backup/vault/manifests.ts';
import { assertElsewhere, openVault } from '../../backup/vault/openVault.ts';
import { makeRecoveryKey } from '../../backup/vault/recoveryKey.ts';
import type { Vault } from '../../backup/vault/vault.ts';
import { counted } from '../../base/text.ts';
import type { BackupConfig } from '../../config/backup.ts';
import { loadBackupConfig } from '../../config/backupPlace.ts';
import { columns, print, wantsJson } from '../support/answer.ts';
import { commandLine } from '../support/commandLine.ts';
import { loadCommandConfig } from '../support/installation.ts';
import { quietAdvice } from '../support/quiet.ts';
import { showPace } from '../support/showPace.ts';
import { stopOnSignals } from '../support/signals.ts';

interface PlaceOptions {
  from?: string;
  to?: string;
  keyFile?: string;
}

/** `atrium backup`, and its commands that list and check backups. */
export function addBackup(program: Command): void {
  const backup = withPlace(program.command('backup'), '--to')
    .description('back up everything while Atrium runs: database, bucket, databases of spaces, homes, keys')
    .option('--keep <count>', 'remove all older backups but so many', readCount)
    .option('--json', 'answer in JSON')
    .allowExcessArguments()
    .action(async ({ keep, ...place }: PlaceOptions & { keep?: number }, command: Command) => {
      const [unknown] = command.args;
      if (unknown !== undefined) command.error(`error: there is no command 'backup ${unknown}'`);
      const { makeBackup } = await import('../../backup/make/makeBackup.ts');
      const config = loadCommandConfig();
      assertElsewhere(placeOf(place), config);
      const signal = stopOnSignals();
      const { watch, clear } = showPace(wantsJson(command));
      const report = (line: string) => {
        clear();
        if (!wantsJson(command)) console.log(line);
      };
      await withVault({ ...place, makes: true }, async (vault) => {
        const made = await makeBackup({ vault, config, keep, report, watch, signal }).finally(clear);
        const { id, gaps, missing, newBytes } = made.manifest;
        const text = [
          `The backup ${id} is in ${vault.place.title}: ${describeBytes(newBytes)} of it new`,
          ...gaps.map((gap) => `It lacks ${gap}.`),
          ...describeMissing(missing),
          ...made.removedBackups.map((old) => `Removed ${old}`),
        ];
        print(command, { json: { id, gaps, missing, newBytes, removed: made.removedBackups }, text: text.join('\n') });
        noteMissing(missing);
      });
    });
  backup
    .command('key')
    .description('make a recovery key, which opens backups; keep a copy of it away from this machine')
    .argument('<file>')
    .action(async (file: string) => {
      await makeRecoveryKey(file);
      console.log(`${file} opens your backups. Keep a copy elsewhere: without it no backup can be restored.`);
    });
  withEitherPlace(backup.command('list'))
    .description('list the backups that there are, oldest first')
    .option('--json', 'answer in JSON')
    .action(async (_options: unknown, command: Command) => {
      await withVault(command.optsWithGlobals<PlaceOptions>(), async (vault) => {
        const json: object[] = [];
        const rows: string[][] = [];
        for (const id of await listBackups(vault)) {
          const manifest = await readManifest(vault, id).catch(whereDamaged);
          json.push(manifest === undefined ? { id, isDamaged: true } : summaryOf(manifest));
          rows.push(manifest === undefined ? [id, 'damaged', '', '', ''] : rowOf(manifest));
        }
        print(command, { json, text: rows.length === 0 ? 'There is none yet.' : columns(rows) });
      });
    });
  withEitherPlace(backup.command('verify'))
    .description('read a backup from its beginning to its end, the newest without an id')
    .argument('[id]')
    .option('--json', 'answer in JSON')
    .action(async (id: string | undefined, _options: unknown, command: Command) => {
      const { verify } = await import('../../backup/verify.ts');
      await withVault(command.optsWithGlobals<PlaceOptions>(), async (vault) => {
        const verified = await verify(vault, id);
        const { missing } = verified;
        const text = [
          `The backup ${verified.id} is whole: ${counted(verified.pieces, 'piece')}, ${describeBytes(verified.bytes)}.`,
          ...(missing.count > 0
            ? [`It lacks ${counted(missing.count, 'object')} that the bucket had lost before it.`]
            : []),
          ...describeMissing(missing),
        ];
        print(command, { json: verified, text: text.join('\n') });
        noteMissing(missing);
      });
    });
}

/** `atrium restore`. */
export function addRestore(program: Command): void {
  withPlace(program.command('restore'), '--from')
    .description('restore a backup into an empty installation; run it again when it was broken off')
    .option('--backup <id>', 'which one, if not the newest')
    .option('--resume', 'let automations, webhooks, schedules and mail go on at once: the original is lost')
    .option('--json', 'answer in JSON')
    .action(async (options: PlaceOptions & { backup?: string; resume?: boolean }, command: Command) => {
      const { backup: id, resume: resumes = false, ...place } = options;
      const { restore } = await import('../support/restore.ts');
      const json = wantsJson(command);
      const { watch, clear } = showPace(json);
      const report = (line: string) => {
        clear();
        (json ? console.error : console.log)(line);
      };
      const restored = await restore(placeOf(place), id, { report, watch, resumes }).finally(clear);
      const text = [
        ...restored.gaps.map((gap) => `It lacks ${gap}.`),
        ...describeMissing(restored.missing),
        ...(restored.isQuiet ? [quietAdvice] : []),
        `Restored into ${restored.dataDir}. Start Atrium ("npm start"); everybody signs in anew (${commandLine} token).`,
      ];
      print(command, { json: restored, text: text.join('\n') });
      noteMissing(restored.missing);
      process.exit();
    });
}

function withPlace(command: Command, flag: '--to' | '--from'): Command {
  return command
    .option(`${flag} <place>`, 'the folder, or s3://BUCKET/PREFIX (otherwise ATRIUM_BACKUP_TO)')
    .option('--key-file <file>', 'the recovery key (otherwise ATRIUM_BACKUP_KEY_FILE)');
}

/** Commands that read backups accept `--to` as well as `--from`. */
function withEitherPlace(command: Command): Command {
  return withPlace(command, '--from').option('--to <place>', 'the same');
}

function placeOf({ from, to, keyFile }: PlaceOptions): BackupConfig {
  const config = loadBackupConfig();
  return { ...config, to: from ?? to ?? config.to, keyFile: keyFile ?? config.keyFile };
}

async function withVault(
  { makes = false, ...place }: PlaceOptions & { makes?: boolean },
  work: (vault: Vault) => Promise<void>,
): Promise<void> {
  const vault = await openVault(placeOf(place), { makes });
  try {
    await work(vault);
  } finally {
    vault.place.close();
  }
}

const mostShown = 20;

/** The first rows whose objects are lost, and how many more there are. */
function describeMissing({ count, named }: Manifest['missing']): string[] {
  const lines = named.slice(0, mostShown).map((one) => `  ${one.owner} in ${one.spaceId} (object ${one.key})`);
  return count > lines.length && count > 0 ? [...lines, `  and ${count - lines.length} more (--json)`] : lines;
}

/** The command succeeded, but the exit code tells a nightly job that objects are missing. */
function noteMissing({ count }: Manifest['missing']): void {
  if (count > 0) process.exitCode = objectsLostCode;
}

/** Exit code of a backup that is whole except for objects that the bucket had already lost. */
const objectsLostCode = 3;

function summaryOf({ id, at, finishedAt, objectCount, objectBytes, newBytes, gaps, missing }: NamedManifest): object {
  return { id, at, finishedAt, objectCount, objectBytes, newBytes, gaps, missing };
}

function rowOf({ id, at, objectCount, newBytes, gaps }: NamedManifest): string[] {
  const lacks = gaps.length > 0 ? counted(gaps.length, 'gap') : '';
  return [id, at, counted(objectCount, 'object'), `${describeBytes(newBytes)} new`, lacks];
}

function whereDamaged(error: unknown): undefined {
  if (!(error instanceof DamageError)) throw error;
}

function readCount(text: string): number {
  const count = Number(text);
  if (Number.isInteger(count) && count >= 1) return count;
  throw new InvalidArgumentError('A whole number, at least 1.');
}
