import { setTimeout as delay } from 'node:timers/promises';
import type { operations } from '../../api/generated/types.gen.ts';
import { nodeFlags } from '../../bin/nodeFlags.mjs';
import { choosePort } from '../../stack/ports.ts';
import { tied } from '../../stack/tied.ts';
import { asUser, type ChatUser } from '../builders/chat.ts';
import { buildComputer } from '../builders/computer.ts';
import { databasesOf, enter } from '../builders/databases.ts';
import { gitOf, localGitServer, remoteRepository } from '../builders/repository.ts';
import { type FakeProvider, startFakeProvider } from '../fakes/openaiServer.ts';
import { plainEnvironment, program } from '../support/atrium.ts';
import type { GitServer } from '../support/gitServer.ts';
import { createPowerDisk, type PowerDisk, powerCutMissing } from '../support/powerDisk.ts';
import { start, type TestProcess } from '../support/processes.ts';
import { hurriedSweeper, productSettings } from '../support/productSettings.ts';
import { seededRandom } from '../support/random.ts';
import { sizeOf } from '../support/size.ts';
import { waitFor } from '../support/waitFor.ts';
import { type Acknowledged, expectWhole, type PowerLoad, startLoad, turnText } from './powerLoad.ts';

/**
 * The whole of `npm start` on a disk whose power is cut while every area accepts requests. Acknowledged things are
 * there afterwards, byte for byte. Other things are absent or whole.
 */
const cycles = sizeOf('POWER_CUTS', 1, 20);
/** Each area has accepted this many things before the power is cut. */
const fewest = 2;
const checksAtOnce = 6;

const missing = await powerCutMissing();
if (missing !== undefined) {
  test(`Skipped on this machine: ${missing}`, () => expect(missing).toBeDefined());
} else {
  // Each cycle starts Atrium, puts load on every area and checks everything, perhaps on a busy machine.
  jest.setTimeout(180_000 + cycles * 420_000);

  let disk: PowerDisk;
  let provider: FakeProvider;
  let server: GitServer;
  let settings: Record<string, string>;
  let atrium: TestProcess | undefined;
  let url: string;

  beforeAll(async () => {
    disk = createPowerDisk();
    provider = await startFakeProvider({});
    const git = await localGitServer();
    server = git.server;
    const port = await choosePort();
    url = `http://127.0.0.1:${port}`;
    settings = {
      ...productSettings(provider.url),
      ...hurriedSweeper,
      ...git.environment,
      ATRIUM_DATA_DIR: `${disk.folder}/data`,
      ATRIUM_COMPUTERS: 'auto',
      ATRIUM_COMPUTERS_DIR: `${disk.folder}/computers`,
      ATRIUM_COMPUTERS_DRIVERS: 'bubblewrap',
      ATRIUM_PORT: `${port}`,
      ATRIUM_RATE_LIMIT_PER_MINUTE: '0',
      ATRIUM_RATE_LIMIT_ANONYMOUS_PER_MINUTE: '0',
    } as Record<string, string>;
  });
  afterAll(async () => {
    await disk.remove();
    await provider.stop();
    await server[Symbol.asyncDispose]();
  });

  test('Everything that was acknowledged survives the loss of power', async () => {
    const random = seededRandom('power');
    await up();
    const root = await firstUser();
    for (let cycle = 0; cycle < cycles; cycle++) {
      const run = `run${cycle}`;
      const person = await buildPerson(root, run);
      const load = startLoad(person, run);
      await waitFor(
        'every area to accept something',
        () => load.failed.length > 0 || load.areas.every((area) => load.accepted(area) >= fewest),
        { timeoutMs: 200_000 },
      ).catch((error: Error) => {
        throw new Error(`${error.message}\n${countsOf(load)}`);
      });
      await delay(cycles === 1 ? 0 : random(0, 8_000));
      load.end();
      await disk.cut(atrium?.pid ?? 0);
      await atrium?.exited;
      expect(load.failed).toEqual([]);

      await up();
      // The computer ended with its machine, and only this request starts it again.
      await waitFor('the computer to wake', async () => {
        const { status } = await person.computer.fetch('/wake', { method: 'POST' });
        return status === 200;
      });
      const lost = await lostOf(load.acknowledged);
      process.stderr.write(`Cut ${cycle + 1}: ${countsOf(load)}\n`);
      expect(lost).toEqual([]);
      await expectTurns(load, person.user);
      await expectWhole(person, run);
    }
  });

  async function up(): Promise<void> {
    const [command, ...args] = tied(process.env, disk.on([process.execPath, ...nodeFlags, program, 'up', '--json']));
    atrium = start(command, args, { env: plainEnvironment(settings) });
    await atrium.printed(/"apiUrl"/);
  }

  async function firstUser(): Promise<ChatUser> {
    const [command, ...args] = disk.beside(atrium?.pid ?? 0, [process.execPath, ...nodeFlags, program, 'token']);
    const asked = start(command, args, { env: plainEnvironment(settings) });
    await asked.exited;
    return asUser({ url }, { id: '', email: '', token: asked.stdout().trim(), spaceId: '' });
  }

  /** A space of the user with a repository, a computer and a database that the load changes. */
  async function buildPerson(root: ChatUser, name: string) {
    const made = await root.fetch('/api/spaces', { method: 'POST', body: { name } });
    const { id: spaceId } =
      (await made.json()) as operations['createSpace']['responses'][201]['content']['application/json'];
    const user = asUser({ url }, { ...root, spaceId });
    const git = gitOf(user);
    const { id } = (await git.clone({ url: remoteRepository(server).url })).body;
    const { treePath } = await git.cloned(id);
    const computer = await buildComputer({} as never, user);
    await computer.expect(200, 'POST', '/wake');
    const databases = databasesOf(user);
    const notes = await databases.make('notes');
    await waitFor('the database', async () => (await databases.get(notes.id)).status === 'ready');
    const connection = await databases.connection(notes.id);
    await using inside = await enter(connection);
    await inside.query('CREATE TABLE notes (run VARCHAR(20), number INT, PRIMARY KEY (run, number))');
    return {
      user,
      url,
      computer,
      repository: { id, path: treePath ?? '' },
      database: { id: notes.id, ...connection },
      server,
    };
  }

  /** The acknowledged things that are lost or changed, with the reasons. */
  async function lostOf(acknowledged: readonly Acknowledged[]): Promise<string[]> {
    const lost: string[] = [];
    const left = [...acknowledged];
    const lane = async () => {
      for (let next = left.pop(); next !== undefined; next = left.pop()) {
        const { area, number, check } = next;
        await check().catch((error: Error) => lost.push(`${area} ${number}: ${error.message.slice(0, 500)}`));
      }
    };
    await Promise.all(Array.from({ length: checksAtOnce }, lane));
    return lost;
  }

  /** Expects that each turn has ended once, with its whole answer. */
  async function expectTurns(load: PowerLoad, user: ChatUser): Promise<void> {
    const readings = await Promise.all(load.readings);
    expect(new Set(readings.map(({ turnId }) => turnId)).size).toBe(readings.length);
    for (const { turnId, threadId } of readings) {
      const turn = await user.turn(turnId);
      expect(turn).toMatchObject({ status: 'completed', finishReason: 'stop' });
      expect(await user.answerOf(turn)).toBe(turnText);
      expect((await user.messages(threadId)).map(({ role }) => role)).toEqual(['user', 'assistant']);
    }
  }

  function countsOf(load: PowerLoad): string {
    const counts = load.areas.map((area) => `${area} ${load.accepted(area)}`);
    return [...counts, `turns ${load.readings.length}`].join(', ');
  }
}
