import { unknownName } from '../egress/guard.ts';
import { type Destination, destinationOf } from '../egress/hostPattern.ts';
import type { TabFailure } from './types.ts';

/**
 * The egress proxy's newest decision about a destination, if there is one. Its refusal is null when it was admitted.
 */
export type DecisionOn = (to: Destination) => Promise<{ refusal: string | null } | undefined>;

/** Chromium's codes for its policies, and for its own rule that no site leads to a file. */
const refusedBy = new Set(['net::ERR_BLOCKED_BY_ADMINISTRATOR', 'net::ERR_UNSAFE_REDIRECT']);
const noTunnel = 'net::ERR_TUNNEL_CONNECTION_FAILED';

const reasons: readonly [RegExp, string][] = [
  [/ERR_CERT_/, 'the certificate of its server is not trusted'],
  [/ERR_SSL_/, 'its server does not speak TLS correctly'],
  [/ERR_CONNECTION_REFUSED$/, 'its server refuses connections'],
  [/ERR_(CONNECTION_(RESET|CLOSED)|EMPTY_RESPONSE)$/, 'its server hung up'],
  [/ERR_(CONNECTION_)?TIMED_OUT$/, 'its server did not answer in time'],
  [/ERR_NAME_NOT_RESOLVED$/, 'the name of its host is not known'],
  [/ERR_TOO_MANY_REDIRECTS$/, 'it redirects in a circle'],
  [/ERR_UNSAFE_PORT$/, 'browsers open no pages at this port'],
];

/** These texts are ours: a site could answer with the proxy's format and any words. */
const wayOut = {
  EGRESS_REFUSED: 'The address is refused on the way out of the computer.',
  EGRESS_UNRESOLVED: 'The name of this host is not known.',
  EGRESS_UNREACHABLE: 'The server of this address does not answer.',
  EGRESS_BUSY: 'The computer opens too many connections. Try again in a few seconds.',
} as const;

/** The failure that an error of Chromium means. Only Chromium's own code of the text is kept. */
export function failureByChromium(text: string): TabFailure {
  const word = /net::ERR_[A-Z0-9_]{1,100}/.exec(text)?.[0] ?? 'net::ERR_FAILED';
  if (!refusedBy.has(word)) {
    const why = reasons.find(([words]) => words.test(word))?.[1];
    const reason = why === undefined ? word : `${why} (${word})`;
    return { code: 'NAVIGATION_FAILED', detail: `The page could not be opened: ${reason}.` };
  }
  const detail = 'Addresses of this kind are not opened, also not when another address leads there.';
  return { code: 'URL_REFUSED', detail };
}

/** The failure that the egress proxy's answer means; null when the text is not the proxy's answer. */
export function failureByWayOut(text: string): TabFailure | null {
  const code = /^(EGRESS_[A-Z]{1,20}): /.exec(text)?.[1] ?? '';
  return isOfWayOut(code) ? { code, detail: wayOut[code] } : null;
}

/** Adds the proxy's reason if it has opened no connection: Chromium reports the same error for each reason. */
export async function explained(failure: TabFailure, url: string, decisionOn: DecisionOn): Promise<TabFailure> {
  if (!(isOfWayOut(failure.code) || failure.detail.includes(noTunnel))) return failure;
  const to = destinationOf(url);
  const decision = to && (await decisionOn(to));
  if (decision === undefined) return failure;
  const { refusal } = decision;
  if (refusal === null) {
    const code = isOfWayOut(failure.code) ? failure.code : 'EGRESS_UNREACHABLE';
    return { code, detail: wayOut[code] };
  }
  if (refusal === unknownName) return { code: 'EGRESS_UNRESOLVED', detail: wayOut.EGRESS_UNRESOLVED };
  return { code: 'EGRESS_REFUSED', detail: `${wayOut.EGRESS_REFUSED.slice(0, -1)}: ${refusal}.` };
}

function isOfWayOut(code: string): code is keyof typeof wayOut {
  return Object.hasOwn(wayOut, code);
}
