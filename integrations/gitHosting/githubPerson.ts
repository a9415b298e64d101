import type { App } from '@octokit/app';
import { hostingError } from './failures.ts';
import {
  allPages,
  type InstallationBody,
  installationPage,
  read,
  readInstallation,
  readRepository,
  repositoryPage,
  userBody,
} from './githubWire.ts';
import type { HostedRepository, ProvenInstallation, ProvenPerson } from './provider.ts';

/** Limits for one person: the list to choose from is kept in one row. */
const maxInstallations = 50;
const maxRepositories = 5_000;

interface Proof {
  code: string;
  redirectUrl: string;
  /** For all requests together; there may be a hundred pages. */
  timeoutMs: number;
}

/**
 * Lists the installations and repositories that a person's own token can see. GitHub lists an installation to everybody
 * who may read one of its repositories. So a person proves the repositories that they may read, and a whole
 * installation only if the account is their own.
 */
export async function proveBy(app: App, { code, redirectUrl, timeoutMs }: Proof): Promise<ProvenPerson> {
  const request = { signal: AbortSignal.timeout(timeoutMs) };
  const token = await tokenOf(app, code, redirectUrl);
  try {
    const octokit = await app.oauth.getUserOctokit({ token });
    const user = read(userBody, (await octokit.request('GET /user', { request })).data);
    const bodies: InstallationBody[] = [];
    const theirs = allPages(installationPage, (page) =>
      octokit.request('GET /user/installations', { ...page, request }),
    );
    for await (const { installations } of theirs) {
      bodies.push(...installations);
      if (bodies.length > maxInstallations) break;
    }
    let isCut = bodies.length > maxInstallations;
    let room = maxRepositories;
    const installations: ProvenInstallation[] = [];
    for (const body of bodies.slice(0, maxInstallations)) {
      const installation = readInstallation(body);
      const isOwn = installation.accountId === String(user.id);
      const repositories = isOwn || installation.status === 'suspended' ? [] : await repositoriesOf(body.id);
      isCut ||= repositories.length > room;
      installations.push({ ...installation, repositories: isOwn ? 'all' : repositories.slice(0, room) });
      room -= Math.min(room, repositories.length);
    }
    return { id: String(user.id), login: user.login, installations, isCut };

    /** Reads until there are more repositories than `room`, which tells the caller that the list is cut. */
    async function repositoriesOf(installationId: number): Promise<HostedRepository[]> {
      const found: HostedRepository[] = [];
      const route = 'GET /user/installations/{installation_id}/repositories';
      const pages = allPages(repositoryPage, (page) =>
        octokit.request(route, { installation_id: installationId, ...page, request }),
      );
      for await (const { repositories } of pages) {
        found.push(...repositories.map(readRepository));
        if (found.length > room) break;
      }
      return found;
    }
  } finally {
    // The token expires within hours anyway.
    await app.oauth.deleteToken({ token }).catch(() => undefined);
  }
}

async function tokenOf(app: App, code: string, redirectUrl: string): Promise<string> {
  try {
    const { authentication } = await app.oauth.createToken({ code, redirectUrl });
    return authentication.token;
  } catch (error) {
    // GitHub answers 200 with an error in the body, and the library makes this of it.
    const { status, response } = error as { status?: number; response?: { data?: { error?: unknown } } };
    if (status !== 400) throw error;
    if (response?.data?.error !== 'bad_verification_code') {
      const detail = 'GitHub does not take the App’s client id, client secret or callback URL.';
      throw hostingError('GIT_HOSTING_KEY_REFUSED', detail);
    }
    const detail = 'GitHub does not take what you have come back with: it was used, or took too long. Begin again.';
    throw hostingError('GIT_HOSTING_CODE_REFUSED', detail);
  }
}
