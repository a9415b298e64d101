import type { Config } from '../../config/index.ts';

/** A workflow by its id, and where an operator sees it in the Temporal UI; null where nobody has said where that is. */
export function workflowLink(
  { temporal: { uiUrl, namespace } }: Pick<Config, 'temporal'>,
  id: string,
): { id: string; url: string | null } {
  if (uiUrl === undefined) return { id, url: null };
  const url = new URL(uiUrl);
  // The key of the embedded UI is the operator's own: whoever has not opened it with that sees nothing there.
  Object.assign(url, { username: '', password: '', search: '', hash: '' });
  const base = url.pathname.replace(/\/$/, '');
  url.pathname = `${base}/namespaces/${encodeURIComponent(namespace)}/workflows/${encodeURIComponent(id)}`;
  return { id, url: url.href };
}
