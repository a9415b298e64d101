import { existsSync } from 'node:fs';
import { join } from 'node:path';
import type { GitConfig } from '../../../config/git.ts';

/** Settings for one call of git. They go in variables, because every user of the machine can read arguments. */
export type GitSettings = Readonly<Record<string, string>>;

/** The search path of git and its helpers. Nothing of our own environment is passed on. */
const path = '/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin:/opt/homebrew/bin';

/** Harmless mistakes of old programs, which well-known repositories have. */
export const forgiven = ['zeroPaddedFilemode', 'badTimezone', 'missingSpaceBeforeDate'];

/** By default git does not sync loose objects, refs and the index: a power cut would empty them. */
export const onDisk: GitSettings = { 'core.fsync': 'all', 'core.fsyncMethod': 'batch' };

const always: GitSettings = {
  'protocol.allow': 'never',
  'core.hooksPath': '/dev/null',
  'core.fsmonitor': 'false',
  'core.askPass': '/bin/false',
  'submodule.recurse': 'false',
  'fetch.recurseSubmodules': 'false',
  'push.recurseSubmodules': 'no',
  'gc.auto': '0',
  'maintenance.auto': 'false',
  ...onDisk,
  'init.templateDir': '',
  'init.defaultBranch': 'main',
  'safe.bareRepository': 'explicit',
  'transfer.fsckObjects': 'true',
  ...Object.fromEntries(
    ['fetch.fsck', 'fsck'].flatMap((section) => forgiven.map((name) => [`${section}.${name}`, 'ignore'])),
  ),
  // Keep every fetch as a pack: a cut pack can be salvaged, and no folder fills with loose objects.
  'fetch.unpackLimit': '1',
  'fetch.writeCommitGraph': 'false',
  'core.compression': '1',
  // Bounds for the memory of a process, which is limited.
  'core.bigFileThreshold': '32m',
  'core.packedGitWindowSize': '32m',
  'core.packedGitLimit': '256m',
  'core.deltaBaseCacheLimit': '64m',
  'pack.windowMemory': '128m',
  'pack.threads': '2',
};

/** Settings of a call that talks to a remote: only by https, and only through the proxy. */
export function remoteSettings(config: GitConfig, remote: { url: string; proxyUrl: string }): GitSettings {
  return {
    'remote.origin.url': remote.url,
    'protocol.https.allow': 'always',
    'http.proxy': remote.proxyUrl,
    'http.proxyAuthMethod': 'basic',
    // The proxy checks every address, so a redirect reaches no more than a URL could. Plain http is never allowed.
    'http.followRedirects': 'initial',
    'http.lowSpeedLimit': '1000',
    'http.lowSpeedTime': String(config.silenceSeconds),
    'http.sslVerify': 'true',
    'http.cookieFile': '',
    'http.emptyAuth': 'false',
    'http.delegation': 'none',
    'transfer.credentialsInUrl': 'die',
    'credential.useHttpPath': 'true',
  };
}

/** The certificates of the system, in one file. Debian and others have it beside the folder with single files. */
const systemAuthorities = '/etc/ssl/certs/ca-certificates.crt';

/** A folder below the home that is always empty. */
export const noAuthorities = 'no-authorities';

/**
 * Names one file with the trusted authorities. GnuTLS would also read the system's folder, which takes four times as
 * long as the rest of a connection.
 */
function authorities({ caFile }: GitConfig, home: string): Record<string, string> {
  const file = caFile ?? (existsSync(systemAuthorities) ? systemAuthorities : undefined);
  return file === undefined ? {} : { GIT_SSL_CAINFO: file, GIT_SSL_CAPATH: join(home, noAuthorities) };
}

/** The whole environment of a git process. */
export function gitEnvironment(
  config: GitConfig,
  settings: GitSettings,
  options: { home: string; isRemote: boolean },
): Record<string, string> {
  return {
    PATH: path,
    HOME: options.home,
    XDG_CONFIG_HOME: options.home,
    TMPDIR: options.home,
    LC_ALL: 'C',
    GIT_CONFIG_NOSYSTEM: '1',
    GIT_CONFIG_GLOBAL: '/dev/null',
    GIT_ATTR_NOSYSTEM: '1',
    GIT_TERMINAL_PROMPT: '0',
    GIT_ALLOW_PROTOCOL: options.isRemote ? 'https' : '',
    GIT_PROTOCOL_FROM_USER: '0',
    GIT_LFS_SKIP_SMUDGE: '1',
    GIT_ASKPASS: '/bin/false',
    SSH_ASKPASS: '/bin/false',
    GIT_SSH_COMMAND: '/bin/false',
    GIT_NO_REPLACE_OBJECTS: '1',
    GIT_OPTIONAL_LOCKS: '0',
    ...(options.isRemote && authorities(config, options.home)),
    ...asVariables({ ...always, ...settings }),
  };
}

/** Settings as the variables from which git reads them. */
export function asVariables(settings: GitSettings): Record<string, string> {
  const entries = Object.entries(settings);
  const pairs = entries.flatMap(([key, value], at) => [
    [`GIT_CONFIG_KEY_${at}`, key],
    [`GIT_CONFIG_VALUE_${at}`, value],
  ]);
  return { GIT_CONFIG_COUNT: String(entries.length), ...Object.fromEntries(pairs) };
}
