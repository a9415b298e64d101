import { randomBytes } from 'node:crypto';
import { readdirSync, readFileSync, truncateSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { idsOf, textOf } from '../builders/chat.ts';
import { computerOf, type TestComputer } from '../builders/computer.ts';
import { databasesOf, enter } from '../builders/databases.ts';
import { putFile } from '../builders/files.ts';
import { lose, loseAll, type Machine, machineSettings, newMachine, startOn } from '../builders/machines.ts';
import { type FakeProvider, startFakeProvider } from '../fakes/openaiServer.ts';
import { runAtrium, startAtrium } from '../support/atrium.ts';
import { temporaryFolder } from '../support/folders.ts';
import { until } from '../support/processes.ts';
import { abortStreams } from '../support/sseClient.ts';
import { waitFor } from '../support/waitFor.ts';

// A machine is lost with all its data. A backup that was made while it worked is restored on another machine, and
// everything works there.

let provider: FakeProvider;
let key: string;
let place: string;
beforeAll(async () => {
  provider = await startFakeProvider();
  const folder = temporaryFolder();
  [key, place] = [join(folder, 'recovery.key'), join(folder, 'backups')];
});
afterAll(() => provider.stop());
// Runs before the temporary folders are removed.
afterEach(loseAll);

const settings = (dataDir: string) => ({ ...machineSettings(dataDir, provider), ...placeOfBackups() });
const placeOfBackups = () => ({ ATRIUM_BACKUP_TO: place, ATRIUM_BACKUP_KEY_FILE: key });
const startMachine = (dataDir: string) => startOn(settings(dataDir));

/** Writes and deletes files until `stop`. `contents` has the text of each file. */
function writeOn(machine: Machine) {
  let stops = false;
  const contents = new Map<string, string>();
  const write = async () => {
    for (let number = 0; !stops; number++) {
      const [path, text] = [`written/${number}.txt`, randomBytes(20_000).toString('hex')];
      contents.set(path, text);
      await putFile(machine, machine.user, path, text);
      if (number % 3 === 2) await removeForGood(machine, `written/${number - 2}.txt`);
    }
  };
  const writing = write();
  return {
    contents,
    async stop() {
      stops = true;
      await writing;
    },
  };
}

const itemOf = async ({ user }: Machine, path: string) => {
  const found = await user.get<{ data: { id: string; name: string }[] }>(
    `/api/spaces/${user.spaceId}/drive/items?path=${encodeURIComponent(path.split('/').slice(0, -1).join('/'))}&limit=200`,
  );
  return found.data.find(({ name }) => name === path.split('/').at(-1));
};

async function removeForGood(machine: Machine, path: string): Promise<void> {
  const { user } = machine;
  const item = await itemOf(machine, path);
  const response = await user.fetch(`/api/spaces/${user.spaceId}/drive/items/${item?.id}?permanent=true`, {
    method: 'DELETE',
  });
  if (!response.ok) throw new Error(`The removal answered ${response.status}: ${await response.text()}`);
}

async function readAll({ user }: Machine, folder: string): Promise<Map<string, string>> {
  const contents = new Map<string, string>();
  const path = `/api/spaces/${user.spaceId}/drive/items?limit=200${folder === '' ? '' : `&path=${folder}`}`;
  const { data } = await user.get<{ data: { id: string; name: string }[] }>(path);
  for (const { id, name } of data) {
    const response = await user.fetch(`/api/spaces/${user.spaceId}/drive/items/${id}/content`);
    contents.set(`${folder}/${name}`, response.ok ? await response.text() : `${response.status}`);
  }
  return contents;
}

test('a restore on a new machine brings back everything of a lost machine', async () => {
  const first = await startMachine(newMachine());
  const { user } = first;
  expect((await first.run('backup', 'key', key)).code).toBe(0);

  // Fill the machine.
  const { threadId, turnId } = await user.ask({ spaceId: user.spaceId, content: 'Remember me' });
  expect((await user.ended(turnId)).status).toBe('completed');
  const large = randomBytes(3_000_000).toString('hex');
  await putFile(first, user, 'large.txt', large);
  const databases = databasesOf(user);
  const { id: databaseId } = await databases.make('shop');
  await waitFor('the database', async () => (await databases.get(databaseId)).status === 'ready');
  const before = await databases.connection(databaseId);
  {
    await using client = await enter(before);
    await client.query('CREATE TABLE goods (name VARCHAR(20))');
    await client.query("INSERT INTO goods VALUES ('tea')");
  }
  const made = await user.fetch(`/api/spaces/${user.spaceId}/computers`, {
    method: 'POST',
    body: { name: 'Desk', env: { GREETING: 'hello' } },
  });
  const { id: computerId } = (await made.json()) as { id: string };
  const computer = computerOf(user, computerId);
  expect(await computer.exec('echo "at home" > note.txt && mkdir -p a && ln -s ../note.txt a/link')).toMatchObject({
    exitCode: 0,
  });

  // This turn is still running when its machine is lost.
  provider.enqueue({ tokens: 10_000, intervalMs: 100 });
  const unended = idsOf(await user.send({ spaceId: user.spaceId, content: 'Take your time' }));

  // Back up twice while files are written. The second backup stores only new bytes.
  const writer = writeOn(first);
  await until(() => writer.contents.size > 3);
  const backUp = async () => {
    const { code, stdout, output } = await first.run('backup', '--keep', '2', '--json');
    if (code !== 0) throw new Error(output);
    return JSON.parse(stdout) as { id: string; newBytes: number; gaps: string[] };
  };
  expect(await backUp()).toMatchObject({ gaps: [] });
  const second = await backUp();
  expect(second.newBytes).toBeLessThan(large.length / 4);
  await writer.stop();
  expect((await first.run('backup', 'verify')).stdout).toMatch(/ is whole: /);

  abortStreams();
  await lose(first.dataDir);

  // Restore in two attempts. Between them, Atrium cannot be started.
  const dataDir = newMachine();
  const restoring = startAtrium(['restore'], settings(dataDir));
  await restoring.printed(/Database restored/);
  restoring.child.kill('SIGKILL');
  await restoring.exited;
  const goesOn = `npm run -s atrium -- restore --from ${place} --key-file ${key} --backup ${second.id}\n`;
  for (const command of ['up', 'token', 'backup', 'status']) {
    const { code, output } = await runAtrium([command], settings(dataDir));
    expect([code, output]).toEqual([1, expect.stringMatching(/^A restore of the backup .* has not finished/)]);
    expect(output).toContain(goesOn);
  }
  const restored = await runAtrium(['restore', '--json'], settings(dataDir));
  expect({ code: restored.code, output: restored.output }).toMatchObject({ code: 0 });
  expect(JSON.parse(restored.stdout)).toMatchObject({ backup: second.id, gaps: [] });
  expect((await runAtrium(['restore'], settings(dataDir))).output).toMatch(
    /has finished: start Atrium by "npm start".*into an empty installation, and there is/,
  );

  const other = await startMachine(dataDir);
  expect(other.user.spaceId).toBe(user.spaceId);
  const old = await fetch(`${other.url}/api/me`, { headers: { authorization: `Bearer ${user.token}` } });
  expect(old.status).toBe(401);
  const messages = await other.user.messages(threadId);
  expect(messages.map(({ parts }) => textOf(parts))).toEqual(['Remember me', 'Hello from the fake provider.']);
  expect((await readAll(other, '')).get('/large.txt')).toBe(large);
  // Every restored file has its contents, although files were written and deleted during the backup.
  const files = await readAll(other, 'written');
  expect(files.size).toBeGreaterThan(2);
  for (const [path, text] of files) expect(text).toBe(writer.contents.get(path));
  const after = await databasesOf(other.user).connection(databaseId);
  expect(after).toMatchObject({ user: before.user, password: before.password, database: before.database });
  await using client = await enter(after);
  expect((await client.query('SELECT name FROM goods'))[0]).toEqual([{ name: 'tea' }]);
  const restoredComputer = computerOf(other.user, computerId);
  // Its files can be read before it first runs here.
  const note = await restoredComputer.fetch('/files?path=note.txt');
  expect([note.status, await note.text()]).toEqual([200, 'at home\n']);
  expect(await restoredComputer.expect(200, 'GET', '/processes')).toMatchObject({ data: [] });
  expect(await restoredComputer.expect(200, 'GET', '')).toMatchObject({
    status: 'stopped',
    error: { code: 'RESTORED' },
  });
  await expectHome(restoredComputer);
  expect(['completed', 'failed']).toContain((await other.user.ended(unended.turnId)).status);
  expect((await other.user.ask({ threadId, content: 'Still there?' })).threadId).toBe(threadId);
  other.process.child.kill('SIGINT');
  await other.process.exited;
  await assertDamageIsFound(dataDir);
}, 300_000);

async function expectHome(computer: TestComputer): Promise<void> {
  expect(await computer.exec('cat a/link; echo "$GREETING"; stat -c %U note.txt')).toMatchObject({
    exitCode: 0,
    stdout: 'at home\nhello\nuser\n',
  });
}

async function assertDamageIsFound(dataDir: string): Promise<void> {
  const run = (args: string[], more = {}) => runAtrium(args, { ...settings(dataDir), ...more });
  const pieces = readdirSync(join(place, 'pieces'), { recursive: true, encoding: 'utf8' })
    .filter((name) => name.includes('/'))
    .map((name) => join(place, 'pieces', name));
  const wrong = join(temporaryFolder(), 'wrong.key');
  writeFileSync(wrong, 'a passphrase of somebody else', { mode: 0o600 });
  expect((await run(['backup', 'verify'], { ATRIUM_BACKUP_KEY_FILE: wrong })).output).toMatch(
    /^The recovery key does not open the backups in .*: they were made with another\.\n$/,
  );
  for (const piece of pieces) truncateSync(piece, readFileSync(piece).length - 1);
  expect(await run(['backup', 'verify'])).toMatchObject({ code: 1, output: expect.stringMatching(/is damaged/) });
  const another = newMachine();
  expect(await run(['restore'], { ATRIUM_DATA_DIR: another })).toMatchObject({
    code: 1,
    output: expect.stringMatching(/is damaged/),
  });
}
