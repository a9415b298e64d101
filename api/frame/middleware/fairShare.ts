import { AsyncResource } from 'node:async_hooks';
import type { Request, RequestHandler, Response } from 'express';
import { Places } from '../../../base/places.ts';
import type { Config } from '../../../config/index.ts';
import { whenClosed } from '../goneOf.ts';

/** How long a request holds its slot. After that it continues without one. */
const heldMs = 5_000;
/** The same for requests that mostly wait: for a computer, a model, a git server, an uploading client. */
const waitingHeldMs = 250;
const waitingAreas: ReadonlySet<string> = new Set([
  'Apps',
  'Browsers',
  'Computers',
  'Databases',
  'Desktops',
  'Git',
  'OpenAI',
]);
/** Streaming responses last as long as the client keeps reading. */
const streams: ReadonlySet<string> = new Set(['text/event-stream', 'application/octet-stream']);

/**
 * Queues the requests of each user, so that other users' requests are answered soon however many requests one user
 * sends. A request gets its slot once its body has arrived. It frees the slot with its answer, or at the start of the
 * answer when that streams events or a file. Slots are counted per API process.
 */
export function fairShare({ http }: Pick<Config, 'http'>): RequestHandler {
  const places = new Places({ all: http.requestsAtOnce, perOwner: http.requestsPerUserAtOnce });
  return (req, res, next) => {
    const userId = req.caller?.userId;
    if (userId === undefined || res.closed) return next();
    let timer: NodeJS.Timeout | undefined;
    let leave: (() => void) | undefined;
    let isOver = false;
    const over = () => {
      isOver = true;
      clearTimeout(timer);
      leave?.();
    };
    if (isStream(req)) onAnswer(res, over);
    whenClosed(res, over);
    // The request that frees the slot resumes this one. Run this request in its own async context, not in that
    // request's.
    const goOn = AsyncResource.bind(() => next());
    leave = places.begin(userId, () => {
      timer = setTimeout(over, waitsForOthers(req) ? waitingHeldMs : heldMs);
      goOn();
    });
    // The response may have ended before `leave` was assigned.
    if (isOver) leave();
  };
}

function waitsForOthers({ operation }: Request): boolean {
  if (operation === undefined || waitingAreas.has(operation.area)) return true;
  return operation.bodyTypes.some((type) => type !== 'application/json');
}

function isStream({ operation }: Request): boolean {
  return operation?.answerTypes.some((type) => streams.has(type)) === true;
}

/** Node has no event for the start of an answer. The headers of every answer pass through `writeHead`. */
function onAnswer(res: Response, begin: () => void): void {
  const writeHead = res.writeHead;
  res.writeHead = ((...args: Parameters<typeof writeHead>) => {
    begin();
    return writeHead.apply(res, args);
  }) as typeof writeHead;
}
