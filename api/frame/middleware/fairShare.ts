import { AsyncResource } from 'node:async_hooks';
import type { Request, RequestHandler, Response } from 'express';
import { Places } from '../../../base/places.ts';
import type { Config } from '../../../config/index.ts';
import { whenClosed } from '../goneOf.ts';

/** How long a request holds its place. After that it goes on without one. */
const heldMs = 5_000;
/** The same where a request mostly waits for something else: a computer, a model, a git server, a client that uploads. */
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
/** Their answers last as long as whoever reads them takes. */
const streams: ReadonlySet<string> = new Set(['text/event-stream', 'application/octet-stream']);

/**
 * Has the requests of one user wait for each other, so that however many they send at once, those of others are answered
 * soon. A request gets its place once its body has come, and gives it back with its answer; where that is a stream of
 * events or a file, when it begins. It counts in one API process.
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
    // Whoever gives a place back begins this request: it is not to go on in the context of that one.
    const goOn = AsyncResource.bind(() => next());
    leave = places.begin(userId, () => {
      timer = setTimeout(over, waitsForOthers(req) ? waitingHeldMs : heldMs);
      goOn();
    });
    // It may have been answered at once.
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

/** Node has no event for it: the headers of every answer go through here. */
function onAnswer(res: Response, begin: () => void): void {
  const writeHead = res.writeHead;
  res.writeHead = ((...args: Parameters<typeof writeHead>) => {
    begin();
    return writeHead.apply(res, args);
  }) as typeof writeHead;
}
