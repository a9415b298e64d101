import type { Request } from 'express';
import { notFound } from '../../base/errors.ts';
import { hostingError } from '../../integrations/gitHosting/failures.ts';
import { connectedPath } from '../../integrations/gitHosting/index.ts';
import type { ProvenInstallation } from '../../integrations/gitHosting/provider.ts';
import type { GitConnection } from '../../models/git/connections.ts';
import { listInstallations } from '../../models/git/installationRows.ts';
import { connectInstallation } from '../../models/git/installations.ts';
import { newLinkToken } from '../../models/links/links.ts';
import { answer } from '../frame/answer.ts';
import { authorizeSpace } from '../frame/auth/authorizeSpace.ts';
import { callerOf } from '../frame/auth/caller.ts';
import type { RouteDeps } from '../frame/deps.ts';
import { assertOwnForm } from '../frame/ownForm.ts';
import { sendPage } from '../frame/pages/page.ts';
import { bodyOf, pathOf, queryOf } from '../frame/request.ts';
import { createRouter } from '../frame/router.ts';
import { time } from '../frame/times.ts';
import { choicePage } from './connectionPages.ts';

/**
 * A person connects an installation at GitHub to a space. An App sees the installations of all customers, so the
 * person's own token must list it. The person chooses it on a page that names the space and the user who asked: opening
 * a link from a stranger grants nothing.
 */
export function connectionRoutes(deps: RouteDeps) {
  const { config, database, gitConnections, gitHosting, identity } = deps;
  const router = createRouter();

  router.get('/api/spaces/:spaceId/git/github/connect', async (req, res) => {
    const { spaceId } = pathOf<'connectGithub'>(req);
    const provider = gitHosting.require('people');
    const state = newLinkToken();
    const connection = { spaceId, userId: callerOf(req).userId, provider: provider.name };
    const expiresAt = await gitConnections.begin(state, connection);
    answer<'connectGithub'>(res, 200, { url: provider.authorizeUrl(state), expiresAt: time(expiresAt) });
  });

  router.get(`/${connectedPath}`, async (req, res) => {
    const provider = gitHosting.require('people');
    const { state, code } = queryOf<'finishGithubConnection'>(req);
    const connection = await gitConnections.take(state);
    if (code === undefined) {
      throw hostingError(
        'GIT_HOSTING_CODE_REFUSED',
        'You did not let GitHub confirm who you are. Nothing was changed. Start again and allow it.',
      );
    }
    const asked = await askedBy(connection);
    const person = await provider.prove(code);
    // Without it, the page lacks one link.
    const installUrl = await provider.about().then(
      (app) => app.installUrl,
      () => undefined,
    );
    const token = newLinkToken();
    await gitConnections.prove(token, connection, person);
    sendPage(res, choicePage({ ...asked, person, token, installUrl, connected: await connectedOf(connection) }));
  });

  router.post('/git/github/connect', async (req, res) => {
    const provider = gitHosting.require('people');
    assertOwnForm(req, config);
    const { token, installationId } = bodyOf<'chooseGithubInstallation'>(req);
    const { proven: person, ...connection } = await gitConnections.proven(token);
    const asked = await askedBy(connection);
    const { repositories, accountId } = chosenOf(person.installations, installationId);
    // Asked again now: the space was not notified of changes that happened while the person chose.
    const facts = await provider.installation(installationId);
    if (facts?.status !== 'active' || facts.accountId !== accountId) throw notFound('installation');
    await connectInstallation(
      database,
      {
        ...{ spaceId: connection.spaceId, provider: provider.name, gitHost: provider.gitHost, installationId },
        ...{ facts, repositories, provenBy: { id: person.id, login: person.login } },
      },
      actorOf(req, connection),
    );
    sendPage(res, choicePage({ ...asked, person, token, connected: await connectedOf(connection) }));
  });

  /** The names of the space and of the asking user, who may have lost the right since. */
  async function askedBy({ spaceId, userId }: GitConnection): Promise<{ space: string; askedBy: string }> {
    const { space } = await authorizeSpace(deps, { userId }, spaceId, 'editor');
    const user = await identity.users.byId(userId);
    if (user === undefined) throw notFound('user');
    return { space: space.name, askedBy: user.email };
  }

  async function connectedOf({ spaceId, provider }: GitConnection): Promise<Set<string>> {
    const known = await listInstallations(database, spaceId, provider);
    return new Set(known.map(({ installationId }) => installationId));
  }

  return router;
}

function chosenOf(installations: readonly ProvenInstallation[], id: string): ProvenInstallation {
  const found = installations.find((installation) => installation.id === id && installation.status === 'active');
  if (found === undefined) throw notFound('installation');
  return found;
}

/** The asking user is the actor: the person at the browser is known to GitHub only. */
function actorOf(req: Request, { userId }: GitConnection) {
  return { userId, credentialId: null, address: req.ip ?? null };
}
