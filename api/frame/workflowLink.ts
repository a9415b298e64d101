import type { Config } from '../../config/index.ts';

/** A workflow's id and its URL in the Temporal UI. The URL is null when the UI's address is not configured. */
export function workflowLink(
  { temporal: { uiUrl, namespace } }: Pick<Config, 'temporal'>,
  id: string,
): { id: string; url: string | null } {
  if (uiUrl === undefined) return { id, url: null };
  const url = new URL(uiUrl);
  // The embedded UI's key belongs to the operator. Without it, the link shows nothing.
  Object.assign(url, { username: '', password: '', search: '', hash: '' });
  const base = url.pathname.replace(/\/$/, '');
  url.pathname = `${base}/namespaces/${encodeURIComponent(namespace)}/workflows/${encodeURIComponent(id)}`;
  return { id, url: url.href };
}
