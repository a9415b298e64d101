import { z } from 'zod';
import { misanswered } from './failures.ts';
import type { HostedInstallation, HostedRepository } from './provider.ts';

// The parts of GitHub's answers that we read. They are checked because the library takes a truncated answer for an
// empty one, and an installation would then count as removed.

const id = z.number().int().positive();

/** Longer than GitHub's names, and short enough for our columns. */
const name = z.string().min(1).max(100);

const installationBody = z.object({
  id,
  // An enterprise has no login.
  account: z.union([z.object({ id, login: name }), z.object({ id, slug: name })]),
  suspended_at: z.string().nullish(),
});

const repositoryBody = z.object({
  id,
  full_name: z.string().max(300),
  permissions: z.object({ push: z.boolean().optional() }).optional(),
});

export const installationList = z.array(installationBody);
export const installationPage = z.object({ installations: installationList });
export const repositoryPage = z.object({ repositories: z.array(repositoryBody) });
export const userBody = z.object({ id, login: name });
export const permissionBody = z.object({
  permission: z.enum(['admin', 'write', 'read', 'none']),
  user: z.object({ id }).nullable(),
});
export const appBody = z.object({ name: z.string(), html_url: z.url({ protocol: /^https?$/ }) });
export const tokenBody = z.object({ token: z.string().min(1) });

export type InstallationBody = z.infer<typeof installationBody>;

/** Checks the data against a schema. Throws 503 `GIT_HOSTING_UNAVAILABLE`. */
export function read<T>(schema: z.ZodType<T>, data: unknown): T {
  const result = schema.safeParse(data);
  if (result.success) return result.data;
  throw misanswered();
}

export function readInstallation(data: unknown): HostedInstallation {
  const { id: installationId, account, suspended_at: suspendedAt } = read(installationBody, data);
  return {
    id: String(installationId),
    account: 'login' in account ? account.login : account.slug,
    // Enterprises have their own numbers, which must not be mistaken for users'.
    accountId: 'login' in account ? String(account.id) : `enterprise/${account.id}`,
    status: suspendedAt === null || suspendedAt === undefined ? 'active' : 'suspended',
  };
}

export function readRepository(data: z.infer<typeof repositoryBody>): HostedRepository {
  return { id: String(data.id), path: data.full_name, mayWrite: data.permissions?.push === true };
}

const pageSize = 100;
const maxPages = 1_000;

/** Yields the data of each page, while the `Link` of the answer names a next one. */
export async function* allPages<T>(
  schema: z.ZodType<T>,
  load: (page: {
    per_page: number;
    page: number;
  }) => Promise<{ data: unknown; headers: { link?: string | undefined } }>,
): AsyncGenerator<T> {
  for (let page = 1; page <= maxPages; page++) {
    const { data, headers } = await load({ per_page: pageSize, page });
    yield read(schema, data);
    if (!/;\s*rel="next"/.test(headers.link ?? '')) return;
  }
}
