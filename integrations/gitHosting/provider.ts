/** An App's installation at a hosting provider: one account's repositories, or some of them. */
export interface HostedInstallation {
  id: string;
  /** The account's name, which may change. Its id does not. */
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

/** An installation to which a person has access: to all of it, or to these repositories. */
export interface ProvenInstallation extends HostedInstallation {
  repositories: HostedRepository[] | 'all';
}

/** A person at the provider. The login may change; the id does not. */
export interface HostedPerson {
  id: string;
  login: string;
}

/** A person with the installations that their own token lists. */
export interface ProvenPerson extends HostedPerson {
  installations: ProvenInstallation[];
  /** Whether the token lists more than one connection may store. */
  isCut: boolean;
}

/** The scope of a token. */
export interface TokenRequest {
  installationId: string;
  repository: { id: string } | { name: string };
  /** The expected `owner/name`: another repository may have the name by now. */
  path: string;
  mayWrite: boolean;
  /** The person whose right must still hold. Null if the whole installation was proven. */
  onBehalfOf: HostedPerson | null;
}

export interface MintedToken {
  token: string;
  /** Ends the token before it expires. Never rejects. */
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
  /** The name of our App, and the page to install it. Fails if the provider refuses our key. */
  about(): Promise<{ name: string; installUrl: string }>;
  /** Undefined if it was removed. */
  installation(id: string, signal?: AbortSignal): Promise<HostedInstallation | undefined>;
  /** The installations of all customers: only for the operator. */
  installations(): AsyncIterable<HostedInstallation>;
  /**
   * Makes a new token, which is not stored. Fails if the repository has another name by now, or the person has lost the
   * right.
   */
  mint(request: TokenRequest): Promise<MintedToken>;
  /** The page on which a person signs in. The provider sends them back with `state` and a code. */
  authorizeUrl(state: string): string;
  /** The person who came back with this code. Their token is revoked at once. */
  prove(code: string): Promise<ProvenPerson>;
}
