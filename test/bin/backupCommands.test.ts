import { rmSync } from 'node:fs';
import { join } from 'node:path';
import { beginJournal } from '../../backup/restore/journal.ts';
import { writeManifest } from '../../backup/vault/manifests.ts';
import { announceOurselves } from '../../bin/support/running.ts';
import { prepareDataDir } from '../../stack/folders.ts';
import { buildVault, manifestOf } from '../builders/backups.ts';
import { runAtrium } from '../support/atrium.ts';
import { temporaryFolder } from '../support/folders.ts';

// The backup commands on a machine on which no Atrium runs.

const run = (args: string[], dataDir = temporaryFolder(), more: Record<string, string> = {}) =>
  runAtrium(args, { ATRIUM_DATA_DIR: dataDir, ATRIUM_PORT: '0', ...more });

test('--from and --to both name the place of backups', async () => {
  const { vault, backup } = await buildVault();
  const { id } = await writeManifest(vault, manifestOf({ at: '2026-01-01T00:00:00.000Z' }));
  for (const flag of ['--from', '--to']) {
    for (const command of ['list', 'verify']) {
      const { code, output } = await run(['backup', command, flag, backup.to, '--key-file', backup.keyFile]);
      expect([code, output]).toEqual([0, expect.stringContaining(id)]);
    }
  }
});

test('verify lists the files whose objects a backup lacks, and exits with code 3', async () => {
  const { vault, backup } = await buildVault();
  const named = [{ key: 'abc', spaceId: 'spc_1', owner: 'the file itm_1' }];
  await writeManifest(vault, manifestOf({ at: '2026-01-01T00:00:00.000Z', missing: { count: 2, named } }));
  const place = ['--from', backup.to, '--key-file', backup.keyFile];
  const { code, output } = await run(['backup', 'verify', ...place]);
  expect([code, output]).toEqual([3, expect.stringMatching(/ is whole: .*\nIt lacks 2 objects/)]);
  expect(output).toContain('the file itm_1 in spc_1 (object abc)\n  and 1 more (--json)\n');
  const inJson = await run(['backup', 'verify', '--json', ...place]);
  expect(JSON.parse(inJson.stdout)).toMatchObject({ missing: { count: 2, named } });
});

test('an unknown command gets the list of commands, and an unknown option the help of its command', async () => {
  const { code, output } = await run(['backup', 'foo']);
  expect(code).toBe(1);
  expect(output).toContain("there is no command 'backup foo'");
  expect(output).toContain('npm run -s atrium -- backup --help tells its options and commands: key, list, verify');
  expect((await run(['backup', 'verify', '--old'])).output).toContain('npm run -s atrium -- backup verify --help');
});

test('every command reports an unfinished restore, with the command that continues it', async () => {
  const dataDir = temporaryFolder();
  beginJournal(dataDir, { backup: 'one', from: '/mnt/my backups', keyFile: '/safe/recovery.key' });
  const goesOn = "restore --from '/mnt/my backups' --key-file /safe/recovery.key --backup one";
  for (const command of ['status', 'token', 'backup', 'doctor']) {
    const { code, output } = await run([command], dataDir);
    expect([command, code]).toEqual([command, 1]);
    expect(output).toMatch(/A restore of the backup one was begun in .* and has not finished\./);
    expect(output).toContain(`npm run -s atrium -- ${goesOn}`);
    expect(output).not.toContain('npm start');
  }
});

test('doctor on an empty installation points to a backup that can be restored', async () => {
  const { vault, backup } = await buildVault();
  await writeManifest(vault, manifestOf({ at: '2026-01-01T00:00:00.000Z' }));
  const place = { ATRIUM_BACKUP_TO: backup.to, ATRIUM_BACKUP_KEY_FILE: backup.keyFile };
  expect((await run(['doctor'], undefined, place)).output).toMatch(
    /– backups +there is one of 2026-01-01.*, and nothing in .* yet: "npm run -s atrium -- restore" restores it/,
  );
  rmSync(join(backup.to, 'atrium-backups.json'));
  expect((await run(['doctor'], undefined, place)).output).toMatch(/✗ backups +There are no backups in/);
});

test('commands say that Atrium is still starting, and doctor accepts the variables of clients', async () => {
  const dataDir = temporaryFolder();
  prepareDataDir(dataDir);
  const presence = announceOurselves(dataDir);
  const { output } = await run(['doctor'], dataDir, { ATRIUM_API_KEY: 'atr_1' });
  expect(output).toMatch(/– parts +.*database.*: still starting/);
  expect(output).not.toMatch(/ATRIUM_DATABASE_URL|there is no ATRIUM/);
  expect((await run(['token'], dataDir)).output).toMatch(/^Atrium is still starting here\./);
  presence.withdraw();
});
