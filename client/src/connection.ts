/**
 * A session token or an API key, or a function that returns one. The function is called for each request, so the token
 * may change.
 */
export type Token = string | (() => string | Promise<string>);

export interface Connection {
  /** Such as `http://localhost:8080`. */
  baseUrl: string;
  token: Token;
  /** Used instead of the global `fetch`. */
  fetch?: typeof globalThis.fetch;
}

export async function bearer(token: Token): Promise<string> {
  return `Bearer ${typeof token === 'string' ? token : await token()}`;
}

/** Sends a request with the connection's credential. */
export async function request(
  connection: Connection,
  path: string,
  init: { method?: string; headers?: Record<string, string>; body?: string; signal?: AbortSignal } = {},
): Promise<Response> {
  const headers = { ...init.headers, authorization: await bearer(connection.token) };
  const url = connection.baseUrl.replace(/\/+$/, '') + path;
  return (connection.fetch ?? globalThis.fetch)(url, { ...init, headers });
}
