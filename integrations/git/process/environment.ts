import { existsSync } from 'node:fs';
import { join } from 'node:path';
import type { GitConfig } from '../../../config/git.ts';

/** Git's settings for one call, as `GIT_CONFIG_COUNT` has them: argv would show them to every user of the machine. */
export type GitSettings = Readonly<Record<string, string>>;

/** Where git and the few programs that it starts may be; nothing of our own environment is passed on. */
const path = '/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin:/opt/homebrew/bin';

/** Mistakes of old programs that harm nobody, and that well known repositories have. */
const forgiven = ['zeroPaddedFilemode', 'badTimezone', 'missingSpaceBeforeDate'];

/** Git's own default leaves loose objects, refs and the index to the system's memory: a power cut empties them. */
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
  // Always a pack: what arrived of one that was cut can be used, and no folder fills with loose objects.
  'fetch.unpackLimit': '1',
  'fetch.writeCommitGraph': 'false',
  'core.compression': '1',
  // What a process keeps in memory, which is limited.
  'core.bigFileThreshold': '32m',
  'core.packedGitWindowSize': '32m',
  'core.packedGitLimit': '256m',
  'core.deltaBaseCacheLimit': '64m',
  'pack.windowMemory': '128m',
  'pack.threads': '2',
};

/** Settings of a call that talks to a remote, by https and through the proxy alone. */
export function remoteSettings(config: GitConfig, remote: { url: string; proxyUrl: string }): GitSettings {
  return {
    'remote.origin.url': remote.url,
    'protocol.https.allow': 'always',
    'http.proxy': remote.proxyUrl,
    'http.proxyAuthMethod': 'basic',
    // The proxy dials what it has checked, so a redirect leads nowhere that a URL could not; http is not allowed at all.
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

/** Of Debian and others: the same as in the folder with one file for each of them. */
const systemAuthorities = '/etc/ssl/certs/ca-certificates.crt';

/** Below a home, and always empty. */
export const noAuthorities = 'no-authorities';

/**
 * The authorities that are trusted, in one file. GnuTLS would read all of the system's folder beside it, which takes
 * four times as long as the rest of a connection.
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
  const entries = Object.entries({ ...always, ...settings });
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
    GIT_CONFIG_COUNT: String(entries.length),
    ...Object.fromEntries(
      entries.flatMap(([key, value], index) => [
        [`GIT_CONFIG_KEY_${index}`, key],
        [`GIT_CONFIG_VALUE_${index}`, value],
      ]),
    ),
  };
}
