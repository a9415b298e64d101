import { createHash, randomUUID } from 'node:crypto';
import type { operations } from '../../api/generated/types.gen.ts';
import { automationsOf } from '../builders/automations.ts';
import type { ChatUser } from '../builders/chat.ts';
import type { TestComputer } from '../builders/computer.ts';
import { databasesOf, enter } from '../builders/databases.ts';
import { driveOf, type ItemPage } from '../builders/drive.ts';
import { fake } from '../builders/product.ts';
import { gitOf, remoteRepository } from '../builders/repository.ts';
import type { GitServer } from '../support/gitServer.ts';
import { waitFor } from '../support/waitFor.ts';
import { type PersistentReading, sendAndRead } from './persistentReader.ts';

/** Throws unless the accepted thing is still there, unchanged. */
type Check = () => Promise<void>;

/** One kind of thing that the load makes again and again. */
interface Area {
  name: string;
  /** The most times. Each accepted thing is checked later, which takes time too. */
  most?: number;
  /** Makes the thing of this number. Resolves when the product has accepted it. */
  accept(number: number): Promise<Check>;
}

interface Person {
  user: ChatUser;
  /** The URL of the product. */
  url: string;
  computer: TestComputer;
  repository: { id: string; path: string };
  database: { id: string; url: string };
  server: GitServer;
}

type Upload = operations['createUpload']['responses'][201]['content']['application/json'];

/** The content of the file of this number. It is the same each time and contains no zeros. */
function contentOf(number: number, size: number): Uint8Array<ArrayBuffer> {
  const line = createHash('sha256').update(`${number}`).digest('base64');
  return new Uint8Array(Buffer.alloc(size, line));
}

const kibibyte = 1_024;
const sizes = {
  small: (number: number) => 1 + ((number * 7_919) % (300 * kibibyte)),
  large: (number: number) => (9 + (number % 4)) * 1_024 * kibibyte,
  signed: (number: number) => (1 + (number % 3)) * 1_024 * kibibyte,
};
type Kind = keyof typeof sizes;

/** Every area except chat. */
function areasOf({ user, url, computer, repository, database, server }: Person, run: string): Area[] {
  const drive = driveOf({ url }, user);
  const git = gitOf(user);
  const databases = databasesOf(user);
  const automations = automationsOf(user);
  const space = `/api/spaces/${user.spaceId}`;

  async function send<T>(method: string, path: string, body?: unknown, headers?: Record<string, string>): Promise<T> {
    const response = await user.fetch(path, { method, body, ...(headers && { headers }) });
    const text = await response.text();
    if (!response.ok) throw new Error(`${method} ${path} answered ${response.status}: ${text}`);
    return (text === '' ? undefined : JSON.parse(text)) as T;
  }
  async function file(kind: Kind, number: number): Promise<Check> {
    const path = `/${run}/${kind}/${number}`;
    const { id: itemId } = await drive.put(path, contentOf(number, sizes[kind](number)));
    return () => expectContent(itemId, kind, number);
  }
  async function expectContent(itemId: string, kind: Kind, number: number): Promise<void> {
    const response = await drive.send('GET', `/items/${itemId}/content`);
    const bytes = Buffer.from(await response.arrayBuffer());
    requireSame(response.status, bytes, contentOf(number, sizes[kind](number)));
  }
  const onComputer = (path: string, content: string) => async () => {
    const response = await computer.fetch(`/files?path=${path}`);
    requireSame(response.status, Buffer.from(await response.arrayBuffer()), Buffer.from(content));
  };
  /** The commits of a repository's branches, after a check-out on its computer. */
  async function branchesOf(id: string): Promise<Map<string, string>> {
    const checkout = await git.send('POST', `/git/${id}/checkout`, {});
    if (checkout.status !== 200) throw new Error(`The checkout was answered by ${checkout.status}: ${checkout.text}`);
    const { body } = await git.send<{ data: { name: string; commit: string }[] }>('GET', `/git/${id}/branches`);
    return new Map(body.data.map(({ name, commit }) => [name, commit]));
  }
  let checkedOut: Promise<Map<string, string>> | undefined;
  const isListed = (path: string, property: string, value: string) => async () => {
    const { data } = await user.get<{ data: Record<string, string>[] }>(`${path}?limit=200`);
    expect(data.map((one) => one[property])).toContain(value);
  };

  return [
    { name: 'small files', most: 150, accept: (number) => file('small', number) },
    { name: 'large files', most: 10, accept: (number) => file('large', number) },
    {
      name: 'files by signed links',
      most: 10,
      async accept(number) {
        const bytes = contentOf(number, sizes.signed(number));
        const path = `/${run}/signed/${number}`;
        const upload = await send<Upload>('POST', `${space}/drive/uploads`, { path, size: bytes.length });
        for (const part of upload.parts) {
          const at = (part.partNumber - 1) * upload.partSize;
          const sent = await fetch(part.url, { method: 'PUT', body: bytes.slice(at, at + part.size) });
          if (!sent.ok) throw new Error(`A part was answered by ${sent.status}.`);
        }
        await send('POST', `${space}/drive/uploads/${upload.id}/complete`);
        // On a busy machine the completion takes longer than a request waits.
        const placed = await waitFor('an upload to be placed', async () => {
          const { itemId } = await user.get<Upload>(`${space}/drive/uploads/${upload.id}`);
          return itemId ?? undefined;
        });
        return () => expectContent(placed, 'signed', number);
      },
    },
    {
      name: 'secrets',
      async accept(number) {
        const name = `SECRET_${run}_${number}`.toUpperCase();
        await send('PUT', `${space}/secrets/${name}`, { value: `value ${number}` });
        const statement = `export ${name}='value ${number}'`;
        return async () =>
          expect((await user.get<{ secrets: string[] }>(`${space}/secrets/env`)).secrets).toContain(statement);
      },
    },
    {
      name: 'threads',
      async accept(number) {
        const { id } = await send<{ id: string }>('POST', `${space}/threads`, { title: `Thread ${number}` });
        return async () => expect(await user.get(`/api/threads/${id}`)).toMatchObject({ title: `Thread ${number}` });
      },
    },
    {
      name: 'requests with a key',
      async accept(number) {
        const again = { 'idempotency-key': randomUUID() };
        const make = () => send<object>('POST', `${space}/threads`, { title: `Once ${number}` }, again);
        const made = await make();
        return async () => expect(await make()).toEqual(made);
      },
    },
    {
      name: 'API keys',
      async accept(number) {
        const { key } = await send<{ key: string }>('POST', '/api/keys', { name: `Key ${number}`, scopes: ['chat'] });
        return async () => {
          const headers = { authorization: `Bearer ${key}` };
          expect((await fetch(`${url}${space}/threads`, { headers })).status).toBe(200);
        };
      },
    },
    {
      name: 'automations',
      async accept(number) {
        const { id } = await automations.make({ name: `Automation ${run} ${number}` });
        return async () => expect(await automations.get(id)).toMatchObject({ name: `Automation ${run} ${number}` });
      },
    },
    {
      name: 'webhook endpoints',
      async accept(number) {
        const path = `${space}/webhook-endpoints`;
        // A space has room for a few endpoints, so each but the first is deleted again.
        const { id } = await send<{ id: string }>('POST', path, { url: `https://hooks.example/${number}` });
        if (number === 0) return isListed(path, 'id', id);
        await send('DELETE', `${path}/${id}`);
        return async () => expect((await user.fetch(`${path}/${id}`)).status).toBe(404);
      },
    },
    {
      name: 'files of a computer',
      async accept(number) {
        const path = `${run}-put-${number}`;
        const content = Buffer.from(contentOf(number, 5_000)).toString();
        const put = await fetch(`${url}${computer.path}/files?path=${path}`, {
          method: 'PUT',
          headers: { authorization: `Bearer ${user.token}`, 'content-type': 'application/octet-stream' },
          body: content,
        });
        if (!put.ok) throw new Error(`A file of a computer was answered by ${put.status}: ${await put.text()}`);
        return onComputer(path, content);
      },
    },
    {
      name: 'what a command has synced',
      async accept(number) {
        const path = `${run}-synced-${number}`;
        const { exitCode, stderr } = await computer.exec(`echo synced ${number} > ${path} && sync ${path} .`);
        if (exitCode !== 0) throw new Error(`The command ended with ${exitCode}: ${stderr}`);
        return onComputer(path, `synced ${number}\n`);
      },
    },
    {
      name: 'clones',
      most: 10,
      async accept(number) {
        const remote = remoteRepository(server, { 'a.txt': `${run} ${number}\n` });
        const { id } = (await git.clone({ url: remote.url, name: `${run}-${remote.name}` })).body;
        const { status } = await git.cloned(id);
        if (status !== 'ready') throw new Error(`The clone is ${status}.`);
        return async () => {
          const branches = await branchesOf(id);
          if (branches.get('main') !== remote.commit) throw new Error(JSON.stringify([...branches]));
        };
      },
    },
    {
      name: 'branches',
      async accept(number) {
        const name = `${run}-${number}`;
        const { status, text } = await git.send('POST', `/git/${repository.id}/branch`, { name });
        if (status !== 200) throw new Error(`The branch was answered by ${status}: ${text}`);
        return async () => {
          checkedOut ??= branchesOf(repository.id);
          const branches = await checkedOut;
          if (!branches.has(name)) throw new Error(JSON.stringify([...branches]));
        };
      },
    },
    {
      name: 'rows of a database',
      async accept(number) {
        await using connection = await enter(database);
        await connection.query('INSERT INTO notes (run, number) VALUES (?, ?)', [run, number]);
        return async () => {
          // The database may have another port now.
          await using after = await enter(await databases.connection(database.id));
          const [rows] = await after.query('SELECT number FROM notes WHERE run = ? AND number = ?', [run, number]);
          expect(rows).toEqual([{ number }]);
        };
      },
    },
    {
      name: 'backups of a database',
      most: 6,
      async accept(number) {
        const { id } = await databases.backUp(database.id);
        return async () => {
          const kept = await databases.backups(database.id);
          // The oldest backups make room for the newest.
          if (!kept.some((backup) => backup.id === id)) return;
          const name = `${run}_from_${number}`;
          const restored = await databases.restoreFrom(database.id, id, name);
          const isReady = async () => (await databases.get(restored.id)).status === 'ready';
          await waitFor('a database to be restored', isReady);
          await databases.remove(restored.id);
          await databases.purge(restored.id);
        };
      },
    },
  ];
}

/** The error is one line, because there may be hundreds of errors. */
function requireSame(status: number, bytes: Buffer, expected: Uint8Array): void {
  if (status === 200 && Buffer.compare(bytes, expected) === 0) return;
  const zeros = bytes.filter((byte) => byte === 0).length;
  throw new Error(`${status}, ${bytes.length} bytes instead of ${expected.length}, ${zeros} of them zero`);
}

export interface Acknowledged {
  area: string;
  number: number;
  check: Check;
}

/** The things that were accepted before the cut. `failed` holds the errors before the cut. */
export interface PowerLoad {
  acknowledged: Acknowledged[];
  failed: unknown[];
  /** Turns that go on after the cut. */
  readings: Promise<PersistentReading>[];
  accepted(area: string): number;
  areas: string[];
  /** Things that are accepted from now on do not count. Call this at the cut, before anything else runs. */
  end(): void;
}

const turnTokens = 40;
/** The most turns of each lane. */
const mostTurns = 20;

export function startLoad(person: Person, run: string): PowerLoad {
  const areas = areasOf(person, run);
  const load: PowerLoad = {
    acknowledged: [],
    failed: [],
    readings: [],
    areas: areas.map(({ name }) => name),
    accepted: (area) => load.acknowledged.filter((one) => one.area === area).length,
    end() {
      isOver = true;
    },
  };
  let isOver = false;
  const repeat = async ({ name, accept, most = 40 }: Area) => {
    for (let number = 0; !isOver && number < most; number++) {
      try {
        const check = await accept(number);
        if (!isOver) load.acknowledged.push({ area: name, number, check });
      } catch (error) {
        if (isOver) return;
        load.failed.push(error);
        return;
      }
    }
  };
  for (const area of areas) void repeat(area);
  const chat = async (lane: number) => {
    for (let number = 0; !isOver && number < mostTurns; number++) {
      const content = fake({ tokens: turnTokens, intervalMs: 20 }, `${run} ${lane} ${number}`);
      const outboxItemId = `${run} ${lane} ${number}`;
      const reading = sendAndRead(person.user, { content, modelId: 'fake-1', outboxItemId });
      load.readings.push(reading);
      await reading.catch(() => undefined);
    }
  };
  for (let lane = 0; lane < 4; lane++) void chat(lane);
  return load;
}

/** Expects that every file in the drive is whole, also files whose upload was not acknowledged. */
export async function expectWhole({ user, url }: Pick<Person, 'user' | 'url'>, run: string): Promise<void> {
  const drive = driveOf({ url }, user);
  for (const kind of Object.keys(sizes) as Kind[]) {
    for (let cursor: string | null | undefined = ''; typeof cursor === 'string'; ) {
      const more: string = cursor === '' ? '' : `&cursor=${encodeURIComponent(cursor)}`;
      const page: ItemPage = await drive.get(`/items?path=/${run}/${kind}&limit=200${more}`);
      for (const { id, name } of page.data) {
        const response = await drive.send('GET', `/items/${id}/content`);
        const bytes = Buffer.from(await response.arrayBuffer());
        const number = Number(name);
        expect(Buffer.compare(bytes, contentOf(number, sizes[kind](number)))).toBe(0);
      }
      cursor = page.nextCursor;
    }
  }
}

/** The text of each turn of the load. */
export const turnText = Array.from({ length: turnTokens }, (_, token) => `w${token} `).join('');
