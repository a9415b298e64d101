import { mkdir, rename, writeFile } from 'node:fs/promises';
import path from 'node:path';

/** Where Chromium looks for what its machine’s owner has decided, whatever it is started with. */
const folderInside = '/etc/chromium/policies/managed';

/**
 * What shows the computer rather than the web, or Chromium’s own settings. `file:` is refused to pages by Chromium
 * itself; these hold for whoever types an address, and for redirects and popups.
 */
const refusedUrls = ['file:*', 'chrome:*', 'chrome-untrusted:*', 'devtools:*', 'view-source:*', 'filesystem:*'];

/** What holds for every Chromium on a computer: names are asked of the proxy, and nothing is sent home. */
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
  // The computer is the sandbox, and the bar that says that Chromium has none of its own takes room of each page.
  CommandLineFlagSecurityWarningsEnabled: false,
};

/**
 * Writes the policies of every Chromium on a host’s computers, with the authorities, as PEM, that it trusts beside its
 * own. Answers what computers are shown of the host for that.
 */
export async function writeBrowserPolicies(
  folder: string,
  authorities: readonly string[],
): Promise<{ from: string; to: string }[]> {
  await mkdir(folder, { recursive: true, mode: 0o755 });
  const all = { ...policies, CACertificates: authorities.map(derOf) };
  const temporary = path.join(folder, '.atrium.new');
  await writeFile(temporary, JSON.stringify(all, null, 2), { mode: 0o644 });
  await rename(temporary, path.join(folder, 'atrium.json'));
  return [{ from: folder, to: folderInside }];
}

/** In base64, as the policy wants it. */
function derOf(pem: string): string {
  return pem.replace(/-----[A-Z ]+-----|\s/g, '');
}
