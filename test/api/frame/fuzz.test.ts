import { randomUUID } from 'node:crypto';
import fc from 'fast-check';
import { accessOf } from '../../../api/frame/auth/access.ts';
import { loadContract, type Operation } from '../../../api/frame/contract.ts';
import { accessTable } from '../../../api/registry.ts';
import { allows, scopes } from '../../../models/identity/scopes.ts';
import { type ArbitraryCall, callsOf } from '../../builders/arbitraryCalls.ts';
import { anyBodyFor, bodySchemaOf, objectsFor, parametersOf, statusesOf } from '../../builders/operationCall.ts';
import { buildProduct, type TestProduct } from '../../builders/product.ts';
import { buildPeople, buildWorld, type Kind, type People, type World } from '../../builders/world.ts';
import { sizeOf } from '../../support/size.ts';

// Arbitrary requests for every operation, as every kind of caller, also with ids of another tenant. No answer may be
// missing, be a 500, have a status that the contract does not name, do what its caller may not, or show data of the
// other tenant.

const callsPerCaller = sizeOf('FUZZ_CALLS', 1);
const seed = sizeOf('FUZZ_SEED', 20_260_101);
const answerMs = 30_000;

/** The caller with the most rights comes last, since it deletes the objects of the requests. */
const callers = [
  'nobody',
  'stranger',
  'viewer',
  'editor',
  'key with one scope',
  'owner',
  'key with all scopes',
] as const;
type Caller = (typeof callers)[number];

/** The id of an object. It grants nothing by itself, unlike the token of a link, which works for everyone. */
const objectId = /^[a-z]{3}_[0-9A-Z]{26}$/;

const { operations } = loadContract();
const marker = `theirs-${randomUUID()}`;
let product: TestProduct;
let people: People;
let foreignIds: string[];
/** Keys of the owner, by scope. */
const keys = new Map<string, string>();

beforeAll(async () => {
  // One space of the other tenant gets all objects that paths name, so it needs more computers and clones than usual.
  product = await buildProduct({
    ATRIUM_LOG_LEVEL: 'error',
    ATRIUM_COMPUTERS_PER_SPACE: '1000',
    ATRIUM_GIT_MAX_CLONES: '1000',
  });
  people = await buildPeople(product.identity);
  foreignIds = await buildForeign();
  for (const scope of Object.keys(scopes)) {
    keys.set(scope, (await product.identity.keys.create(people.owner.id, { name: scope, scopes: [scope] })).key);
  }
});
afterAll(() => product.close());

test.each(operations.map((operation, index) => [operation.id, operation, index] as const))(
  '%s',
  async (_id, operation, index) => {
    const world = await buildWorld(product, people);
    const ids = await objectsFor(operation, world);
    const faults: string[] = [];
    for (const [place, caller] of callers.entries()) {
      const calls = fc.sample(callsOf(operation, world, ids, foreignIds), {
        numRuns: callsPerCaller,
        seed: seed + index * callers.length + place,
      });
      for (const [turn, call] of calls.entries())
        faults.push(...(await faultsOf(operation, world, caller, call, turn)));
    }
    expect(faults).toEqual([]);
  },
  60_000 + callsPerCaller * 10_000,
);

test('No request has logged an error', () => {
  expect(product.process.log()).toBe('');
});

test('The owner of the other tenant’s data is shown the marker, so that the tests can find it', async () => {
  const { spaceId } = other;
  expect(await (await other.fetch('owner', 'GET', `/api/spaces/${spaceId}`)).text()).toContain(marker);
  const names: string[] = [];
  for (let cursor: string | null = ''; cursor !== null; ) {
    const path: string = `/api/spaces/${spaceId}/drive/items?limit=200${cursor === '' ? '' : `&cursor=${cursor}`}`;
    const response = await other.fetch('owner', 'GET', path);
    const page = (await response.json()) as { data: { name: string }[]; nextCursor: string | null };
    names.push(...page.data.map(({ name }) => name));
    cursor = page.nextCursor;
  }
  expect(names.join()).toContain(marker);
});

let other: World;

/** Makes another tenant with the marker in the names of its objects. Returns the ids of all its objects. */
async function buildForeign(): Promise<string[]> {
  const others = await buildPeople(product.identity);
  other = await buildWorld(product, others);
  const space = `/api/spaces/${other.spaceId}`;
  await other.send('owner', 'PATCH', space, { name: marker });
  await other.send('owner', 'POST', `${space}/drive/folders`, { path: `/${marker}` });
  await other.send('owner', 'PUT', `${space}/chat-settings`, { systemPrompt: marker });
  await other.send('viewer', 'POST', `${space}/threads`, { title: marker });
  const ids = new Set<string>([others.owner.id, others.viewer.id]);
  for (const operation of operations) {
    for (const id of Object.values(await objectsFor(operation, other))) if (objectId.test(id)) ids.add(id);
  }
  return [...ids];
}

async function faultsOf(
  operation: Operation,
  world: World,
  caller: Caller,
  call: ArbitraryCall,
  turn: number,
): Promise<string[]> {
  const named = Object.keys(scopes).filter((one) => one !== '*');
  const scope = named[turn % named.length] ?? '';
  const credential = caller === 'key with one scope' ? scope : '*';
  const said = `${caller}${caller === 'key with one scope' ? ` ${scope}` : ''}: ${operation.method} ${call.path.slice(0, 300)} ${JSON.stringify(call.headers)} ${JSON.stringify(call.body)?.slice(0, 1_000)}`;
  const isKey = caller.startsWith('key');
  const headers = isKey ? { ...call.headers, authorization: `Bearer ${keys.get(credential)}` } : call.headers;
  const body = bodySchemaOf(operation) === undefined ? await anyBodyFor(operation, world) : call.body;
  const kind = (isKey ? 'nobody' : caller) as Kind | 'nobody';
  const answer = await answerOf(() => world.fetch(kind, operation.method, call.path, body, headers));
  if (answer === undefined) return [`${said} → no answer`];
  const { status, text } = answer;
  const faults: string[] = [];
  if (status === 500 || !statusesOf(operation).includes(status)) faults.push(`${status}: ${text.slice(0, 300)}`);
  if (text.includes(marker)) faults.push(`${status}, with another tenant's data: ${text.slice(0, 300)}`);
  // A 204 to a GET reveals nothing: it only says that no turn runs in a chat with that name.
  const isDone = status < 300 && !(status === 204 && operation.method === 'GET');
  if (isDone && !mayEver(operation, caller, credential)) faults.push(`${status}, which this caller may not`);
  return faults.map((fault) => `${said} → ${fault}`);
}

/** The answer, or the first events of a stream. Undefined if none came in time. */
async function answerOf(send: () => Promise<Response>): Promise<{ status: number; text: string } | undefined> {
  const late = new Promise<undefined>((resolve) => {
    setTimeout(() => resolve(undefined), answerMs).unref();
  });
  const answered = async () => {
    const response = await send();
    const isStream = response.headers.get('content-type')?.startsWith('text/event-stream') === true;
    if (!isStream) return { status: response.status, text: await response.text() };
    const reader = response.body?.getReader();
    const first = await reader?.read();
    await reader?.cancel();
    return { status: response.status, text: Buffer.from(first?.value ?? []).toString() };
  };
  return Promise.race([answered(), late]);
}

/** Whether this caller may do it with any object of the world, or with a missing one. */
function mayEver(operation: Operation, caller: Caller, scope: string): boolean {
  const access = accessOf(accessTable, operation.id);
  if (operation.isPublic) return true;
  if (caller === 'nobody') return false;
  if (caller.startsWith('key')) {
    if (!operation.takesApiKey) return false;
    if (operation.scope !== 'any' && !allows([scope], operation.scope ?? '*')) return false;
  }
  // Without an object in the path, the operation is about the caller's own objects, or the body names the object.
  if (access === 'signedIn' || parametersOf(operation).length === 0) return true;
  if (caller === 'stranger') return false;
  // An object of one person belongs to the viewer, or to an editor.
  if (access === 'self' || access === 'threadOwner') return caller === 'viewer';
  if (access === 'editorsOwn') return caller === 'editor';
  if (access === 'ownerOrSelf') return caller !== 'editor';
  if (access === 'owner') return caller !== 'editor' && caller !== 'viewer';
  return access === 'viewer' || caller !== 'viewer';
}
