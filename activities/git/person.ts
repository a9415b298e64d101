import type { GitPerson } from '../../integrations/git/types.ts';

/** Whose commits these are. Git refuses those without a name. */
export function personOf(author: { name: string; email: string } | undefined): GitPerson {
  const { name = '', email = '' } = author ?? {};
  return { name: name.trim() || email || 'Atrium', email };
}
