import { loadContract, type Operation } from '../../../api/frame/contract.ts';
import { type OddCall, oddCallsOf } from '../../builders/oddCalls.ts';
import { objectsFor, statusesOf } from '../../builders/operationCall.ts';
import { buildProduct, type TestProduct } from '../../builders/product.ts';
import { buildPeople, buildWorld, type People, type World } from '../../builders/world.ts';

// An odd request is always answered as the client's mistake: never with a 500, without a reason, or with a status that
// the contract does not name. The requests are made from the parameters and fields of each operation, so later areas
// are covered too.

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

test('No request has logged an error', () => {
  expect(product.process.log()).toBe('');
});

/**
 * Sends calls in one session, and in a new one once an operation has ended the session, so that a call is refused only
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

/** The faults of the answer. */
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
    // An operation for people answers with a page.
    if (!operation.isPublic) faults.push(`${said} as ${headers.get('content-type')}`);
    return faults;
  }
  const { code, detail } = JSON.parse(text) as { code?: string; detail?: string };
  if (!code || !detail) faults.push(`${said} without a reason: ${text.slice(0, 200)}`);
  return faults;
}
