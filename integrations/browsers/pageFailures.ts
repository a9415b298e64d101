import type { DomainError } from '../../base/errors.ts';
import { unknownName } from '../egress/guard.ts';
import { type Destination, destinationOf } from '../egress/hostPattern.ts';
import { browserError } from './failures.ts';
import type { TabFailure } from './types.ts';

/** The newest decision of the way out about a destination, where there is one: its refusal is null where it was admitted. */
export type DecisionOn = (to: Destination) => Promise<{ refusal: string | null } | undefined>;

/** Its policies, and its own rule that no site leads to a file. */
const refusedBy = new Set(['net::ERR_BLOCKED_BY_ADMINISTRATOR', 'net::ERR_UNSAFE_REDIRECT']);
const noTunnel = 'net::ERR_TUNNEL_CONNECTION_FAILED';

const reasons: readonly [RegExp, string][] = [
  [/ERR_CERT_/, 'the certificate of its server is not trusted'],
  [/ERR_SSL_/, 'its server does not speak TLS as it should'],
  [/ERR_CONNECTION_REFUSED$/, 'nothing takes connections there'],
  [/ERR_(CONNECTION_(RESET|CLOSED)|EMPTY_RESPONSE)$/, 'its server hung up'],
  [/ERR_(CONNECTION_)?TIMED_OUT$/, 'its server did not answer in time'],
  [/ERR_NAME_NOT_RESOLVED$/, 'the name of its host is not known'],
  [/ERR_TOO_MANY_REDIRECTS$/, 'it leads in a circle'],
  [/ERR_UNSAFE_PORT$/, 'browsers open no pages at this port'],
];

/** The words are ours: what answers in the place of a site may be a site that says so. */
const wayOut = {
  EGRESS_REFUSED: 'The address is refused on the way out of the computer.',
  EGRESS_UNRESOLVED: 'The name of this host is not known.',
  EGRESS_UNREACHABLE: 'The server of this address does not answer.',
  EGRESS_BUSY: 'The computer connects too often. Try again in a few seconds.',
} as const;

/** Why a page has not come, by what Chromium says of it. */
export function failureByChromium(text: string): TabFailure {
  // Its own word, and nothing else.
  const word = /net::ERR_[A-Z0-9_]{1,100}/.exec(text)?.[0] ?? 'net::ERR_FAILED';
  if (!refusedBy.has(word)) {
    const why = reasons.find(([words]) => words.test(word))?.[1];
    const said = why === undefined ? word : `${why} (${word})`;
    return { code: 'NAVIGATION_FAILED', detail: `The page could not be opened: ${said}.` };
  }
  const detail = 'Addresses of this kind are not opened, also not where another one leads there.';
  return { code: 'URL_REFUSED', detail };
}

/** The same by what the way out answers in the place of a site; null where this is not its answer. */
export function failureByWayOut(text: string): TabFailure | null {
  const code = /^(EGRESS_[A-Z]{1,20}): /.exec(text)?.[1] ?? '';
  return isOfWayOut(code) ? { code, detail: wayOut[code] } : null;
}

/** With the reason of the way out, where that has opened no connection: to Chromium, it is always the same. */
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

/** As whoever has asked for the page hears it. */
export function pageError({ code, detail }: TabFailure): DomainError {
  return browserError(code, detail);
}

function isOfWayOut(code: string): code is keyof typeof wayOut {
  return Object.hasOwn(wayOut, code);
}
