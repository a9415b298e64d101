import createClient, { type Client } from 'openapi-fetch';
import type { paths } from './api.ts';
import { bearer, type Connection } from './connection.ts';

export type ClientOptions = Connection;

/** Every operation of the API by its path, with typed parameters, bodies and answers. */
export type AtriumClient = Client<paths>;

/**
 * Makes a client of the whole API: `const { data, error } = await client.GET('/api/threads/{threadId}', { params: …
 * })`. An error answer is in `error`, typed as in the contract.
 */
export function createAtriumClient({ baseUrl, token, fetch }: ClientOptions): AtriumClient {
  const client = createClient<paths>({ baseUrl, ...(fetch && { fetch: (asked: Request) => fetch(asked) }) });
  client.use({
    async onRequest({ request }) {
      request.headers.set('authorization', await bearer(token));
      return request;
    },
  });
  return client;
}
