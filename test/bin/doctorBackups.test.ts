import { writeManifest } from '../../backup/vault/manifests.ts';
import { checkBackups } from '../../bin/support/checkBackups.ts';
import { buildVault, manifestOf } from '../builders/backups.ts';

// The check of `atrium doctor` for backups.

const hourMs = 3_600_000;

test('doctor reports backups that are off, missing, too old or good', async () => {
  const { backup, vault } = await buildVault();
  expect(await checkBackups({ backup: { ...backup, to: undefined } })).toMatchObject({ state: 'off' });
  await expect(checkBackups({ backup })).rejects.toThrow(/There is no finished backup in /);

  const old = new Date(Date.now() - 60 * hourMs).toISOString();
  await writeManifest(vault, manifestOf({ at: old }));
  expect(await checkBackups({ backup })).toEqual({
    state: 'wrong',
    detail: `the last good one is of ${old}, in ${backup.to}: 60 hours ago`,
  });
  const recent = new Date(Date.now() - hourMs).toISOString();
  await writeManifest(vault, manifestOf({ at: recent, gaps: ['the home of cmp_1'] }));
  expect(await checkBackups({ backup })).toEqual({
    state: 'ok',
    detail: `the last good one is of ${recent}, in ${backup.to}; it lacks the home of cmp_1`,
  });
});
