import { setTimeout as delay } from 'node:timers/promises';
import { App } from '@octokit/app';
import { Octokit } from '@octokit/core';
import { limitedFetch } from '../http/limitedFetch.ts';
import { hostingError, hostingFailure } from './failures.ts';
import { proveBy } from './githubPerson.ts';
import { allPages, appBody, installationList, read, readInstallation, tokenBody } from './githubWire.ts';
import type { GitHostingProvider, MintedToken, TokenRequest } from './provider.ts';

const callTimeoutMs = 10_000;
const revokeTimeoutMs = 5_000;
/** GitHub may not know a new token for a second or two. */
const newTokenWaitsMs = [100, 250, 500, 1_000, 2_000, 4_000];

export interface GitHubOptions {
  appId: string;
  privateKey: string;
  /** Of the API. */
  address: string;
  gitHost: string;
  /** For people who prove what is theirs; where it is missing, nobody is sent there. */
  oauth: { clientId: string; clientSecret: string; redirectUrl: string } | undefined;
}

/**
 * GitHub, as an App. Tokens are made by a request of their own, since what the library does for an installation keeps
 * them for an hour, and shares those under way among all Apps of the process.
 */
export function createGitHub({ appId, privateKey, address, gitHost, oauth }: GitHubOptions): GitHostingProvider {
  const OurOctokit = Octokit.defaults({ baseUrl: address, request: { fetch: ourFetch }, log: silent });
  const app: App = new App({
    ...{ appId, privateKey, Octokit: OurOctokit, log: silent },
    ...(oauth !== undefined && { oauth: { clientId: oauth.clientId, clientSecret: oauth.clientSecret } }),
  });
  const plain = new OurOctokit();
  const bearing = (token: string) => ({ headers: { authorization: `token ${token}` } });

  async function mint({ installationId, repository, mayWrite }: TokenRequest): Promise<MintedToken> {
    const { data } = await app.octokit.request('POST /app/installations/{installation_id}/access_tokens', {
      installation_id: Number(installationId),
      ...('id' in repository ? { repository_ids: [Number(repository.id)] } : { repositories: [repository.name] }),
      permissions: { contents: mayWrite ? 'write' : 'read', metadata: 'read' },
    });
    const { token } = read(tokenBody, data);
    const minted = { token, revoke: () => revoke(token) };
    try {
      await untilKnown(token);
      return minted;
    } catch (error) {
      await minted.revoke();
      throw error;
    }
  }

  async function untilKnown(token: string): Promise<void> {
    for (const waitMs of [...newTokenWaitsMs, undefined]) {
      try {
        await plain.request('GET /installation/repositories', { per_page: 1, ...bearing(token) });
        return;
      } catch (error) {
        if ((error as { status?: number }).status !== 401) throw error;
        if (waitMs === undefined) throw hostingError('GIT_HOSTING_UNAVAILABLE', 'GitHub does not know its own token.');
        await delay(waitMs);
      }
    }
  }

  async function revoke(token: string): Promise<void> {
    const signal = AbortSignal.timeout(revokeTimeoutMs);
    // It ends by itself within the hour.
    await plain
      .request('DELETE /installation/token', { ...bearing(token), request: { signal } })
      .catch(() => undefined);
  }

  return {
    name: 'github',
    gitHost,

    about: () =>
      normalised(async () => {
        const { data } = await app.octokit.request('GET /app');
        const { name, html_url: url } = read(appBody, data);
        return { name, installUrl: `${url}/installations/new` };
      }),

    async installation(id) {
      try {
        const route = 'GET /app/installations/{installation_id}';
        const { data } = await app.octokit.request(route, { installation_id: Number(id) });
        return readInstallation(data);
      } catch (error) {
        if ((error as { status?: number }).status === 404) return undefined;
        throw hostingFailure(error);
      }
    },

    async *installations() {
      const pages = allPages(installationList, (page) => app.octokit.request('GET /app/installations', page));
      try {
        for await (const data of pages) yield* data.map(readInstallation);
      } catch (error) {
        throw hostingFailure(error);
      }
    },

    mint: (request) => normalised(() => mint(request)),

    authorizeUrl(state) {
      const { redirectUrl } = required(oauth);
      return app.oauth.getWebFlowAuthorizationUrl({ state, redirectUrl, allowSignup: false }).url;
    },

    prove: (code) => normalised(() => proveBy(app, code, required(oauth).redirectUrl)),
  };
}

async function normalised<T>(work: () => Promise<T>): Promise<T> {
  try {
    return await work();
  } catch (error) {
    throw hostingFailure(error);
  }
}

/** Each request with a deadline, without redirects (they would take the key elsewhere), and without endless answers. */
const ourFetch: typeof fetch = (input, init) => {
  const signals = [AbortSignal.timeout(callTimeoutMs), ...(init?.signal ? [init.signal] : [])];
  return limitedFetch(input, { ...init, redirect: 'error', signal: AbortSignal.any(signals) });
};

/** The library writes to the console, and some of what it says names what was asked. */
const ignore = () => undefined;
const silent = { debug: ignore, info: ignore, warn: ignore, error: ignore };

function required<T>(value: T | undefined): T {
  if (value === undefined) throw new Error('The App’s client id and secret are missing, which are asked for before.');
  return value;
}
