import { join } from 'node:path';
import { computerOf } from '../builders/computer.ts';
import { loseAll, machineSettings, newMachine, startOn } from '../builders/machines.ts';
import { type FakeProvider, startFakeProvider } from '../fakes/openaiServer.ts';
import { runAtrium } from '../support/atrium.ts';
import { temporaryFolder } from '../support/folders.ts';
import { waitFor } from '../support/waitFor.ts';

// A backup is restored on the machine on which its original runs.

let provider: FakeProvider;
beforeAll(async () => {
  provider = await startFakeProvider();
});
afterAll(() => provider.stop());
afterEach(loseAll);

test("a restored copy beside its original does not touch the original's computers, and waits for a resume", async () => {
  const folder = temporaryFolder();
  const place = { ATRIUM_BACKUP_TO: join(folder, 'backups'), ATRIUM_BACKUP_KEY_FILE: join(folder, 'key') };
  const first = await startOn({ ...machineSettings(newMachine(), provider), ...place });
  const { user } = first;
  const spaces = `/api/spaces/${user.spaceId}`;
  const made = await user.fetch(`${spaces}/computers`, { method: 'POST', body: { name: 'Desk' } });
  const { id } = (await made.json()) as { id: string };
  const original = computerOf(user, id);
  expect(await original.exec('echo "at home" > note.txt')).toMatchObject({ exitCode: 0 });
  const begun = await user.fetch(`${spaces}/computers/${id}/processes`, {
    method: 'POST',
    body: { command: 'sleep 1000' },
  });
  const { id: processId } = (await begun.json()) as { id: string };
  expect((await first.run('backup', 'key', place.ATRIUM_BACKUP_KEY_FILE)).code).toBe(0);
  expect(await first.run('backup')).toMatchObject({ code: 0 });

  const settings = { ...machineSettings(newMachine(), provider), ...place };
  const restored = await runAtrium(['restore', '--json'], settings);
  expect(restored).toMatchObject({ code: 0 });
  expect(JSON.parse(restored.stdout)).toMatchObject({ isQuiet: true });
  const copy = await startOn(settings);
  // The copy's computer wakes with the home from the backup, while the original's computer goes on.
  expect(await computerOf(copy.user, id).exec('cat note.txt; echo changed > note.txt')).toMatchObject({
    exitCode: 0,
    stdout: 'at home\n',
  });
  const waiting = await copy.run('status');
  expect(waiting).toMatchObject({ code: 0, output: expect.stringMatching(/ quiet +since .* resume" lets them go on/) });
  expect((await copy.run('doctor')).output).toMatch(/– quiet +since /);

  const process = await user.get<{ state: string }>(`${spaces}/computers/${id}/processes/${processId}`);
  expect(process.state).toBe('running');
  expect((await user.get<{ status: string }>(`${spaces}/computers/${id}`)).status).toBe('running');
  expect(await original.exec('cat note.txt')).toMatchObject({ exitCode: 0, stdout: 'at home\n' });

  expect((await copy.run('resume')).output).toMatch(/^Resumed\./);
  expect((await copy.run('resume')).output).toMatch(/is not quiet/);
  await waitFor('the copy to be ready', async () => (await copy.run('status')).code === 0);
  expect((await copy.run('status')).output).not.toMatch(/quiet/);
}, 300_000);
