import { lookup } from 'node:dns/promises';
import { isIP } from 'node:net';
import { orAfter } from '../../base/async.ts';
import { DomainError } from '../../base/errors.ts';
import { normaliseAddress, refusalOf } from './addresses.ts';
import { normaliseHost } from './hostName.ts';
import { type Destination, type HostPattern, parseHostPattern } from './hostPattern.ts';
import type { Tunnel } from './proxy.ts';

/** The hosts that a space may reach: only those on the allow list, if there is one. The deny list takes precedence. */
export interface EgressPolicy {
  allow: readonly string[];
  deny: readonly string[];
}

/** One decision, for the space's log: the destination, never the content. */
export interface EgressDecision extends Destination {
  /** The source of the request: `web_fetch`, `mcp`, `git` … */
  purpose: string;
  /** The address that is dialled, or null. */
  address: string | null;
  /** Why it was refused; null when it was admitted. */
  refusal: string | null;
  /** The secret whose value has been sent there. */
  secret?: string;
}

/** Who makes the request. */
export interface EgressOwner {
  purpose: string;
  policy: EgressPolicy;
  /** Logs a decision before anything is dialled. */
  record(decision: EgressDecision): Promise<void>;
  /** Aborted when the owner's work is over: its open connections through the proxy then end. */
  ended?: AbortSignal;
  /**
   * Called for each connection that the proxy opens, and disposed of when it is closed. `ended` is aborted when the
   * connection must end. `isOwn` is set for a destination of `own`.
   */
  opened?(to: Admitted, isOwn?: boolean): Disposable & { ended: AbortSignal };
  /** Gets the number of bytes that pass in either direction. It may end the owner's work if there are too many. */
  passed?(bytes: number): void;
  /** Resolves a destination of Atrium's own that only this owner may reach. It is dialled without asking the guard. */
  own?(to: Destination): Promise<OwnDestination | undefined>;
  /** Serves a tunnel in place of the proxy. Returns false to leave it to the proxy. */
  takeOver?(tunnel: Tunnel): Promise<boolean>;
}

/** The address of a service of Atrium's own. */
export interface OwnDestination extends Destination {
  /** Takes one of the owner's slots at the service until it is disposed of. Throws if none is free. */
  enter?(): Promise<Disposable>;
}

/** The address to dial, and the checked host and port: requests must name these, in this spelling. */
export interface Admitted extends Destination {
  address: string;
  /** Whether one of the operator's exceptions admitted it. */
  isException: boolean;
}

export type Resolve = (host: string) => Promise<readonly string[]>;

/** Why a name that has no address is refused. */
export const unknownName = 'the name is not known';

/** Port 0 is invalid. Through port 25, a stranger's program could send mail in our name. */
const refusedPorts = new Set([0, 25]);

/**
 * Decides where requests may go. A name is resolved once, here; all of its addresses are checked, and the caller dials
 * one of those: a name that resolves to something else a moment later (DNS rebinding) changes nothing.
 */
export class EgressGuard {
  readonly #internal: readonly HostPattern[];
  readonly #resolve: Resolve;
  readonly #resolveTimeoutMs: number;

  /** `allowInternal` are the operator's exceptions, which may be internal. */
  constructor(options: { allowInternal: readonly string[]; resolve?: Resolve; resolveTimeoutMs?: number }) {
    this.#internal = patternsOf(options.allowInternal);
    this.#resolve = options.resolve ?? resolveAll;
    this.#resolveTimeoutMs = options.resolveTimeoutMs ?? 5_000;
  }

  /**
   * An address to dial for the host, however it is spelled. Throws 422 `EGRESS_REFUSED` or 502 `EGRESS_UNRESOLVED`;
   * every decision is logged.
   */
  async admit(asked: Destination, owner: EgressOwner): Promise<Admitted> {
    const host = normaliseHost(asked.host);
    const to = { host: host ?? asked.host, port: asked.port };
    const { address, refusal, code, isException } =
      host === undefined ? refuse('this is not a host name') : await this.#decide(to, owner.policy);
    await owner.record({ ...to, purpose: owner.purpose, address, refusal });
    if (address !== null) return { ...to, address, isException };
    const text = `${to.host}:${to.port} cannot be reached from here: ${refusal}.`;
    throw new DomainError(code === 'EGRESS_REFUSED' ? 'unprocessable' : 'upstream', code, text);
  }

  /**
   * Why a destination is refused for every owner, as far as that is known without resolving a name: its port, or an
   * address or name that is internal by itself. Undefined for all others.
   */
  refusalAtOnce(asked: Destination): string | undefined {
    const host = normaliseHost(asked.host);
    if (host === undefined) return 'this is not a host name';
    const to = { host, port: asked.port };
    if (refusedPorts.has(to.port)) return 'this port is not allowed';
    const isOwn = /(?:^|\.)localhost$/.test(host);
    if (!isOwn && isIP(host) === 0) return undefined;
    const address = isOwn ? '127.0.0.1' : host;
    if (this.#isExcepted(to, address) || refusalOf(address) === undefined) return undefined;
    return 'its address is internal';
  }

  #isExcepted(to: Destination, address: string): boolean {
    return this.#internal.some((pattern) => pattern(to, address));
  }

  /** Empty if the name is unknown, or its servers do not answer in time: requests wait for this. */
  #addressesOf(host: string): Promise<readonly string[]> {
    return orAfter(
      this.#resolve(host).catch(() => []),
      this.#resolveTimeoutMs,
      [],
    );
  }

  async #decide(to: Destination, policy: EgressPolicy) {
    if (refusedPorts.has(to.port)) return refuse('this port is not allowed');
    // Check the lists first: resolving a name already tells its servers, even if no connection follows.
    const byName = refusalByPolicy(to, policy);
    if (byName !== null) return refuse(byName);
    const found = isIP(to.host) === 0 ? await this.#addressesOf(to.host) : [to.host];
    const addresses = found.map((address) => normaliseAddress(address) ?? address);
    const [first] = addresses;
    if (first === undefined) {
      return { ...refuse(unknownName), code: 'EGRESS_UNRESOLVED' as const };
    }
    let isException = false;
    for (const address of addresses) {
      const byAddress = refusalByPolicy(to, policy, address);
      if (byAddress !== null) return refuse(byAddress);
      // One refused address is enough: a mixed answer is suspicious.
      const isExcepted = this.#isExcepted(to, address);
      isException ||= isExcepted;
      const why = isExcepted ? undefined : refusalOf(address);
      if (why !== undefined) return refuse(`the address is internal or special (${why})`);
    }
    return { address: first, refusal: null, code: 'EGRESS_REFUSED' as const, isException };
  }
}

/**
 * Why the space's lists refuse this destination, or null. Open connections are checked again, with the dialled address.
 * The allow list is compared without the address, which is not known before the name is resolved.
 */
export function refusalByPolicy(to: Destination, policy: EgressPolicy, address?: string): string | null {
  if (patternsOf(policy.deny).some((pattern) => pattern(to, address))) return 'the space denies it';
  if (policy.allow.length === 0 || patternsOf(policy.allow).some((pattern) => pattern(to))) return null;
  return 'the space does not allow it';
}

function refuse(refusal: string) {
  return { address: null, refusal, code: 'EGRESS_REFUSED' as const, isException: false };
}

const parsed = new Map<string, HostPattern>();
const maxParsed = 10_000;

function patternsOf(texts: readonly string[]): HostPattern[] {
  return texts.flatMap((text) => {
    const pattern = parsed.get(text) ?? parseHostPattern(text);
    if (pattern === undefined) return [];
    if (parsed.size < maxParsed) parsed.set(text, pattern);
    return [pattern];
  });
}

async function resolveAll(host: string): Promise<string[]> {
  return (await lookup(host, { all: true, verbatim: false })).map(({ address }) => address);
}
