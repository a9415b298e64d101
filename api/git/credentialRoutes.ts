import { DomainError } from '../../base/errors.ts';
import { authorityOf } from '../../integrations/egress/hostName.ts';
import { parseAuthority } from '../../integrations/egress/hostPattern.ts';
import type { GitCredential } from '../../models/git/credentials.ts';
import { type AnswerOf, answer } from '../frame/answer.ts';
import { actorOf } from '../frame/auth/actor.ts';
import type { RouteDeps } from '../frame/deps.ts';
import { makeOnce } from '../frame/idempotency.ts';
import { bodyOf, pageOf, pathOf } from '../frame/request.ts';
import { createRouter } from '../frame/router.ts';
import { time } from '../frame/times.ts';

const httpsPort = 443;
/** Servers that take tokens ask for a user name too, and ignore it. */
const anyName = 'git';

/** The credentials of a space for git servers. */
export function gitCredentialRoutes(deps: RouteDeps) {
  const { gitCredentials } = deps;
  const router = createRouter();
  const base = '/api/spaces/:spaceId/git/credentials';

  router.get(base, async (req, res) => {
    const { spaceId } = pathOf<'listGitCredentials'>(req);
    const { data, nextCursor } = await gitCredentials.list(spaceId, pageOf(req));
    answer<'listGitCredentials'>(res, 200, { data: data.map(presentGitCredential), nextCursor });
  });

  router.post(base, async (req, res) => {
    const { spaceId } = pathOf<'addGitCredential'>(req);
    const { name, host, pathPrefix = '/', username = anyName, secret } = bodyOf<'addGitCredential'>(req);
    const shown = { name, host: serverOf(host), pathPrefix: withoutSlash(pathPrefix), username, secret };
    await makeOnce<'addGitCredential'>(deps, req, res, 'gitCredential', async (id) =>
      presentGitCredential(await gitCredentials.add({ id, spaceId, ...shown }, actorOf(req))),
    );
  });

  router.delete(`${base}/:credentialId`, async (req, res) => {
    const { spaceId, credentialId } = pathOf<'removeGitCredential'>(req);
    await gitCredentials.remove(spaceId, credentialId, actorOf(req));
    res.status(204).end();
  });

  return router;
}

/** The normalised name of one server. */
function serverOf(text: string): string {
  const named = parseAuthority(text);
  if (named === undefined) {
    const detail = 'Write one server’s name, such as git.example.com, with a :port where it is not 443.';
    throw new DomainError('unprocessable', 'GIT_HOST_INVALID', 'This is not a host that a credential can be for.', {
      errors: [{ pointer: '/host', detail }],
    });
  }
  const { host, port = httpsPort } = named;
  return authorityOf(host, port, httpsPort);
}

/** `/owner` and `/owner/` mean the same. */
function withoutSlash(path: string): string {
  return path.replace(/\/+$/, '') || '/';
}

function presentGitCredential(credential: GitCredential): AnswerOf<'addGitCredential'> {
  const { id, name, host, pathPrefix, username, provider, status, createdBy, createdAt } = credential;
  return { id, name, host, pathPrefix, username, provider, status, createdBy, createdAt: time(createdAt) };
}
