import { loadContract, type Operation } from '../../../api/frame/contract.ts';
import { type OddCall, oddCallsOf } from '../../builders/oddCalls.ts';
import { objectsFor, statusesOf } from '../../builders/operationCall.ts';
import { buildProduct, type TestProduct } from '../../builders/product.ts';
import { buildPeople, buildWorld, type People, type World } from '../../builders/world.ts';

// What is wrong with a request is always the client's to hear: never a 500, never without a reason, never a status that
// the contract does not name. Asked of every operation with what its own parameters and fields could be, so that later
// areas get it for nothing.

const { operations } = loadContract();
const atOnce = 4;
let product: TestProduct;
let people: People;

beforeAll(async () => {
  product = await buildProduct({ ATRIUM_LOG_LEVEL: 'error' });
  people = await buildPeople(product.identity);
});
afterAll(() => product.close());

test.each(operations.map((operation) => [operation.id, operation] as const))('%s', async (_id, operation) => {
  const world = await buildWorld(product, people);
  const calls = oddCallsOf(operation, world, await objectsFor(operation, world));
  const faults: string[] = [];
  const next = calls.values();
  const send = inOneSession(operation, world);
  const lane = async () => {
    for (const call of next) faults.push(...(await faultsOf(operation, call, await send(call))));
  };
  await Promise.all(Array.from({ length: atOnce }, lane));
  expect(faults).toEqual([]);
});

test('none of it was an error to log', () => {
  expect(product.process.log()).toBe('');
});

/**
 * Sends calls in a session of the operation's, and in another one where the operation has ended it: a call is refused
 * for what is odd about it.
 */
function inOneSession({ method }: Operation, { identity }: World): (call: OddCall) => Promise<Response> {
  let session = identity.sessions.create(people.owner.id);
  const send = async ({ path, headers, body }: OddCall) =>
    fetch(product.url + path, {
      method,
      redirect: 'manual',
      headers: { ...headers, authorization: `Bearer ${await session}` },
      ...(method !== 'GET' && body !== undefined && { body }),
    });
  return async (call) => {
    const used = session;
    const response = await send(call);
    if (response.status !== 401) return response;
    await response.body?.cancel();
    if (session === used) session = identity.sessions.create(people.owner.id);
    return send(call);
  };
}

/** What is wrong with the answer. */
async function faultsOf(operation: Operation, call: OddCall, response: Response): Promise<string[]> {
  const { status, headers } = response;
  const said = `${call.name} → ${status}`;
  if (call.status !== undefined && status !== call.status) {
    return [`${said} and not ${call.status}: ${(await response.text()).slice(0, 200)}`];
  }
  if (status < 400) {
    await response.body?.cancel();
    return statusesOf(operation).includes(status) ? [] : [`${said}, which the contract does not name`];
  }
  const text = await response.text();
  const faults: string[] = [];
  if (status === 500 || !statusesOf(operation).includes(status)) faults.push(`${said}: ${text.slice(0, 200)}`);
  if (operation.area === 'OpenAI' && headers.get('content-type')?.startsWith('application/json') === true) {
    const { error } = JSON.parse(text) as { error?: { code?: string; message?: string } };
    if (!error?.code || !error.message) faults.push(`${said} without a reason: ${text.slice(0, 200)}`);
    return faults;
  }
  if (headers.get('content-type')?.startsWith('application/problem+json') !== true) {
    // A page for people says it as a page.
    if (!operation.isPublic) faults.push(`${said} as ${headers.get('content-type')}`);
    return faults;
  }
  const { code, detail } = JSON.parse(text) as { code?: string; detail?: string };
  if (!code || !detail) faults.push(`${said} without a reason: ${text.slice(0, 200)}`);
  return faults;
}
