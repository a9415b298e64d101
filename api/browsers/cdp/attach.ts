import { maxMessageBytes } from '../../../integrations/browsers/cdp/connection.ts';
import type { UpgradeHandler } from '../../frame/area.ts';
import { ConnectionCounter, connectionLimits } from '../../frame/connectionLimits.ts';
import { whenClosed } from '../../frame/goneOf.ts';
import { pathOf } from '../../frame/request.ts';
import { admitByLink, withBrowser } from '../look.ts';
import { Attached } from './attached.ts';
import { MessageMemory } from './messageMemory.ts';

/** Each script has one connection. */
const scriptsPerSession = 8;
/**
 * A script sends a file for a page in one message, and gets the picture of a full page in one. It sends a message for
 * each key that it presses.
 */
const limits = {
  ...connectionLimits,
  maxMessageBytes: 16 * 1_048_576,
  maxBacklogBytes: maxMessageBytes + 1_048_576,
  messagesPerSecond: 2_000,
  messagesAtOnce: 10_000,
};

/**
 * The memory for large messages of all scripts in this process. One space, or a program that only pretends to be
 * Chromium, gets at most half of it.
 */
const memory = { mostBytes: 4 * maxMessageBytes, perOwnerBytes: 2 * maxMessageBytes, slowMs: 20_000 };

/** Lets a script attach to the Chromium of a session, by a link. */
export const attachToBrowser: UpgradeHandler = (deps) => {
  const scripts = new ConnectionCounter(scriptsPerSession);
  const shared = new MessageMemory(memory);
  return async (req) => {
    const { token } = pathOf<'attachToBrowser'>(req);
    const link = await admitByLink(deps, token);
    const { spaceId, sessionId, createdBy: userId, apiKeyId: credentialId } = link;
    const by = { userId, credentialId, address: req.ip ?? null };
    // A plain HTTP request must not count as use of the computer.
    const stream = req.handshake?.socket;
    if (stream === undefined) return { link: { userId, limits }, open: () => undefined };
    const open = await withBrowser(deps, { spaceId, sessionId }, by, async (browser, session) => ({
      browser,
      session,
    }));
    if (req.res !== undefined) whenClosed(req.res, scripts.enter(sessionId));
    return {
      link: { userId, limits },
      open: (connection) => {
        const script = { connection, stream, maxMessageBytes: limits.maxMessageBytes, token, by };
        new Attached({ deps, ...script, ...open, memory: shared, log: req.log }).run();
      },
    };
  };
};
