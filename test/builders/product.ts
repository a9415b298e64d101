import type { Environment } from '../../config/index.ts';
import type { Identity } from '../../models/identity/index.ts';
import { type FakeProvider, type RecordedRequest, startFakeProvider } from '../fakes/openaiServer.ts';
import type { FakeRequest, FakeScript } from '../fakes/script.ts';
import { createTestEnvironment, type TestEnvironment } from '../support/environment.ts';
import { type ProductProcess, startProduct } from '../support/product.ts';
import { abortStreams } from '../support/sseClient.ts';
import { buildChatUser, type ChatUser } from './chat.ts';
import { buildIdentity } from './identity.ts';

/** A whole Atrium in a process of its own, with the fake provider as its models' provider. */
export interface TestProduct {
  environment: TestEnvironment;
  identity: Identity;
  provider: FakeProvider;
  /** Replaced by `restart`. */
  process: ProductProcess;
  readonly url: string;
  /** A new user with a space of their own. */
  user(name?: string): Promise<ChatUser>;
  /** Starts it again after its process has ended. */
  restart(): Promise<void>;
  close(): Promise<void>;
}

/** `overrides` are further variables of config/, or make them from the provider's address. */
export async function buildProduct(
  overrides: Environment | ((providerUrl: string) => Environment) = {},
  respond?: (request: FakeRequest) => FakeScript | undefined,
): Promise<TestProduct> {
  const provider = await startFakeProvider({ respond });
  const environment = await createTestEnvironment({
    ATRIUM_COMPATIBLE_BASE_URL: provider.url,
    ATRIUM_COMPATIBLE_MODELS: 'fake-1',
    ATRIUM_DEMO_MODEL: 'true',
    ATRIUM_TITLE_MODEL: 'off',
    ATRIUM_SWEEP_INTERVAL_SECONDS: '1',
    ATRIUM_SWEEP_GRACE_SECONDS: '2',
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

/** The text of a message that the fake provider answers by this script. */
export function fake(script: FakeScript, text = ''): string {
  const ascii = JSON.stringify(script).replace(
    /[^ -~]/g,
    (character) => `\\u${character.charCodeAt(0).toString(16).padStart(4, '0')}`,
  );
  return `${text}\nfake ${ascii}`;
}

/** The provider's requests whose last message holds this text. */
export function requestsWith(provider: FakeProvider, text: string): RecordedRequest[] {
  return provider.requests.filter(({ body }) => JSON.stringify((body.messages as unknown[]).at(-1)).includes(text));
}

/** The roles of the messages that a request to the provider holds. */
export function rolesOf(request: RecordedRequest | undefined): string[] {
  return (request?.body.messages as { role: string }[] | undefined)?.map(({ role }) => role) ?? [];
}
