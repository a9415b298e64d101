import { mkdir, rename, writeFile } from 'node:fs/promises';
import path from 'node:path';

/** Chromium always reads the policies of its machine’s owner here. */
const folderInside = '/etc/chromium/policies/managed';

/**
 * Addresses that show the computer instead of the web, or Chromium’s own settings. Chromium itself keeps pages from
 * `file:`; this list also applies to an address that a person types, to redirects and to popups.
 */
const refusedUrls = ['file:*', 'chrome:*', 'chrome-untrusted:*', 'devtools:*', 'view-source:*', 'filesystem:*'];

/** The policies of every Chromium: the proxy resolves names, and Chromium sends nothing home. */
const policies = {
  URLBlocklist: refusedUrls,
  NewTabPageLocation: 'about:blank',
  HomepageLocation: 'about:blank',
  DnsOverHttpsMode: 'off',
  AlternateErrorPagesEnabled: false,
  BackgroundModeEnabled: false,
  BrowserNetworkTimeQueriesEnabled: false,
  BrowserSignin: 0,
  SyncDisabled: true,
  MetricsReportingEnabled: false,
  NetworkPredictionOptions: 2,
  SearchSuggestEnabled: false,
  SafeBrowsingProtectionLevel: 0,
  ComponentUpdatesEnabled: false,
  PromotionsEnabled: false,
  PasswordManagerEnabled: false,
  AutofillAddressEnabled: false,
  AutofillCreditCardEnabled: false,
  TranslateEnabled: false,
  SpellCheckServiceEnabled: false,
  DefaultBrowserSettingEnabled: false,
  // The computer is the sandbox. The bar that warns of `--no-sandbox` takes room from each page.
  CommandLineFlagSecurityWarningsEnabled: false,
};

/**
 * Writes the policies of every Chromium on a host’s computers, with the certificate authorities (PEM) that it trusts
 * besides its own. Returns the folders of the host to mount in computers.
 */
export async function writeBrowserPolicies(
  folder: string,
  authorities: readonly string[],
): Promise<{ from: string; to: string }[]> {
  await mkdir(folder, { recursive: true, mode: 0o755 });
  // The policy needs the certificates as base64.
  const CACertificates = authorities.map((pem) => pem.replace(/-----[A-Z ]+-----|\s/g, ''));
  const temporary = path.join(folder, '.atrium.new');
  await writeFile(temporary, JSON.stringify({ ...policies, CACertificates }, null, 2), { mode: 0o644 });
  await rename(temporary, path.join(folder, 'atrium.json'));
  return [{ from: folder, to: folderInside }];
}
