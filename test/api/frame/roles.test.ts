import { accessTable, areas } from '../../../api/areas.ts';
import { createApp } from '../../../api/frame/app.ts';
import { type Access, accessOf } from '../../../api/frame/auth/access.ts';
import { loadContract, type Operation } from '../../../api/frame/contract.ts';
import type { ApiDeps } from '../../../api/frame/deps.ts';
import { identity } from '../../../api/identity/index.ts';
import { bodyFor, objectFieldsOf, objectsFor, parametersOf, pathWith } from '../../builders/operationCall.ts';
import { buildProduct, type TestProduct } from '../../builders/product.ts';
import { buildPeople, buildWorld, type Kind, kinds, type People } from '../../builders/world.ts';

// The table of who may do what (api/<area>/access.ts) against the running API: every operation, called as every kind of caller.

type Caller = Kind | 'nobody';
type Outcome = 'yes' | '401' | '403' | '404' | 'refused';

const callers: readonly Caller[] = [...kinds, 'nobody'];
const { operations } = loadContract();
const measured = new Map<string, Outcome[]>();
let product: TestProduct;
let people: People;
let others: People;

beforeAll(async () => {
  product = await buildProduct();
  people = await buildPeople(product.identity);
  others = await buildPeople(product.identity);
}, 60_000);
afterAll(async () => {
  print();
  await product.close();
});

test('each operation has a row, and each row an operation', () => {
  const rows = Object.keys(accessTable);
  const ids = operations.map(({ id }) => id);
  expect({
    'without a row': ids.filter((id) => !rows.includes(id)),
    'without an operation': rows.filter((id) => !ids.includes(id)),
  }).toEqual({ 'without a row': [], 'without an operation': [] });
});

test('an operation without a row is open to nobody: the API does not even start', () => {
  expect(() => accessOf(accessTable, 'forgotten')).toThrow('has a row for forgotten');
  expect(() => accessOf(accessTable, 'toString')).toThrow('has a row for toString');
  const { getMe: _forgotten, ...identityRows } = identity.access;
  const withoutIt = areas.map((area) => (area === identity ? { ...area, access: identityRows } : area));
  const forgetful = { contract: loadContract(), areas: withoutIt };
  expect(() => createApp({ config: product.environment.config } as ApiDeps, forgetful)).toThrow('has a row for getMe');
});

test('what the table opens to anyone is what the contract opens, and nothing else', () => {
  const open: readonly Access[] = ['anyone', 'operator', 'signed'];
  const differing = operations.filter(({ id, isPublic }) => isPublic !== open.includes(accessOf(accessTable, id)));
  expect(differing.map(({ id }) => id)).toEqual([]);
});

test.each(operations.map((operation) => [operation.id, operation] as const))('%s', async (id, operation) => {
  const access = accessOf(accessTable, id);
  // Whoever is refused changes nothing, so these share what they ask for; one who is allowed may well delete it.
  const forRefused = await prepare(operation);
  const answers = await Promise.all(
    callers.map(async (caller) => {
      const isAllowed = caller !== 'nobody' && expectedOf(access, caller).includes('yes');
      return call(caller, operation, access, isAllowed ? await prepare(operation) : forRefused);
    }),
  );
  measured.set(
    id,
    answers.map(({ outcome }) => outcome),
  );
  // Whatever is not as the table says, with the answer that it got.
  const wrong = callers.flatMap((caller, index) => {
    const expected = expectedOf(access, caller);
    const found = answers[index];
    return found !== undefined && expected.includes(found.outcome) ? [] : [{ caller, access, expected, ...found }];
  });
  expect(wrong).toEqual([]);
});

// The caller may do everything in a space of their own, and names objects that are in another one.
const nested = operations.filter((operation) => {
  const names = parametersOf(operation);
  return names.includes('spaceId') && names.length > 1;
});

test.each(nested.map((operation) => [operation.id, operation] as const))(
  '%s finds nothing of another space by its id',
  async (_id, operation) => {
    const [mine, theirs] = await Promise.all([buildWorld(product, people), buildWorld(product, others)]);
    const ids = { ...(await objectsFor(operation, theirs)), spaceId: mine.spaceId };
    const response = await mine.fetch('owner', operation.method, pathWith(operation, ids), bodyFor(operation, mine));
    const answer = { status: response.status, body: await response.text() };
    // A name is everybody's own: to set a secret that somebody else has too makes another one.
    const isFound = response.ok && operation.id !== 'setSecret';
    expect({ isFound, answer }).toEqual({ isFound: false, answer });
    const theirPath = pathWith(operation, { ...ids, spaceId: theirs.spaceId });
    const asTheirs = await mine.fetch('owner', operation.method, theirPath, bodyFor(operation, theirs));
    expect(asTheirs.status).toBe(404);
  },
);

const naming = operations.flatMap((operation) =>
  objectFieldsOf(operation).map(([field, build]) => [operation.id, field, operation, build] as const),
);

test.each(naming)('%s takes no `%s` of another space', async (_id, field, operation, build) => {
  const [mine, theirs] = await Promise.all([buildWorld(product, people), buildWorld(product, others)]);
  const path = pathWith(operation, await objectsFor(operation, mine));
  const body = { ...bodyFor(operation, mine), [field]: await build(theirs) };
  const response = await mine.fetch('owner', operation.method, path, body);
  const isRefused = [400, 403, 404, 409, 422].includes(response.status);
  expect({ isRefused, status: response.status }).toEqual({ isRefused: true, status: response.status });
  await response.body?.cancel();
});

/** What the table promises. */
function expectedOf(access: Access, caller: Caller): Outcome[] {
  if (access === 'anyone' || access === 'operator') return ['yes'];
  if (access === 'signed') return ['refused'];
  if (caller === 'nobody') return ['401'];
  if (access === 'signedIn') return ['yes'];
  // What is somebody's own is the viewer's.
  if (access === 'self') return caller === 'viewer' ? ['yes'] : ['404'];
  if (access === 'threadOwner') {
    if (caller === 'viewer') return ['yes'];
    // The streams say 403 for any thread that is somebody else's (spec, endpoint 2).
    return caller === 'stranger' ? ['404', '403'] : ['403'];
  }
  if (caller === 'stranger') return ['404'];
  const allowed = {
    viewer: ['viewer', 'editor', 'owner'],
    editor: ['editor', 'owner'],
    owner: ['owner'],
    ownerOrSelf: ['viewer', 'owner'],
  };
  return allowed[access].includes(caller) ? ['yes'] : ['403'];
}

/** A fresh space with the objects that the operation's path names. */
async function prepare(operation: Operation) {
  const world = await buildWorld(product, people);
  return { world, path: pathWith(operation, await objectsFor(operation, world)) };
}

type Prepared = Awaited<ReturnType<typeof prepare>>;

async function call(caller: Caller, operation: Operation, access: Access, { world, path }: Prepared) {
  const response = await world.fetch(caller, operation.method, path, bodyFor(operation, world));
  const isProblem = response.headers.get('content-type')?.includes('problem+json') ?? false;
  const { code = '', detail = '' } = isProblem ? ((await response.json()) as { code: string; detail: string }) : {};
  // What is no problem may be a stream that goes on for long.
  if (!isProblem) await response.body?.cancel();
  const answer = `${operation.method} ${operation.path} ${response.status} ${code} ${detail}`;
  if (response.status >= 500 && response.status !== 503) throw new Error(answer);
  return { outcome: classify(response.status, detail, access), answer };
}

function classify(status: number, detail: string, access: Access): Outcome {
  if (access === 'signed') return status >= 400 ? 'refused' : 'yes';
  if (access === 'anyone') return 'yes';
  if (status === 401 || status === 403) return `${status}`;
  // A member who asks for something that is not there hears 404 too, but not of the space.
  const isHidden = access === 'self' || access === 'threadOwner' || detail === 'There is no such space.';
  return status === 404 && isHidden ? '404' : 'yes';
}

/** The table as it was found, for people. */
function print(): void {
  const width = Math.max(...operations.map(({ id }) => id.length));
  const line = (cells: readonly string[]) =>
    `${cells.map((cell, index) => cell.padEnd(index === 0 ? width : 11)).join(' ')}\n`;
  const rows = [...measured].map(([id, outcomes]) => line([id, accessOf(accessTable, id), ...outcomes]));
  process.stdout.write(line(['operation', 'access', ...callers]) + rows.join(''));
}
