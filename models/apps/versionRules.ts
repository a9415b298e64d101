import { type Authority, may } from '../identity/authority.ts';
import { allows, type Scope } from '../identity/scopes.ts';
import type { AppAuthor } from './changes.ts';
import type { AppComponent, AppManifest } from './manifest.ts';

/** The reason why a version waits for approval. */
export interface WhyItWaits {
  code: 'SCOPE_MISSING' | 'CHANGED_BY_AGENT' | 'ASKS_FOR_MORE';
  detail: string;
}

interface Needing {
  manifest: AppManifest;
  hasDatabase: boolean;
}

/** The scopes that an API key needs to take a version into use: everything that its runs are given. */
export function scopesNeeded({ manifest, hasDatabase }: Needing): Scope[] {
  const needsSecrets = manifest.components.some(({ secrets }) => secrets.length > 0);
  return ['apps:write', ...(needsSecrets ? (['secrets:read'] as const) : []), ...databaseScopes(hasDatabase)];
}

/** All scopes that a version of an app can need. */
const allScopes: readonly Scope[] = ['apps:write', 'secrets:read', 'databases:write'];

/** True if a person made the change, or a program whose key covers everything that the app may need later. */
export function mayDoAll(author: AppAuthor): boolean {
  return author.userId !== null && author.turnId === null && allScopes.every((scope) => may(author, scope));
}

function databaseScopes(hasDatabase: boolean): Scope[] {
  return hasDatabase ? ['databases:write'] : [];
}

/** True if the component runs by itself or for strangers, or is given secrets. */
function isGivenMuch(component: AppComponent): boolean {
  return component.secrets.length > 0 || component.kind === 'schedule' || component.kind === 'webhook';
}

/** The reasons why a change by these authors is not taken into use in their name. Empty if it is. */
export function whyItWaits(authors: readonly AppAuthor[], version: Needing): WhyItWaits[] {
  const needed = scopesNeeded(version);
  const lacking = needed.filter((scope) => authors.some((author) => author.userId === null || !may(author, scope)));
  const isByAgent = authors.some(({ turnId }) => turnId !== null);
  const isMuch = version.hasDatabase || version.manifest.components.some(isGivenMuch);
  return [
    ...lacking.map((scope) => ({
      code: 'SCOPE_MISSING' as const,
      detail: `A user who changed the version lacks the scope "${scope}", which this version or the version in use needs.`,
    })),
    ...(isByAgent && isMuch ? [byAgent] : []),
  ];
}

const byAgent: WhyItWaits = {
  code: 'CHANGED_BY_AGENT',
  detail:
    'An agent changed this version, and this version or the version in use runs by itself, or is given secrets or a database. A person must review it.',
};

/**
 * The reasons why a repository's new manifest waits: it asks for more than the one in use. Anyone who may run programs
 * on its computer can change its files, so the author of the manifest is unknown.
 */
export function whyMoreWaits(inUse: AppManifest, next: AppManifest): WhyItWaits[] {
  return next.components.flatMap((component) => {
    const before = inUse.components.find(({ name }) => name === component.name);
    const more = moreThan(before, component);
    if (more === undefined) return [];
    const detail = `The component ${component.name} asks for more than before: ${more}.`;
    return [{ code: 'ASKS_FOR_MORE' as const, detail: detail.slice(0, 500) }];
  });
}

function moreThan(before: AppComponent | undefined, now: AppComponent): string | undefined {
  const added = now.secrets.filter((name) => before?.secrets.includes(name) !== true);
  if (added.length > 0) return `the secrets ${added.join(', ')}`;
  if (now.secrets.length > 0 && now.environment !== before?.environment) return 'another environment';
  if (now.kind === 'webhook' && now.auth === 'none' && !(before?.kind === 'webhook' && before.auth === 'none')) {
    return 'unauthenticated deliveries';
  }
  const runsByItself = now.kind === 'schedule' || now.kind === 'webhook';
  if (runsByItself && before?.kind !== now.kind) return `a ${now.kind}`;
  return undefined;
}

/** The scopes that all of these authorities have. Null means all scopes. */
export function sharedScopes(authorities: readonly Pick<Authority, 'scopes'>[]): readonly string[] | null {
  return authorities.reduce<readonly string[] | null>((shared, { scopes }) => {
    if (shared === null || scopes === null) return shared ?? scopes;
    const both = [...shared.filter((one) => allows(scopes, one)), ...scopes.filter((one) => allows(shared, one))];
    return [...new Set(both)];
  }, null);
}
