import { onDisk } from '../process/environment.ts';

/** Settings that hold whatever a repository’s own say: nothing of these would be waited for, or belongs to us. */
const settings: Readonly<Record<string, string>> = {
  'color.ui': 'false',
  'core.fsmonitor': 'false',
  'core.hooksPath': '/dev/null',
  'core.logAllRefUpdates': 'true',
  'core.pager': 'cat',
  'core.quotePath': 'false',
  'commit.gpgSign': 'false',
  'gc.auto': '0',
  ...onDisk,
  'init.templateDir': '',
  'log.showSignature': 'false',
  'maintenance.auto': 'false',
  'merge.verifySignatures': 'false',
  'submodule.recurse': 'false',
  'tag.gpgSign': 'false',
};

/**
 * What git in a computer is run with, beside the computer’s own variables. It is in a sandbox with what the tenant has
 * written, so this keeps it quiet and quick; it does not make it safe.
 */
export const treeEnvironment: Readonly<Record<string, string>> = {
  LC_ALL: 'C',
  GIT_TERMINAL_PROMPT: '0',
  GIT_ASKPASS: '/bin/false',
  SSH_ASKPASS: '/bin/false',
  GIT_EDITOR: '/bin/false',
  GIT_PAGER: 'cat',
  GIT_LFS_SKIP_SMUDGE: '1',
  // What a partial clone lacks is brought by the mirror; a remote of the tree's own settings is asked for nothing.
  GIT_ALLOW_PROTOCOL: 'none',
  GIT_NO_LAZY_FETCH: '1',
  GIT_CONFIG_COUNT: String(Object.keys(settings).length),
  ...Object.fromEntries(
    Object.entries(settings).flatMap(([key, value], index) => [
      [`GIT_CONFIG_KEY_${index}`, key],
      [`GIT_CONFIG_VALUE_${index}`, value],
    ]),
  ),
};
