import { maxMessageBytes } from '../../../integrations/browsers/cdp/socket.ts';
import type { UpgradeHandler } from '../../frame/area.ts';
import { ConnectionCounter, connectionLimits } from '../../frame/connectionLimits.ts';
import { pathOf } from '../../frame/request.ts';
import { withBrowser } from '../look.ts';
import { admit } from './admit.ts';
import { Attached } from './attached.ts';

/** Each is one script. */
const scriptsPerSession = 8;
/**
 * Files that are given to a page go in one message, a full page’s picture comes in one. Scripts send a message for each
 * key that they press.
 */
const limits = {
  ...connectionLimits,
  maxMessageBytes: 16 * 1_048_576,
  maxBacklogBytes: maxMessageBytes + 1_048_576,
  messagesPerSecond: 2_000,
  messagesAtOnce: 10_000,
};

/** Lets a script attach to the Chromium of a session, by a link. */
export const attachToBrowser: UpgradeHandler = (deps) => {
  const scripts = new ConnectionCounter(scriptsPerSession);
  return async (req) => {
    const { token } = pathOf<'attachToBrowser'>(req);
    const link = await admit(deps, token);
    const { spaceId, sessionId, createdBy: userId, apiKeyId: credentialId } = link;
    const by = { userId, credentialId, address: req.ip ?? null };
    // A plain request for it must not count as use.
    if (req.handshake === undefined) return { link: { userId, limits }, open: () => undefined };
    const { browser, session } = await withBrowser(deps, { spaceId, sessionId }, by, async (browser, session) => {
      return { browser, session };
    });
    req.res?.once('close', scripts.enter(sessionId));
    return {
      link: { userId, limits },
      open: (connection) => new Attached({ deps, connection, token, browser, session, by, log: req.log }).run(),
    };
  };
};
