import { DomainError } from '../../base/errors.ts';
import { answer } from '../frame/answer.ts';
import { actorOf } from '../frame/auth/actor.ts';
import type { RouteDeps } from '../frame/deps.ts';
import { wantsPage } from '../frame/middleware/pageErrors.ts';
import { assertOwnForm } from '../frame/ownForm.ts';
import { sendPage } from '../frame/pages/page.ts';
import { bodyOf, pageOf, pathOf } from '../frame/request.ts';
import { createRouter } from '../frame/router.ts';
import { time } from '../frame/times.ts';
import { invite } from './invite.ts';
import { presentInvitation, presentOwnInvitation } from './presentInvitation.ts';
import { finish, wayBack } from './signInFlow.ts';
import { invitationPage, joinedPage, signInToJoinPage } from './signInPages.ts';

/** Inviting people into a space, and accepting. */
export function invitationRoutes(deps: RouteDeps) {
  const { config, identity } = deps;
  const { invitations, ownInvitations } = identity;
  const router = createRouter();

  router.get('/api/spaces/:spaceId/invitations', async (req, res) => {
    const { spaceId } = pathOf<'listInvitations'>(req);
    const { data, nextCursor } = await invitations.list(spaceId, pageOf(req));
    answer<'listInvitations'>(res, 200, { data: data.map(presentInvitation), nextCursor });
  });

  router.post('/api/spaces/:spaceId/invitations', async (req, res) => {
    answer<'createInvitation'>(res, 201, await invite(deps, req, bodyOf<'createInvitation'>(req)));
  });

  router.delete('/api/spaces/:spaceId/invitations/:invitationId', async (req, res) => {
    const { spaceId, invitationId } = pathOf<'revokeInvitation'>(req);
    await invitations.revoke(spaceId, invitationId, actorOf(req));
    res.status(204).end();
  });

  router.get('/api/invitations', async (req, res) => {
    const { data, nextCursor } = await ownInvitations.list(actorOf(req).userId, pageOf(req));
    answer<'listOwnInvitations'>(res, 200, { data: data.map(presentOwnInvitation), nextCursor });
  });

  router.post('/api/invitations/:invitationId/accept', async (req, res) => {
    const actor = actorOf(req);
    const { invitationId } = pathOf<'acceptOwnInvitation'>(req);
    answer<'acceptOwnInvitation'>(res, 200, await ownInvitations.accept(actor.userId, invitationId, actor));
  });

  router.post('/api/invitations/:invitationId/decline', async (req, res) => {
    const actor = actorOf(req);
    await ownInvitations.decline(actor.userId, pathOf<'declineInvitation'>(req).invitationId, actor);
    res.status(204).end();
  });

  router.get('/auth/invitations/:token', async (req, res) => {
    const { token } = pathOf<'showInvitation'>(req);
    sendPage(res, invitationPage(token, await invitations.byToken(token)));
  });

  router.post('/auth/invitations/:token', async (req, res) => {
    const { token } = pathOf<'acceptInvitation'>(req);
    const isPage = wantsPage(req);
    if (isPage) assertOwnForm(req, config);
    const guest = req.caller === undefined ? { credentialId: null, address: req.ip ?? null } : actorOf(req);
    try {
      const { spaceId, spaceName, role, code, returnUrl } = await identity.acceptInvitation(token, guest);
      if (isPage && code !== undefined) {
        const to = wayBack(returnUrl, config);
        if (to.redirect !== undefined) return finish(res, code, to);
        return sendPage(res, joinedPage({ spaceName, role, code, http: config.http }, to.returnUrl));
      }
      answer<'acceptInvitation'>(res, 200, {
        spaceId,
        role,
        ...(code !== undefined && { code: code.code, expiresAt: time(code.expiresAt) }),
        ...(returnUrl !== null && { returnUrl }),
      });
    } catch (error) {
      if (!isPage || !(error instanceof DomainError) || error.code !== 'SIGN_IN_REQUIRED') throw error;
      const { returnUrl } = await invitations.byToken(token);
      sendPage(res, signInToJoinPage(error.message, wayBack(returnUrl, config)));
    }
  });

  return router;
}
