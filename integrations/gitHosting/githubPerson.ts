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

/** Of one person; whoever has more connects those that are listed. */
const maxInstallations = 50;
const maxRepositories = 2_000;

/**
 * What a person's own token lists. GitHub lists an installation to everybody who may read one repository of it, so what
 * is proven is the repositories that this person may read, and all of it only where the account is the person's own.
 */
export async function proveBy(app: App, code: string, redirectUrl: string): Promise<ProvenPerson> {
  const token = await tokenOf(app, code, redirectUrl);
  try {
    const octokit = await app.oauth.getUserOctokit({ token });
    const user = read(userBody, (await octokit.request('GET /user')).data);
    const bodies: InstallationBody[] = [];
    const theirs = allPages(installationPage, (page) => octokit.request('GET /user/installations', page));
    for await (const { installations } of theirs) {
      bodies.push(...installations);
      if (bodies.length >= maxInstallations) break;
    }
    const installations: ProvenInstallation[] = [];
    for (const body of bodies.slice(0, maxInstallations)) {
      const installation = readInstallation(body);
      const isOwn = installation.accountId === String(user.id);
      const repositories = isOwn || installation.status === 'suspended' ? [] : await repositoriesOf(body.id);
      installations.push({ ...installation, repositories: isOwn ? 'all' : repositories });
    }
    return { login: user.login, installations };

    async function repositoriesOf(installationId: number): Promise<HostedRepository[]> {
      const found: HostedRepository[] = [];
      const route = 'GET /user/installations/{installation_id}/repositories';
      const pages = allPages(repositoryPage, (page) =>
        octokit.request(route, { installation_id: installationId, ...page }),
      );
      for await (const { repositories } of pages) {
        found.push(...repositories.map(readRepository));
        if (found.length >= maxRepositories) break;
      }
      return found.slice(0, maxRepositories);
    }
  } finally {
    // It ends by itself within hours.
    await app.oauth.deleteToken({ token }).catch(() => undefined);
  }
}

async function tokenOf(app: App, code: string, redirectUrl: string): Promise<string> {
  try {
    const { authentication } = await app.oauth.createToken({ code, redirectUrl });
    return authentication.token;
  } catch (error) {
    // Told with status 200 and an error in the body, of which the library makes this.
    if ((error as { status?: number }).status !== 400) throw error;
    const detail = 'GitHub does not take what you have come back with: it was used, or took too long. Begin again.';
    throw hostingError('GIT_HOSTING_CODE_REFUSED', detail);
  }
}
