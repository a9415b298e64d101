import { createHash } from 'node:crypto';
import { once } from 'node:events';
import type { AddressInfo } from 'node:net';
import { PassThrough, Readable } from 'node:stream';
import { buffer } from 'node:stream/consumers';
import { createDriveBackend } from '../../../activities/computers/drives/driveBackend.ts';
import { DomainError } from '../../../base/errors.ts';
import { newId } from '../../../base/ids.ts';
import type { Services } from '../../../bin/support/services.ts';
import type { DriveBackend, DriveEntry, DriveWrite } from '../../../integrations/computers/drives/backend.ts';
import { createBackendServer } from '../../../integrations/computers/drives/backendServer.ts';
import { defaultComputer } from '../../../models/computers/defaultComputer.ts';
import { openLiving, restoreItem, trashItem } from '../../../models/drive/changes.ts';
import { driveModels } from '../../../models/drive/models.ts';
import { purgeMarked } from '../../../models/drive/purgeItems.ts';
import { searchDrive } from '../../../models/drive/search.ts';
import { buildHostServices } from '../../builders/hostServices.ts';
import { buildSpace, buildUser } from '../../builders/identity.ts';

// What the drives' daemon asks its host, with the real database and the real store.

let worker: Awaited<ReturnType<typeof buildHostServices>>;
let services: Services;
let backend: DriveBackend;
beforeAll(async () => {
  worker = await buildHostServices();
  ({ services } = worker);
  backend = createDriveBackend(services);
});
afterAll(() => worker.close());

interface Place {
  computerId: string;
  spaceId: string;
  userId: string;
  rootId: string;
}

async function buildPlace(): Promise<Place> {
  const { identity, database } = services;
  const { user } = await buildUser(identity);
  const { space } = await buildSpace(identity, user.id);
  const { id: computerId } = await defaultComputer(database, space.id);
  const { item } = await backend.root(computerId);
  return { computerId, spaceId: space.id, userId: user.id, rootId: item.id };
}

let place: Place;
beforeEach(async () => {
  place = await buildPlace();
});

const hashOf = (text: string) => createHash('sha256').update(text).digest('hex');

function write(name: string, text: string, more: Partial<DriveWrite> = {}) {
  const sizeBytes = Buffer.byteLength(text);
  const fields = { parentId: place.rootId, name, modifiedAtMs: 1_700_000_000_123, executable: false, sizeBytes };
  return backend.write(place.computerId, { ...fields, ...more }, Readable.from([Buffer.from(text)]));
}

const list = async (folderId = place.rootId) =>
  (await backend.children(place.computerId, folderId, undefined)).items.map(({ name }) => name);

async function read({ id }: Pick<DriveEntry, 'id'>, version?: number): Promise<string> {
  const content = await backend.content(place.computerId, id, version);
  const reader = new PassThrough();
  const bytes = buffer(reader);
  await (await content.open()).sendTo(reader);
  return (await bytes).toString();
}

async function news(after: number) {
  return backend.changes(place.computerId, { after }, 0, new AbortController().signal);
}

/** The folder of a thread's files in the same space. */
function threadFolder(): Promise<string> {
  const { spaceId, userId } = place;
  return services.database.sequelize.transaction(async (tx) => {
    const { Drive, DriveItem } = driveModels(tx);
    await Drive.lock(spaceId, tx);
    const root = { spaceId, parentId: spaceId, kind: 'folder', name: 'thread:thr_1', userId } as const;
    const { id: parentId } = await DriveItem.make(root, tx);
    return (await DriveItem.make({ ...root, parentId, name: 'private' }, tx)).id;
  });
}

const knownBy = ({ id: itemId, version }: DriveEntry) => ({ known: { itemId, version } });
const refusal = (code: string) => expect.objectContaining({ name: 'DomainError', code });

test('What a program writes is a file with its time and its bit, and a repeated request changes nothing', async () => {
  const first = await write('run.sh', 'echo hello', { executable: true });
  expect(first).toMatchObject({
    conflict: false,
    item: {
      name: 'run.sh',
      kind: 'file',
      size: 10,
      version: 1,
      sha256: hashOf('echo hello'),
      executable: true,
      modifiedAtMs: 1_700_000_000_123,
    },
  });
  expect(await write('run.sh', 'echo hello', { executable: true })).toEqual(first);
  const next = await write('run.sh', 'echo bye', { ...knownBy(first.item), executable: true });
  expect(next.item).toMatchObject({ id: first.item.id, version: 2, sha256: hashOf('echo bye') });
  expect(await write('run.sh', 'echo bye', { ...knownBy(first.item), executable: true })).toEqual(next);
  expect([await read(next.item), await read(next.item, 1)]).toEqual(['echo bye', 'echo hello']);
  expect(await list()).toEqual(['run.sh']);
  const { item } = await openLiving(services.database, place.spaceId, first.item.id);
  expect([item.createdBy, item.updatedBy]).toEqual([place.userId, place.userId]);
});

test('A change that was made for another content is kept beside it, once, and the space is told', async () => {
  const { item: first } = await write('plan.md', 'one');
  await write('plan.md', 'two', knownBy(first));
  const own = await write('plan.md', 'three', knownBy(first));
  expect(own).toMatchObject({ conflict: true, item: { name: 'plan (from Computer, 2023-11-14 22-13-20).md' } });
  expect(await write('plan.md', 'three', knownBy(first))).toEqual(own);
  expect(await write('plan.md', 'four')).toMatchObject({ conflict: true });
  expect(await list()).toHaveLength(3);
  const sql = "SELECT target FROM audit_entries WHERE space_id = ? AND action = 'drive.conflict'";
  const [rows] = await services.database.pool.query(sql, [place.spaceId]);
  expect(rows).toHaveLength(2);
});

test('A content that was a version since is not a conflict, when its request is repeated', async () => {
  const { item: first } = await write('log', 'one');
  const { item: second } = await write('log', 'one, two', knownBy(first));
  const third = await write('log', 'one, two, three', knownBy(second));
  expect(await write('log', 'one, two', knownBy(first))).toEqual({ ...third, conflict: false });
  expect(await write('log', 'one')).toEqual({ ...third, conflict: false });
  expect(await list()).toEqual(['log']);
  expect(await write('log', 'other', knownBy(first))).toMatchObject({ conflict: true });
});

/** A small file for a request with several. */
function small(name: string, text: string, more: Partial<DriveWrite> = {}) {
  const bytes = Buffer.from(text);
  const fields = { parentId: place.rootId, name, modifiedAtMs: 1_700_000_000_123, executable: false };
  return { write: { ...fields, sizeBytes: bytes.length, ...more }, bytes };
}

const outcomes = (done: Awaited<ReturnType<DriveBackend['writeSmall']>>) =>
  done.map((each) => (each instanceof DomainError ? each.code : each instanceof Error ? each : each.item.name));

test('Small files are written together, each with its own result, and a repeated request changes nothing', async () => {
  const { computerId, rootId } = place;
  const { item: changed } = await write('changed', 'before');
  const { item: stale } = await write('stale', 'one');
  await write('stale', 'two', knownBy(stale));
  const { item: folder } = await backend.make(computerId, { id: newId('driveItem'), parentId: rootId, name: 'folder' });
  const many = Array.from({ length: 40 }, (_, n) => small(`file ${n}`, `text ${n}`, { parentId: folder.id }));
  const files = [
    ...many,
    small('changed', 'after', knownBy(changed)),
    small('stale', 'three', knownBy(stale)),
    small('not/allowed', 'text'),
    small('empty', ''),
  ];
  const done = await backend.writeSmall(computerId, files);
  const conflict = 'stale (from Computer, 2023-11-14 22-13-20)';
  const names = many.map(({ write: { name } }) => name);
  expect(outcomes(done)).toEqual([...names, 'changed', conflict, 'INVALID_NAME', 'empty']);
  expect(outcomes(await backend.writeSmall(computerId, files))).toEqual(outcomes(done));
  expect((await list(folder.id)).toSorted()).toEqual(names.toSorted());
  expect((await list()).toSorted()).toEqual(['changed', 'empty', 'folder', 'stale', conflict].toSorted());
  expect(done[41]).toMatchObject({ conflict: true });
  const [first] = done;
  if (first === undefined || first instanceof Error) throw new Error('The first file was refused.');
  expect([await read(first.item), first.item.sha256]).toEqual(['text 0', hashOf('text 0')]);
});

test('A request with small files has each result, and one that is not as described is refused', async () => {
  const failures: unknown[] = [];
  const server = createBackendServer(backend, (error) => failures.push(error));
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const { port } = server.address() as AddressInfo;
  const ask = async (body: string, computerId = place.computerId) => {
    const response = await fetch(`http://127.0.0.1:${port}/computers/${computerId}/files`, { method: 'POST', body });
    return [response.status, await response.json()];
  };
  const about = (name: string, size: number, more: object = {}) => {
    return { parentId: place.rootId, name, modifiedAtMs: 5, executable: false, baseVersion: 0, size, ...more };
  };
  const request = (files: object[], bytes: string) => `${JSON.stringify({ files })}\n${bytes}`;
  try {
    const files = [about('one', 3), about('bad/name', 1), about('two', 4)];
    const item = (name: string, text: string) => ({ item: expect.objectContaining({ name, sha256: hashOf(text) }) });
    const results = [
      expect.objectContaining(item('one', '1\n1')),
      expect.objectContaining({ status: 422, code: 'INVALID_NAME' }),
      expect.objectContaining(item('two', '2222')),
    ];
    expect(await ask(request(files, '1\n1x2222'))).toEqual([200, { files: results }]);
    const invalid = [400, expect.objectContaining({ code: 'BODY_INVALID' })];
    for (const body of [
      ...['', '\n', 'null\n', '{"files":[1]}\n', request([about('a', 2)], 'a'), request([about('a', 2)], 'aaa')],
      ...[request([about('a', -1)], ''), request([about('', 0)], ''), request([about('a', 0, { parentId: 1 })], '')],
      ...[request([about('a', 0, { modifiedAtMs: 'x' })], ''), request(Array(257).fill(about('a', 0)), '')],
      request([about('a', 1, { itemId: 'itm_1', baseVersion: null })], 'a'),
    ])
      expect(await ask(body)).toEqual(invalid);
    expect(await ask(request([], ''), 'cmp_none')).toEqual([404, expect.objectContaining({ code: 'NOT_FOUND' })]);
    expect(failures).toEqual([]);
    expect(await list()).toEqual(['one', 'two']);
  } finally {
    server.close();
    server.closeAllConnections();
  }
});

test('Small files beyond the quota are refused, and those that fit are written', async () => {
  const { config } = services;
  const tight = createDriveBackend({
    ...services,
    config: { ...config, drive: { ...config.drive, quotaBytes: 5_000 } },
  });
  const text = 'x'.repeat(2_000);
  const files = Array.from({ length: 3 }, (_, n) => small(`file ${n}`, text));
  expect(outcomes(await tight.writeSmall(place.computerId, files))).toEqual(['file 0', 'file 1', 'QUOTA_EXCEEDED']);
  expect(await list()).toEqual(['file 0', 'file 1']);
  place = await buildPlace();
  const before = [await write('a', ''), await write('b', ''), await write('c', '')];
  const changes = before.map(({ item }) => small(item.name, text, knownBy(item)));
  expect(outcomes(await tight.writeSmall(place.computerId, changes))).toEqual(['a', 'b', 'QUOTA_EXCEEDED']);
});

test('Small files of somebody who may not change the drive, or of another space, are refused', async () => {
  const other = await buildPlace();
  // The folder is one of this space, so for the other it is gone.
  const theirs = await backend.writeSmall(other.computerId, [small('a', 'text'), small('b', 'text')]);
  expect(theirs).toMatchObject(Array(2).fill({ conflict: true, item: { parentId: other.rootId } }));
  expect(await list()).toEqual([]);
  const { pool } = services.database;
  await pool.query("UPDATE space_members SET role = 'viewer' WHERE space_id = ?", [place.spaceId]);
  await expect(backend.writeSmall(place.computerId, [small('file', 'text')])).rejects.toEqual(
    refusal('DRIVE_FORBIDDEN'),
  );
});

test('A folder goes to the trash with what was just removed from it, and comes back with that', async () => {
  const { computerId, rootId, spaceId, userId } = place;
  const { database } = services;
  const folderIn = async (parentId: string, name: string) =>
    (await backend.make(computerId, { id: newId('driveItem'), parentId, name })).item;
  const top = await folderIn(rootId, 'top');
  const sub = await folderIn(top.id, 'sub');
  const { item: earlier } = await write('earlier', 'text', { parentId: sub.id });
  const remove = (itemId: string, more: { removedSinceMs?: number; onlyIfEmpty?: boolean } = {}) =>
    backend.trash(computerId, { itemId, onlyIfEmpty: false, ...more });
  await remove(earlier.id);
  await database.pool.query('UPDATE drive_items SET trashed_at = ? WHERE id = ?', [new Date(0), earlier.id]);
  const began = Date.now();
  const files: DriveEntry[] = [];
  for (const text of ['one', 'two']) {
    const { item } = await write('file', text, { parentId: sub.id });
    await remove(item.id); // the first by itself, then one of the same name
    files.push(item);
  }
  for (const { id } of [sub, top]) await remove(id, { removedSinceMs: began, onlyIfEmpty: true });
  const trash = async () => {
    const items = await driveModels(database).DriveItem.trash({ spaceId, containerId: 'drive' }, 10);
    return items.map(({ id }) => id).toSorted();
  };
  expect(await trash()).toEqual([top.id, files[0]?.id, earlier.id].toSorted());
  await remove(top.id, { removedSinceMs: began, onlyIfEmpty: true });
  const { revision } = await news(0);
  await restoreItem(database, { itemId: top.id, spaceId, userId, onConflict: 'error' });
  expect((await news(revision)).items).toMatchObject([{ id: top.id, live: true }]);
  expect([await list(), await list(top.id), await list(sub.id)]).toEqual([['top'], ['sub'], ['file']]);
  expect(await read({ id: files[1]?.id ?? '' })).toBe('two');
  expect((await openLiving(database, spaceId, sub.id)).item.childCount).toBe(1);
  expect((await openLiving(database, spaceId, top.id)).item.childCount).toBe(1);
});

test('What others have removed from a folder stays in the trash by itself', async () => {
  const { computerId, rootId, spaceId } = place;
  const folder = (await backend.make(computerId, { id: newId('driveItem'), parentId: rootId, name: 'folder' })).item;
  const { item: file } = await write('file', 'text', { parentId: folder.id });
  const other = await buildUser(services.identity);
  await trashItem(services.database, { itemId: file.id, spaceId, userId: other.user.id });
  await backend.trash(computerId, { itemId: folder.id, onlyIfEmpty: true, removedSinceMs: 0 });
  const items = await driveModels(services.database).DriveItem.trash({ spaceId, containerId: 'drive' }, 10);
  expect(items.map(({ id }) => id).toSorted()).toEqual([file.id, folder.id].toSorted());
});

test('A daemon of the time before a restore of the database lists the drive anew', async () => {
  const { computerId } = place;
  const signal = new AbortController().signal;
  await write('file', 'text');
  const { epoch, revision } = await news(0);
  const at = (known: string) => backend.changes(computerId, { after: revision, epoch: known }, 60_000, signal);
  expect((await backend.root(computerId)).epoch).toBe(epoch);
  await news(revision); // so that the access is told
  expect(await at('ins_other')).toMatchObject({ epoch, reset: true, revision, items: [] });
  const waiting = at(epoch);
  await write('next', 'text');
  expect(await waiting).toMatchObject({ reset: false, items: [{ name: 'next' }] });
});

test('What was written in a folder that is gone is in the root of the drive', async () => {
  const { item: folder } = await backend.make(place.computerId, {
    id: newId('driveItem'),
    parentId: place.rootId,
    name: 'folder',
  });
  const { item: file } = await write('a.txt', 'one', { parentId: folder.id });
  await backend.trash(place.computerId, { itemId: folder.id, onlyIfEmpty: false });
  const kept = await write('a.txt', 'two', { parentId: folder.id, ...knownBy(file) });
  expect(kept).toMatchObject({ conflict: true, item: { parentId: place.rootId } });
  expect(await read(kept.item)).toBe('two');
});

test('A file that is open for long has a version a minute', async () => {
  const session = 'a-log';
  let { item } = await write('app.log', '0', { session });
  for (let n = 1; n <= 5; n++) ({ item } = await write('app.log', `0${n}`, { ...knownBy(item), session }));
  expect(item.version).toBe(6);
  const { DriveVersion } = driveModels(services.database);
  const versions = async () => (await DriveVersion.of(item.id, 100)).map(({ version }) => version);
  expect(await versions()).toEqual([]);
  const now = Date.now.bind(Date);
  const clock = jest.spyOn(Date, 'now').mockImplementation(() => now() + 61_000);
  ({ item } = await write('app.log', 'later', { ...knownBy(item), session }));
  clock.mockRestore();
  expect(await versions()).toEqual([6]);
  ({ item } = await write('app.log', 'another writer', { ...knownBy(item), session: 'other' }));
  expect(await versions()).toEqual([7, 6]);
});

test('Folders and links are made once, moved, replaced as programs rename, and removed', async () => {
  const { computerId, rootId } = place;
  const id = newId('driveItem');
  const made = await backend.make(computerId, { id, parentId: rootId, name: 'dir' });
  expect(await backend.make(computerId, { id, parentId: rootId, name: 'dir' })).toEqual(made);
  const link = { id: newId('driveItem'), parentId: id, name: 'link', target: '../x' };
  expect(await backend.make(computerId, link)).toMatchObject({ item: { kind: 'symlink', target: '../x' } });
  await expect(backend.make(computerId, { ...link, id: newId('driveItem') })).rejects.toEqual(refusal('NAME_TAKEN'));
  await expect(backend.trash(computerId, { itemId: id, onlyIfEmpty: true })).rejects.toEqual(refusal('NOT_EMPTY'));
  const { item: file } = await write('file', 'text');
  const over = { itemId: file.id, parentId: id, name: 'link' };
  await expect(backend.move(computerId, { ...over, replace: false })).rejects.toEqual(refusal('NAME_TAKEN'));
  const { item: moved } = await backend.move(computerId, { ...over, replace: true });
  expect(moved).toMatchObject({ id: file.id, parentId: id, name: 'link', kind: 'file' });
  expect((await backend.move(computerId, { ...over, replace: true })).item).toMatchObject({ id: file.id });
  const { item: empty } = await backend.make(computerId, { id: newId('driveItem'), parentId: rootId, name: 'empty' });
  const onto = { itemId: empty.id, parentId: rootId, name: 'dir', replace: true };
  await expect(backend.move(computerId, onto)).rejects.toEqual(refusal('NOT_EMPTY'));
  await backend.trash(computerId, { itemId: file.id, onlyIfEmpty: false });
  await backend.trash(computerId, { itemId: file.id, onlyIfEmpty: false });
  expect((await backend.move(computerId, onto)).item).toMatchObject({ id: empty.id, name: 'dir' });
  expect(await list()).toEqual(['dir']);
  const attributes = { itemId: empty.id, modifiedAtMs: 1_000 };
  expect((await backend.attributes(computerId, attributes)).item).toMatchObject({ modifiedAtMs: 1_000 });
});

test('A new file that is renamed over another is its next version, once, with its words', async () => {
  const { computerId, spaceId, rootId } = place;
  const { item: report } = await write('report.txt', 'apples');
  const { item: saved } = await write('report.txt.tmp', 'pears');
  const over = { itemId: saved.id, parentId: rootId, name: 'report.txt', replace: true };
  const { item } = await backend.move(computerId, over);
  expect(item).toMatchObject({ id: report.id, version: 2, sha256: hashOf('pears'), name: 'report.txt' });
  expect(await backend.move(computerId, over)).toEqual({ item });
  expect(await list()).toEqual(['report.txt']);
  expect(await Promise.all([read(item), read(item, 1)])).toEqual(['pears', 'apples']);
  const { items } = await news(0);
  expect(items.map(({ id, live }) => [id, live])).toEqual(
    expect.arrayContaining([
      [report.id, true],
      [saved.id, false],
    ]),
  );
  const found = async (query: string) =>
    (
      await searchDrive(services.database, { spaceId, containerId: 'drive', query, fields: ['text'], limit: 5 })
    ).found.map((each) => each.item.id);
  expect([await found('pears'), await found('apples')]).toEqual([[report.id], []]);
  await purgeMarked(services.database, { spaceId }, () => undefined);
  expect(await read(item)).toBe('pears');
  expect((await openLiving(services.database, spaceId, rootId)).item.childCount).toBe(1);
});

test('A file that was not just made sends the one that it replaces to the trash', async () => {
  const { computerId, rootId, userId } = place;
  const [{ item: report }, { item: other }] = [await write('report.txt', 'apples'), await write('other.txt', 'pears')];
  await services.database.pool.query('UPDATE drive_items SET created_at = ? WHERE id = ?', [new Date(0), other.id]);
  const over = { itemId: other.id, parentId: rootId, name: 'report.txt', replace: true };
  expect((await backend.move(computerId, over)).item).toMatchObject({ id: other.id, version: 1 });
  const trashed = await driveModels(services.database).DriveItem.find(report.id);
  expect(trashed).toMatchObject({ live: null, trashedBy: userId, purgingAt: null });
});

test('The changes of a drive are told as they come, and those of threads and other spaces are not', async () => {
  const { computerId, rootId, spaceId } = place;
  const { revision } = await news(0);
  const signal = new AbortController().signal;
  const waiting = backend.changes(computerId, { after: revision }, 60_000, signal);
  const { item } = await write('a.txt', 'one');
  expect(await waiting).toMatchObject({ reset: false, items: [{ id: item.id, live: true, parentId: rootId }] });
  const { revision: later } = await news(revision);
  await backend.trash(computerId, { itemId: item.id, onlyIfEmpty: false });
  expect((await news(later)).items).toMatchObject([{ id: item.id, live: false }]);
  const thread = await threadFolder();
  expect((await news(later)).items.map(({ id }) => id)).toEqual([item.id]);
  await expect(backend.children(computerId, thread, undefined)).rejects.toEqual(refusal('NOT_FOUND'));
  const other = await buildPlace();
  const others = await backend.changes(other.computerId, { after: 0 }, 0, signal);
  expect(others.items).toEqual([]);
  const there = await openLiving(services.database, other.spaceId, other.rootId);
  expect(there.item.spaceId).not.toBe(spaceId);
  for (const ask of [
    () => backend.children(computerId, other.rootId, undefined),
    () => backend.content(computerId, other.rootId, undefined),
    () => backend.move(computerId, { itemId: other.rootId, parentId: rootId, name: 'x', replace: true }),
    () => backend.make(computerId, { id: newId('driveItem'), parentId: other.rootId, name: 'x' }),
  ])
    await expect(ask()).rejects.toEqual(refusal('NOT_FOUND'));
});

test('A viewer’s computer only reads, and a removed member’s has nothing, from the next request on', async () => {
  const { computerId, spaceId, userId } = place;
  const { item } = await write('a.txt', 'one');
  const owner = await buildUser(services.identity);
  const roleOf = (role: string) =>
    services.database.pool.query('UPDATE space_members SET role = ? WHERE space_id = ? AND user_id = ?', [
      ...[role, spaceId, userId],
    ]);
  await services.identity.members.add(spaceId, owner.user.email, 'owner');
  await roleOf('viewer');
  await expect(write('b.txt', 'two')).rejects.toEqual(refusal('DRIVE_FORBIDDEN'));
  expect(await read(item)).toBe('one');
  const { revision } = await news(0);
  expect((await news(revision)).access).toBe('read');
  const waiting = backend.changes(computerId, { after: revision }, 60_000, new AbortController().signal);
  await services.database.pool.query('DELETE FROM space_members WHERE space_id = ? AND user_id = ?', [spaceId, userId]);
  expect(await waiting).toMatchObject({ access: 'none' });
  await expect(backend.trash(computerId, { itemId: item.id, onlyIfEmpty: false })).rejects.toEqual(
    refusal('DRIVE_FORBIDDEN'),
  );
});

test('What was written on a computer that is deleted by then, or without its drive, is sent', async () => {
  const { computerId, userId, spaceId } = place;
  const change = (text: string, values: unknown[]) => services.database.pool.query(text, values);
  await change('UPDATE computers SET has_drive = 0 WHERE id = ?', [computerId]);
  await write('first', 'text');
  await change('UPDATE computers SET deleted_at = ? WHERE id = ?', [new Date(), computerId]);
  const { item } = await write('second', 'text');
  expect((await openLiving(services.database, spaceId, item.id)).item).toMatchObject({ createdBy: userId });
  expect(await backend.root(computerId)).toMatchObject({ access: 'none' });
  await expect(backend.children(computerId, place.rootId, undefined)).rejects.toEqual(refusal('DRIVE_FORBIDDEN'));
  await expect(backend.trash(computerId, { itemId: item.id, onlyIfEmpty: false })).rejects.toEqual(
    refusal('DRIVE_FORBIDDEN'),
  );
});

test('A large folder is listed in pages, each item once', async () => {
  const { database } = services;
  const { spaceId, userId, rootId, computerId } = place;
  const { DriveItem, Drive } = driveModels(database);
  await database.sequelize.transaction(async (tx) => {
    await Drive.lock(spaceId, tx);
    const fresh = Array.from({ length: 5_010 }, (_, n) =>
      DriveItem.fresh({ spaceId, parentId: rootId, kind: 'folder', name: `folder ${n}`, userId }),
    );
    await DriveItem.insertAll(fresh, tx);
  });
  const first = await backend.children(computerId, rootId, undefined);
  expect([first.items.length, first.next]).toEqual([5_000, expect.any(String)]);
  const second = await backend.children(computerId, rootId, first.next ?? '');
  expect([second.items.length, second.next]).toEqual([10, null]);
  expect(new Set([...first.items, ...second.items].map(({ id }) => id)).size).toBe(5_010);
  expect(await news(0)).toMatchObject({ reset: true });
});
