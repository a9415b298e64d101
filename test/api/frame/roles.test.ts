import { createApp } from '../../../api/frame/app.ts';
import { type Access, accessOf } from '../../../api/frame/auth/access.ts';
import { loadContract, type Operation } from '../../../api/frame/contract.ts';
import type { ApiDeps } from '../../../api/frame/deps.ts';
import { identity } from '../../../api/identity/index.ts';
import { accessTable, areas } from '../../../api/registry.ts';
import {
  anyBodyFor,
  bodyFor,
  objectFieldsOf,
  objectsFor,
  parametersOf,
  pathWith,
} from '../../builders/operationCall.ts';
import { buildProduct, type TestProduct } from '../../builders/product.ts';
import { buildPeople, buildWorld, type Kind, kinds, type People, type World } from '../../builders/world.ts';

// Checks the table of access (api/<area>/access.ts) against the running API: every operation, called as every kind of
// caller.

/** `remote` is an anonymous caller behind a proxy. */
type Caller = Kind | 'nobody' | 'remote';
/** `yes`, the refusal, or an answer that says nothing about the rights of the caller, which is always wrong. */
type Outcome = string;

/** Errors that only an allowed caller gets, where the test makes no successful call. */
const onlyOnceAllowed: Record<string, string> = {
  // For links and codes that were sent, and ways to sign in that this server does not have.
  exchangeCode: '401 INVALID_CODE',
  showSignInLink: '410 SIGN_IN_EXPIRED',
  followSignInLink: '410 SIGN_IN_EXPIRED',
  acceptInvitation: '403 INVITATION_FOR_ANOTHER',
  mailSignInLink: '404 NOT_FOUND',
  beginOidc: '404 NOT_FOUND',
  finishOidc: '404 NOT_FOUND',
  syncInstallations: '422 GIT_HOSTING_NOT_CONFIGURED',
  syncGithubInstallations: '422 GIT_HOSTING_NOT_CONFIGURED',
  connectGithub: '422 GIT_HOSTING_NOT_CONFIGURED',
  finishGithubConnection: '422 GIT_HOSTING_NOT_CONFIGURED',
  chooseGithubInstallation: '422 GIT_HOSTING_NOT_CONFIGURED',
  // The test names no space, and these callers have none of their own.
  createChatCompletion: '422 SPACE_REQUIRED',
  // The viewer's default space is this one.
  uploadOpenAiFile: '403 ROLE_TOO_LOW',
  // No model here makes embeddings.
  createEmbeddings: '404 model_not_found',
  // For the state of the object.
  decideToolCall: '409 APPROVAL_EXPIRED',
  cancelOperation: '409 NOT_CANCELLABLE',
  completeUpload: '409 UPLOAD_INCOMPLETE',
  pauseComputer: '409 COMPUTER_NOT_RUNNING',
  createComputerSnapshot: '409 COMPUTER_UNUSED',
  // There is no host here.
  createEnvironment: '503 ENVIRONMENTS_UNAVAILABLE',
  buildEnvironment: '503 ENVIRONMENTS_UNAVAILABLE',
  wakeComputer: '503 NO_HOST',
  recoverComputer: '503 NO_HOST',
  execComputer: '503 NO_HOST',
  createPreview: '503 NO_HOST',
  startProcess: '503 NO_HOST',
  createDesktopSession: '503 NO_HOST',
  createBrowserSession: '503 NO_HOST',
  createTemporaryBrowserSession: '503 NO_HOST',
  openTerminal: '426 UPGRADE_REQUIRED',
  attachToBrowser: '426 UPGRADE_REQUIRED',
  createBrowserLink: '410 BROWSER_SESSION_ENDED',
  describeBrowserLink: '410 BROWSER_SESSION_ENDED',
  describeBrowserLinkSlash: '410 BROWSER_SESSION_ENDED',
  // The test sends no file.
  writeComputerFile: '415 UNSUPPORTED_MEDIA_TYPE',
  deleteComputerFile: '503 NO_HOST',
  createComputerFolder: '503 NO_HOST',
  moveComputerFile: '503 NO_HOST',
  // This computer has not been used.
  getProcess: '409 COMPUTER_NOT_RUNNING',
  readProcessOutput: '409 COMPUTER_NOT_RUNNING',
  sendProcessInput: '409 COMPUTER_NOT_RUNNING',
  signalProcess: '409 COMPUTER_NOT_RUNNING',
  resizeProcess: '409 COMPUTER_NOT_RUNNING',
  readComputerFile: '409 COMPUTER_NOT_RUNNING',
  listComputerFiles: '409 COMPUTER_NOT_RUNNING',
  // The session does not run.
  resizeDesktopSession: '410 DESKTOP_ENDED',
  getDesktopScreenshot: '410 DESKTOP_ENDED',
  createDesktopLink: '410 DESKTOP_ENDED',
  controlDesktop: '410 DESKTOP_ENDED',
  createDesktopRecording: '410 DESKTOP_ENDED',
  saveDesktopRecording: '409 RECORDING_DISCARDED',
  listBrowserTabs: '410 BROWSER_SESSION_ENDED',
  openBrowserTab: '410 BROWSER_SESSION_ENDED',
  updateBrowserTab: '410 BROWSER_SESSION_ENDED',
  closeBrowserTab: '410 BROWSER_SESSION_ENDED',
  getBrowserScreenshot: '410 BROWSER_SESSION_ENDED',
  getBrowserPdf: '410 BROWSER_SESSION_ENDED',
  retryClone: '409 GIT_CLONE_UNDER_WAY',
  // The repository is not cloned.
  getRepositoryStatus: '409 GIT_REPOSITORY_NOT_READY',
  listRepositoryCommits: '409 GIT_REPOSITORY_NOT_READY',
  listRepositoryBranches: '409 GIT_REPOSITORY_NOT_READY',
  getRepositoryDiff: '409 GIT_REPOSITORY_NOT_READY',
  createBranch: '409 GIT_REPOSITORY_NOT_READY',
  commitChanges: '409 GIT_REPOSITORY_NOT_READY',
  checkoutBranch: '409 GIT_REPOSITORY_NOT_READY',
  pushRepository: '409 GIT_REPOSITORY_NOT_READY',
  pullRepository: '409 GIT_REPOSITORY_NOT_READY',
  createDraft: '409 GIT_REPOSITORY_NOT_READY',
  mergeDraft: '409 GIT_REPOSITORY_NOT_READY',
  // There is no server for databases.
  createDatabase: '422 DATABASES_NOT_CONFIGURED',
  deleteDatabase: '422 DATABASES_NOT_CONFIGURED',
  restoreDatabase: '422 DATABASES_NOT_CONFIGURED',
  purgeDatabase: '422 DATABASES_NOT_CONFIGURED',
  getDatabaseConnection: '422 DATABASES_NOT_CONFIGURED',
  rotateDatabase: '422 DATABASES_NOT_CONFIGURED',
  compactDatabase: '422 DATABASES_NOT_CONFIGURED',
  backUpDatabase: '422 DATABASES_NOT_CONFIGURED',
  restoreDatabaseBackup: '422 DATABASES_NOT_CONFIGURED',
  connectApp: '422 DATABASES_NOT_CONFIGURED',
  disconnectApp: '422 DATABASES_NOT_CONFIGURED',
  // The run has ended, and the item is a folder without a manifest, outside the trash.
  cancelRun: '409 RUN_ENDED',
  createApp: '422 APP_MANIFEST_MISSING',
  restoreDriveItem: '409 NOT_IN_TRASH',
  getDriveContent: '409 NOT_A_FILE',
  getDriveUrl: '409 NOT_A_FILE',
  restoreDriveVersion: '409 NOT_A_FILE',
};

const callers: readonly Caller[] = [...kinds, 'nobody', 'remote'];
const { operations } = loadContract();
const measured = new Map<string, Outcome[]>();
let product: TestProduct;
let people: People;
let others: People;
/** A space in which no test makes an object. */
let mine: World;

beforeAll(async () => {
  product = await buildProduct({ ATRIUM_SIGN_IN_REDIRECTS: 'https://app.example.com/signed-in' });
  people = await buildPeople(product.identity);
  others = await buildPeople(product.identity);
  mine = await buildWorld(product, people);
});
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

test('The API does not start with an operation that has no row', () => {
  expect(() => accessOf(accessTable, 'forgotten')).toThrow('has a row for forgotten');
  expect(() => accessOf(accessTable, 'toString')).toThrow('has a row for toString');
  const { getMe: _forgotten, ...identityRows } = identity.access;
  const withoutIt = areas.map((area) => (area === identity ? { ...area, access: identityRows } : area));
  const forgetful = { contract: loadContract(), areas: withoutIt };
  expect(() => createApp({ config: product.environment.config } as ApiDeps, forgetful)).toThrow('has a row for getMe');
});

test('The table opens to anyone exactly what the contract opens', () => {
  const open: readonly Access[] = ['anyone', 'operator', 'signed', 'signedOrEditor'];
  const differing = operations.filter(({ id, isPublic }) => isPublic !== open.includes(accessOf(accessTable, id)));
  expect(differing.map(({ id }) => id)).toEqual([]);
});

test.each(operations.map((operation) => [operation.id, operation] as const))('%s', async (id, operation) => {
  const access = accessOf(accessTable, id);
  // Refused callers and readers change nothing, so they share their objects. Other allowed callers may delete theirs.
  const shared = await prepare(operation);
  const answers = await Promise.all(
    callers.map(async (caller) => {
      const mayChange = operation.method !== 'GET' && expectedOf(access, caller).includes('yes');
      return call(caller, operation, mayChange ? await prepare(operation) : shared);
    }),
  );
  measured.set(
    id,
    answers.map(({ outcome }) => outcome),
  );
  // The differences from the table, each with the answer.
  const wrong = differencesOf(
    access,
    answers.map(({ outcome }) => outcome),
  ).map(({ index, ...difference }) => ({
    ...difference,
    answer: answers[index]?.answer,
  }));
  expect(wrong).toEqual([]);
});

test('Any other row for an operation would be found wrong', () => {
  const overlooked = operations.flatMap(({ id }) =>
    everyAccess
      .filter((access) => access !== accessOf(accessTable, id))
      .filter((access) => differencesOf(access, measured.get(id) ?? []).length === 0)
      .map((access) => `${id}: ${access}`),
  );
  expect([measured.size, overlooked]).toEqual([operations.length, []]);
});

// The caller may do everything in a space of their own, and names objects of another space.
const nested = operations.filter((operation) => {
  const names = parametersOf(operation);
  return names.includes('spaceId') && names.length > 1;
});

test.each(nested.map((operation) => [operation.id, operation] as const))(
  '%s finds nothing of another space by its id',
  async (_id, operation) => {
    const theirs = await buildWorld(product, others);
    const ids = { ...(await objectsFor(operation, theirs)), spaceId: mine.spaceId };
    const response = await mine.fetch('owner', operation.method, pathWith(operation, ids), bodyFor(operation, mine));
    const answer = { status: response.status, body: await response.text() };
    // Names belong to their space: setting a secret that another space has too makes a new one.
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
  const [own, theirs] = await Promise.all([buildWorld(product, people), buildWorld(product, others)]);
  const path = pathWith(operation, await objectsFor(operation, own));
  const body = { ...bodyFor(operation, own), [field]: await build(theirs) };
  const response = await own.fetch('owner', operation.method, path, body);
  const isRefused = [400, 403, 404, 409, 422].includes(response.status);
  expect({ isRefused, status: response.status }).toEqual({ isRefused: true, status: response.status });
  await response.body?.cancel();
});

const everyAccess = Object.keys({
  anyone: 0,
  operator: 0,
  signed: 0,
  signedOrEditor: 0,
  signedIn: 0,
  self: 0,
  threadOwner: 0,
  editorsOwn: 0,
  viewer: 0,
  editor: 0,
  owner: 0,
  ownerOrSelf: 0,
} satisfies Record<Access, 0>) as Access[];

/** The answers of each kind of caller that differ from what a row promises. */
function differencesOf(access: Access, outcomes: readonly Outcome[]) {
  return callers.flatMap((caller, index) => {
    const [expected, outcome = 'none'] = [expectedOf(access, caller), outcomes[index]];
    return expected.includes(outcome) ? [] : [{ index, caller, access, expected, outcome }];
  });
}

/** What the table promises. */
function expectedOf(access: Access, caller: Caller): Outcome[] {
  if (access === 'anyone') return ['yes'];
  if (access === 'operator') return caller === 'remote' ? ['403'] : ['yes'];
  if (access === 'signed') return ['refused'];
  if (access === 'signedOrEditor' && (caller === 'nobody' || caller === 'remote')) return ['refused'];
  if (caller === 'nobody' || caller === 'remote') return ['401'];
  if (access === 'signedIn') return ['yes'];
  // An object of one person belongs to the viewer.
  if (access === 'self') return caller === 'viewer' ? ['yes'] : ['404'];
  if (access === 'threadOwner') {
    if (caller === 'viewer') return ['yes'];
    // The streams answer 403 for the thread of another user (spec, endpoint 2).
    return caller === 'stranger' ? ['404', '403'] : ['403'];
  }
  if (caller === 'stranger') return ['404'];
  // An object of one editor belongs to the editor.
  if (access === 'editorsOwn') return { owner: ['404'], editor: ['yes'], viewer: ['403'] }[caller];
  const allowed = {
    viewer: ['viewer', 'editor', 'owner'],
    editor: ['editor', 'owner'],
    signedOrEditor: ['editor', 'owner'],
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

type Problem = { code?: string; detail?: string };

type Prepared = Awaited<ReturnType<typeof prepare>>;

async function call(caller: Caller, operation: Operation, { world, path }: Prepared) {
  const headers: Record<string, string> = caller === 'remote' ? { 'x-forwarded-for': '203.0.113.1' } : {};
  const who = caller === 'remote' ? 'nobody' : caller;
  const response = await world.fetch(who, operation.method, path, await anyBodyFor(operation, world), headers);
  const isProblem = response.headers.get('content-type')?.includes('problem+json') ?? false;
  const isOpenAiError = operation.area === 'OpenAI' && response.status >= 400;
  const isError = isProblem || isOpenAiError;
  const { error, ...problem } = isError ? ((await response.json()) as Problem & { error?: Problem }) : {};
  const { code = '', detail = '' } = error ?? problem;
  // An answer that is not an error may be a long stream.
  if (!isError) await response.body?.cancel();
  const answer = `${operation.method} ${operation.path} ${response.status} ${code} ${detail}`;
  if (response.status >= 500 && response.status !== 503) throw new Error(answer);
  return { outcome: classify(operation.id, response.status, code), answer };
}

function classify(operationId: string, status: number, code: string): Outcome {
  if (status < 400) return 'yes';
  const said = `${status} ${code}`;
  if (said === onlyOnceAllowed[operationId]) return 'yes';
  if (code === 'INVALID_SIGNATURE') return 'refused';
  return [401, 403, 404].includes(status) ? `${status}` : said;
}

/** Prints the table as it was measured. */
function print(): void {
  const width = Math.max(...operations.map(({ id }) => id.length));
  const line = (cells: readonly string[]) =>
    `${cells.map((cell, index) => cell.padEnd(index === 0 ? width : 11)).join(' ')}\n`;
  const rows = [...measured].map(([id, outcomes]) => line([id, accessOf(accessTable, id), ...outcomes]));
  process.stdout.write(line(['operation', 'access', ...callers]) + rows.join(''));
}
