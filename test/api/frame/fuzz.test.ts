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

// Arbitrary requests of every operation, as a caller of every kind, with ids of another tenant among what they name:
// none may be a 500 or a status that the contract does not name, do what its caller may not, show anything of the other
// tenant, or be left without an answer.

const callsPerCaller = sizeOf('FUZZ_CALLS', 1);
const seed = sizeOf('FUZZ_SEED', 20_260_101);
const answerMs = 30_000;

/** The caller with the most rights comes last, since it deletes what the others have asked for. */
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

/** An id. It grants nothing by itself, unlike a link's token, which anybody who knows it may use. */
const objectId = /^[a-z]{3}_[0-9A-Z]{26}$/;

const { operations } = loadContract();
const marker = `theirs-${randomUUID()}`;
let product: TestProduct;
let people: People;
let foreignIds: string[];
/** Keys of the owner's, by scope. */
const keys = new Map<string, string>();

beforeAll(async () => {
  // One space of the other tenant gets all that paths name: more computers and clones than people are let have.
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
}, 120_000);
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

test('none of it was an error to log', () => {
  expect(product.process.log()).toBe('');
});

test('what is looked for can be found: its owner is shown the other tenant’s data', async () => {
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

/** Another tenant, whose every object has the marker in its name; the ids of them all. */
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
  // A 204 to a GET tells nothing: no turn runs in a chat of that name.
  const isDone = status < 300 && !(status === 204 && operation.method === 'GET');
  if (isDone && !mayEver(operation, caller, credential)) faults.push(`${status}, which this caller may not`);
  return faults.map((fault) => `${said} → ${fault}`);
}

/** The answer; of a stream its first events. Undefined where none came in time. */
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
  // Without an object in the path it is about the caller's own, or the body says about what.
  if (access === 'signedIn' || parametersOf(operation).length === 0) return true;
  if (caller === 'stranger') return false;
  // What is one person's own is the viewer's, or an editor's.
  if (access === 'self' || access === 'threadOwner') return caller === 'viewer';
  if (access === 'editorsOwn') return caller === 'editor';
  if (access === 'ownerOrSelf') return caller !== 'editor';
  if (access === 'owner') return caller !== 'editor' && caller !== 'viewer';
  return access === 'viewer' || caller !== 'viewer';
}
