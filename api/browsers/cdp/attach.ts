import { maxMessageBytes } from '../../../integrations/browsers/cdp/connection.ts';
import type { UpgradeHandler } from '../../frame/area.ts';
import { ConnectionCounter, connectionLimits } from '../../frame/connectionLimits.ts';
import { pathOf } from '../../frame/request.ts';
import { withBrowser } from '../look.ts';
import { admit } from './admit.ts';
import { Attached } from './attached.ts';
import { MessageMemory } from './messageMemory.ts';

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

/**
 * Of all scripts of this process together, for messages that are large. A computer of one space, or one that only says it
 * is Chromium, leaves the others their half.
 */
const memory = { mostBytes: 4 * maxMessageBytes, perOwnerBytes: 2 * maxMessageBytes, slowMs: 20_000 };

/** Lets a script attach to the Chromium of a session, by a link. */
export const attachToBrowser: UpgradeHandler = (deps) => {
  const scripts = new ConnectionCounter(scriptsPerSession);
  const shared = new MessageMemory(memory);
  return async (req) => {
    const { token } = pathOf<'attachToBrowser'>(req);
    const link = await admit(deps, token);
    const { spaceId, sessionId, createdBy: userId, apiKeyId: credentialId } = link;
    const by = { userId, credentialId, address: req.ip ?? null };
    // A plain request for it must not count as use.
    const stream = req.handshake?.socket;
    if (stream === undefined) return { link: { userId, limits }, open: () => undefined };
    const { browser, session } = await withBrowser(deps, { spaceId, sessionId }, by, async (browser, session) => {
      return { browser, session };
    });
    req.res?.once('close', scripts.enter(sessionId));
    return {
      link: { userId, limits },
      open: (connection) => {
        const { log } = req;
        const scripts = { connection, stream, maxMessageBytes: limits.maxMessageBytes };
        new Attached({ deps, ...scripts, memory: shared, token, browser, session, by, log }).run();
      },
    };
  };
};
