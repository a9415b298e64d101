import { setTimeout as delay } from 'node:timers/promises';
import { App } from '@octokit/app';
import { Octokit } from '@octokit/core';
import { limited } from '../http/limitedFetch.ts';
import { hostingError, hostingFailure } from './failures.ts';
import { proveBy } from './githubPerson.ts';
import {
  allPages,
  appBody,
  installationList,
  permissionBody,
  read,
  readInstallation,
  repositoryPage,
  tokenBody,
} from './githubWire.ts';
import type { GitHostingProvider, HostedPerson, MintedToken, TokenRequest } from './provider.ts';

/** Time limits for one request, and for all requests of a person's proof. */
const usualTimeouts = { callMs: 10_000, proofMs: 45_000 };
const revokeTimeoutMs = 5_000;
/** A page of a hundred repositories has almost a megabyte, and more with long descriptions. */
const maxAnswerBytes = 8_388_608;
/** GitHub may not know a new token for a second or two. */
const newTokenWaitsMs = [100, 250, 500, 1_000, 2_000, 4_000];

export interface GitHubOptions {
  appId: string;
  privateKey: string;
  /** The address of the API. */
  address: string;
  gitHost: string;
  /** Needed for people who connect their installations. */
  oauth: { clientId: string; clientSecret: string; redirectUrl: string } | undefined;
  /** Shorter ones for tests. */
  timeouts?: typeof usualTimeouts;
}

/**
 * GitHub, accessed as an App. Tokens are requested without the library's cache: it would keep them for an hour, and
 * share pending ones among all Apps of the process.
 */
export function createGitHub(options: GitHubOptions): GitHostingProvider {
  const { appId, privateKey, address, gitHost, oauth, timeouts = usualTimeouts } = options;
  const request = { fetch: fetchWithin(timeouts.callMs) };
  const OurOctokit = Octokit.defaults({ baseUrl: address, request, log: silent });
  const app: App = new App({
    ...{ appId, privateKey, Octokit: OurOctokit, log: silent },
    ...(oauth !== undefined && { oauth: { clientId: oauth.clientId, clientSecret: oauth.clientSecret } }),
  });
  const plain = new OurOctokit();
  const bearing = (token: string) => ({ headers: { authorization: `token ${token}` } });

  async function mint(asked: TokenRequest): Promise<MintedToken> {
    const { installationId, repository, path, mayWrite, onBehalfOf } = asked;
    const { data } = await app.octokit.request('POST /app/installations/{installation_id}/access_tokens', {
      installation_id: Number(installationId),
      ...('id' in repository ? { repository_ids: [Number(repository.id)] } : { repositories: [repository.name] }),
      permissions: { contents: mayWrite ? 'write' : 'read', metadata: 'read' },
    });
    const { token } = read(tokenBody, data);
    const minted = { token, revoke: () => revoke(token) };
    try {
      const name = requireName(await whenKnown(token), path);
      if (onBehalfOf !== null) await requireRight(token, onBehalfOf, { path: name, mayWrite });
      return minted;
    } catch (error) {
      await minted.revoke();
      throw error;
    }
  }

  /** Returns the repositories of a new token, once GitHub knows the token. */
  async function whenKnown(token: string): Promise<unknown> {
    for (const waitMs of [...newTokenWaitsMs, undefined]) {
      try {
        return (await plain.request('GET /installation/repositories', { per_page: 1, ...bearing(token) })).data;
      } catch (error) {
        if ((error as { status?: number }).status !== 401) throw error;
        if (waitMs === undefined) throw hostingError('GIT_HOSTING_UNAVAILABLE', 'GitHub does not know its own token.');
        await delay(waitMs);
      }
    }
  }

  /**
   * The installation outlives the rights of the person who connected it. So GitHub is asked whether that person still
   * has access: a person who left an organisation loses its repositories.
   */
  async function requireRight(
    token: string,
    { id, login }: HostedPerson,
    { path, mayWrite }: Pick<TokenRequest, 'path' | 'mayWrite'>,
  ): Promise<void> {
    const [owner = '', repo = ''] = path.split('/');
    const route = 'GET /repos/{owner}/{repo}/collaborators/{username}/permission';
    const { data } = await plain
      .request(route, { owner, repo, username: login, ...bearing(token) })
      .catch((error: unknown) => {
        if ((error as { status?: number }).status === 404) throw noRight();
        throw error;
      });
    const { permission, user } = read(permissionBody, data);
    const rights = mayWrite ? ['admin', 'write'] : ['admin', 'write', 'read'];
    // Another person may have the login by now.
    if (String(user?.id) !== id || !rights.includes(permission)) throw noRight();
  }

  async function revoke(token: string): Promise<void> {
    const signal = AbortSignal.timeout(revokeTimeoutMs);
    // The token expires within the hour anyway.
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

    async installation(id, signal) {
      try {
        const route = 'GET /app/installations/{installation_id}';
        const { data } = await app.octokit.request(route, {
          installation_id: Number(id),
          ...(signal !== undefined && { request: { signal } }),
        });
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

    prove: (code) =>
      normalised(() => proveBy(app, { code, redirectUrl: required(oauth).redirectUrl, timeoutMs: timeouts.proofMs })),
  };
}

async function normalised<T>(work: () => Promise<T>): Promise<T> {
  try {
    return await work();
  } catch (error) {
    throw hostingFailure(error);
  }
}

/** The path of the token's only repository, as GitHub spells it. */
function requireName(data: unknown, path: string): string {
  const [repository] = read(repositoryPage, data).repositories;
  if (repository?.full_name.toLowerCase() === path.toLowerCase()) return repository.full_name;
  throw hostingError('GIT_HOSTING_NOT_FOUND', 'At GitHub the repository has another name by now. Use that one.');
}

function noRight(): Error {
  const detail =
    'At GitHub, whoever has connected the installation may not do this with the repository any more. Connect it again.';
  return hostingError('GIT_HOSTING_REFUSED', detail);
}

/** A fetch with a deadline and a limit for answers. It follows no redirect, which would take our key elsewhere. */
function fetchWithin(timeoutMs: number): typeof fetch {
  return async (input, init) => {
    const signals = [AbortSignal.timeout(timeoutMs), ...(init?.signal ? [init.signal] : [])];
    const response = await fetch(input, { ...init, redirect: 'error', signal: AbortSignal.any(signals) });
    return limited(response, maxAnswerBytes, () => new Error('The answer is longer than 8 MiB.'));
  };
}

/** Silences the library: its console output contains requests. */
const ignore = () => undefined;
const silent = { debug: ignore, info: ignore, warn: ignore, error: ignore };

function required<T>(value: T | undefined): T {
  if (value === undefined) throw new Error('The App’s client id and secret are missing, which are asked for before.');
  return value;
}
