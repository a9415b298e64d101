import { asVariables, onDisk } from '../process/environment.ts';

/** Settings that override a repository’s own: git never waits for input, and signs nothing. */
const settings = {
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
 * Variables for git in a computer, beside the computer’s own. They keep git quiet and quick. They do not make it safe:
 * git runs in a sandbox, on files of the tenant.
 */
export const treeEnvironment: Readonly<Record<string, string>> = {
  LC_ALL: 'C',
  GIT_TERMINAL_PROMPT: '0',
  GIT_ASKPASS: '/bin/false',
  SSH_ASKPASS: '/bin/false',
  GIT_EDITOR: '/bin/false',
  GIT_PAGER: 'cat',
  GIT_LFS_SKIP_SMUDGE: '1',
  // The mirror brings the objects that a partial clone lacks. Git never talks to a remote in the tree's own settings.
  GIT_ALLOW_PROTOCOL: 'none',
  GIT_NO_LAZY_FETCH: '1',
  ...asVariables(settings),
};
