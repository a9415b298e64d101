import type { Environment } from '../../config/index.ts';
import type { Database } from '../../models/database/database.ts';
import type { Identity } from '../../models/identity/index.ts';
import { type FakeProvider, type RecordedRequest, startFakeProvider } from '../fakes/openaiServer.ts';
import type { FakeRequest, FakeScript } from '../fakes/script.ts';
import { createTestEnvironment, openTestEnvironment, type TestEnvironment } from '../support/environment.ts';
import { type ProductProcess, startProduct } from '../support/product.ts';
import { productSettings } from '../support/productSettings.ts';
import { borrowProduct, returnProduct } from '../support/runServer.ts';
import { abortStreams } from '../support/sseClient.ts';
import { waitFor } from '../support/waitFor.ts';
import { buildChatUser, type ChatUser } from './chat.ts';
import { buildIdentity } from './identity.ts';

/** How long the turns of a file may take to stop. After that its Atrium is replaced, which takes about as long. */
const endTurnsMs = 5_000;

/** A whole Atrium in its own process, with the fake provider for its models. */
export interface TestProduct {
  environment: TestEnvironment;
  identity: Identity;
  provider: FakeProvider;
  /** `restart` replaces it. */
  process: ProductProcess;
  readonly url: string;
  /** A new user with a space of their own. */
  user(name?: string): Promise<ChatUser>;
  /** Starts the product again after its process has ended. */
  restart(): Promise<void>;
  close(): Promise<void>;
}

/**
 * `overrides` are additional variables of config/, or a function that makes them from the provider's address. Without
 * overrides, test files share an Atrium one after another: its database has rows of earlier files, and a file must not
 * inspect or end its process. A file that needs its own passes `{}`.
 */
export async function buildProduct(
  overrides?: Environment | ((providerUrl: string) => Environment),
  respond?: (request: FakeRequest) => FakeScript | undefined,
): Promise<TestProduct> {
  const provider = await startFakeProvider({ respond });
  return overrides === undefined ? shareProduct(provider) : ownProduct(provider, overrides);
}

async function ownProduct(
  provider: FakeProvider,
  overrides: Environment | ((providerUrl: string) => Environment),
): Promise<TestProduct> {
  const environment = await createTestEnvironment({
    ...productSettings(provider.url),
    ...(typeof overrides === 'function' ? overrides(provider.url) : overrides),
  });
  const closeParts = async () => {
    await provider.stop();
    await environment.close();
  };
  const identity = await buildIdentity(environment);
  const started = await startProduct(environment).catch(async (error: unknown) => {
    await closeParts();
    throw error;
  });
  const product: TestProduct = {
    environment,
    identity,
    provider,
    process: started,
    get url() {
      return product.process.apiUrl;
    },
    user: (name) => buildChatUser(product, name),
    async restart() {
      product.process = await startProduct(environment);
    },
    async close() {
      abortStreams();
      await product.process.stop();
      await closeParts();
    },
  };
  return product;
}

async function shareProduct(provider: FakeProvider): Promise<TestProduct> {
  const { environment: variables, apiUrl } = await borrowProduct(provider.url).catch(async (error: unknown) => {
    await provider.stop();
    throw error;
  });
  const environment = openTestEnvironment(variables);
  const notOurs = () =>
    new Error('This process is shared with other test files: buildProduct({}) makes one of your own.');
  const product: TestProduct = {
    environment,
    identity: await buildIdentity(environment),
    provider,
    url: apiUrl,
    get process(): never {
      throw notOurs();
    },
    user: (name) => buildChatUser(product, name),
    restart: () => Promise.reject(notOurs()),
    async close() {
      abortStreams();
      const isIdle = await endTurns(environment.database);
      await returnProduct(!isIdle);
      await provider.stop();
      await environment.close();
    },
  };
  return product;
}

/**
 * Stops turns that a file left running, so that they do not call the next file's provider. False if some did not end.
 */
async function endTurns({ pool }: Database): Promise<boolean> {
  await pool.query('UPDATE turns SET stop_requested_at = NOW(3) WHERE terminal = 0');
  const isIdle = async () => {
    const [rows] = await pool.query('SELECT COUNT(*) AS n FROM turns WHERE terminal = 0');
    return (rows as { n: number }[])[0]?.n === 0;
  };
  return waitFor('the turns to end', isIdle, { timeoutMs: endTurnsMs }).catch(() => false);
}

/** A message that the fake provider answers with this script. */
export function fake(script: FakeScript, text = ''): string {
  const ascii = JSON.stringify(script).replace(
    /[^ -~]/g,
    (character) => `\\u${character.charCodeAt(0).toString(16).padStart(4, '0')}`,
  );
  return `${text}\nfake ${ascii}`;
}

/** Requests to the provider whose last message contains this text. */
export function requestsWith(provider: FakeProvider, text: string): RecordedRequest[] {
  return provider.requests.filter(({ body }) => JSON.stringify((body.messages as unknown[]).at(-1)).includes(text));
}

/** The roles of the messages in a request to the provider. */
export function rolesOf(request: RecordedRequest | undefined): string[] {
  return (request?.body.messages as { role: string }[] | undefined)?.map(({ role }) => role) ?? [];
}
