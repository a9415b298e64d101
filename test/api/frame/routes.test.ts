import { loadContract } from '../../../api/frame/contract.ts';
import { buildApi, type TestApi } from '../../builders/api.ts';
import { buildSpace, buildUser } from '../../builders/identity.ts';

/** What Express keeps of a route. */
interface Layer {
  match(path: string): boolean;
  handle?: { stack?: Layer[] };
  route?: { path: string | string[]; methods: Record<string, boolean> };
}

const { operations } = loadContract();
let api: TestApi;

beforeAll(async () => {
  api = await buildApi();
});
afterAll(() => api.close());

/** Every route, in the order in which Express tries them; the reference page's own files are not operations. */
function routes(): Layer[] {
  const routers = (api.app.router as unknown as { stack: Layer[] }).stack;
  return routers.flatMap((layer) => layer.handle?.stack ?? []).filter((layer) => layer.route !== undefined);
}

const pathsOf = (layer: Layer) => [layer.route?.path ?? ''].flat();
const isFile = (path: string) => path.startsWith('/swagger-ui');
const asContract = (path: string) => path.replace(/:(\w+)/g, '{$1}');

test('each operation has a route and each route an operation', () => {
  const served = routes()
    .flatMap((layer) => pathsOf(layer).map((path) => ({ path, layer })))
    .filter(({ path }) => !isFile(path))
    .flatMap(({ path, layer }) =>
      Object.keys(layer.route?.methods ?? {}).map((method) => `${method.toUpperCase()} ${asContract(path)}`),
    );
  expect(served.toSorted()).toEqual(operations.map(({ method, path }) => `${method} ${path}`).toSorted());
});

test('the route that Express finds is the operation that was checked: literals come before parameters', () => {
  for (const { method, path } of operations) {
    const sample = path.replace(/\{[^}]+\}/g, 'sample');
    const found = routes().find((layer) => layer.route?.methods[method.toLowerCase()] && layer.match(sample));
    expect(pathsOf(found as Layer).map(asContract)).toContain(path);
  }
});

// The three refusals that every operation must give, tested for each one, so that no later area can forget them.

type Verb = 'get' | 'post' | 'put' | 'patch' | 'delete';

/** The id of an object that does not exist. An invalid number would be refused before the object is looked up. */
function absentOf(parameter: string): string {
  return parameter === 'version' ? '1' : 'absent';
}

function call(
  credential: string | undefined,
  operation: (typeof operations)[number],
  ids: Record<string, string> = {},
) {
  const path = operation.path.replace(/\{([^}]+)\}/g, (_all, name: string) => ids[name] ?? absentOf(name));
  const body = operation.bodyTypes.includes('application/json') ? exampleOf(operation) : undefined;
  const client = api.as(credential);
  const verb = operation.method.toLowerCase() as Verb;
  return verb === 'get' || verb === 'delete' ? client[verb](path) : client[verb](path, body ?? {});
}

function exampleOf({ path, method }: (typeof operations)[number]): object {
  const item = loadContract().document.paths?.[path] as Record<
    string,
    { requestBody: { content: Record<string, { example?: object; examples?: Record<string, { value: object }> }> } }
  >;
  const media = item[method.toLowerCase()]?.requestBody.content['application/json'];
  return media?.example ?? Object.values(media?.examples ?? {})[0]?.value ?? {};
}

/** The code of a problem, or of an error in OpenAI's form. */
function codeOf(body: { code?: string; error?: { code: string } }): string | undefined {
  return body.code ?? body.error?.code;
}

const guarded = operations.filter(({ isPublic }) => !isPublic);

test.each(guarded.map((operation) => [operation.id, operation] as const))(
  '%s needs a credential',
  async (_id, operation) => {
    const response = await call(undefined, operation);
    expect([response.status, codeOf(response.body)]).toEqual([401, 'NOT_AUTHENTICATED']);
    expect(response.headers['www-authenticate']).toBe('Bearer realm="atrium"');
  },
);

test.each(guarded.filter(({ scope }) => scope !== 'any').map((operation) => [operation.id, operation] as const))(
  '%s refuses an API key without its scope',
  async (_id, operation) => {
    const { user } = await buildUser(api.identity);
    const other = operation.scope === 'keys' ? 'chat' : 'keys';
    const { key } = await api.identity.keys.create(user.id, { name: 'narrow', scopes: [other] });
    const response = await call(key, operation);
    expect(response.status).toBe(403);
    expect(codeOf(response.body)).toBe(operation.takesApiKey ? 'INSUFFICIENT_SCOPE' : 'SESSION_REQUIRED');
  },
);

test.each(
  guarded.filter(({ path }) => path.includes('{spaceId}')).map((operation) => [operation.id, operation] as const),
)('%s gives the same 404 for another tenant’s space as for a missing one', async (_id, operation) => {
  const [owner, stranger] = [await buildUser(api.identity), await buildUser(api.identity)];
  const { space } = await buildSpace(api.identity, owner.user.id);
  const theirs = await call(stranger.token, operation, { spaceId: space.id, userId: owner.user.id });
  const absent = await call(stranger.token, operation, { spaceId: 'spc_absent', userId: owner.user.id });
  expect([theirs.status, absent.status]).toEqual([404, 404]);
  const { instance: _a, requestId: _b, ...body } = theirs.body;
  expect(absent.body).toMatchObject(body);
});
