/** An App's installation at a hosting provider: one account's repositories, or some of them. */
export interface HostedInstallation {
  id: string;
  /** The account's name, which may change, and its id, which does not. */
  account: string;
  accountId: string;
  status: 'active' | 'suspended';
}

export interface HostedRepository {
  id: string;
  /** `owner/name`, as the provider spells it. */
  path: string;
  mayWrite: boolean;
}

/** An installation that a person has access to: to all of it, or to these repositories. */
export interface ProvenInstallation extends HostedInstallation {
  repositories: HostedRepository[] | 'all';
}

/** Somebody at the provider. Their name may change, their id does not. */
export interface HostedPerson {
  id: string;
  login: string;
}

/** Somebody with what their own token lists. */
export interface ProvenPerson extends HostedPerson {
  installations: ProvenInstallation[];
  /** Not all that their token lists: there is more than one connection may bring. */
  isCut: boolean;
}

/** What a token is for. It opens nothing else. */
export interface TokenRequest {
  installationId: string;
  repository: { id: string } | { name: string };
  /** What the repository must be called, as `owner/name`: another may have its name by now. */
  path: string;
  mayWrite: boolean;
  /** Whose right it is; they may have lost it since. Null where the whole installation was proven. */
  onBehalfOf: HostedPerson | null;
}

export interface MintedToken {
  token: string;
  /** Ends it before its hour is over. Never rejects. */
  revoke(): Promise<void>;
}

/**
 * A git hosting provider. Failures are DomainErrors whose code is among `HostingFailure` (failures.ts); their text is
 * never the provider's own.
 */
export interface GitHostingProvider {
  readonly name: 'github';
  /** The git server that its tokens are for. */
  readonly gitHost: string;
  /** Our App, and where people install it. Fails when the provider does not take our key. */
  about(): Promise<{ name: string; installUrl: string }>;
  /** Undefined when it was removed. */
  installation(id: string, signal?: AbortSignal): Promise<HostedInstallation | undefined>;
  /** Every customer's: for the operator alone. */
  installations(): AsyncIterable<HostedInstallation>;
  /**
   * A new token, which nothing keeps. Fails where the repository has another name by now, or the person may no longer
   * do what it is for.
   */
  mint(request: TokenRequest): Promise<MintedToken>;
  /** Where a person says who they are; the provider sends them back with `state` and a code. */
  authorizeUrl(state: string): string;
  /** Who has come back with this code. Their token is given back to the provider at once. */
  prove(code: string): Promise<ProvenPerson>;
}
