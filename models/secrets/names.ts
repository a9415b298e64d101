import { DomainError } from '../errors.ts';

/**
 * Names that a secret cannot have: `export` would fail for them, change the shell that runs it, or load a stranger's code. Every
 * variable that sh, bash and zsh have of their own is among them (a test asks the shells).
 */
const reserved = new Set(
  `_ ARGC BAUD CDPATH COLUMNS COMPREPLY CPUTYPE DIRSTACK EGID EMACS ENV EPOCHREALTIME EPOCHSECONDS ERRNO EUID FCEDIT FIGNORE FPATH FUNCNAME
  FUNCNEST GID GLOBIGNORE GROUPS HISTCHARS HISTCMD HISTCONTROL HISTFILE HISTFILESIZE HISTIGNORE HISTSIZE HISTTIMEFORMAT HOME
  HOST HOSTNAME HOSTTYPE IFS IGNOREEOF INPUTRC KEYBOARD_HACK KEYTIMEOUT LANG LINENO LINES LISTMAX LOGCHECK LOGNAME MACHTYPE MAIL
  MAILCHECK MAILPATH MANPATH MAPFILE MATCH MBEGIN MEND MODULE_PATH NULLCMD OLDPWD OPTARG OPTERR OPTIND OSTYPE PATH PIPESTATUS
  POSIXLY_CORRECT POSTEDIT PPID PROMPT PROMPT2 PROMPT3 PROMPT4 PROMPT_COMMAND PROMPT_DIRTRIM PROMPT_EOL_MARK PS0 PS1 PS2 PS3 PS4
  PSVAR PWD RANDOM READNULLCMD REPLY REPORTMEMORY REPORTTIME RPROMPT RPROMPT2 RPS1 RPS2 SAVEHIST SECONDS SHELL SHELLOPTS SHLVL
  SPROMPT SRANDOM STTY TERM TERMINFO TERMINFO_DIRS TERM_PROGRAM TIMEFMT TIMEFORMAT TMOUT TMPPREFIX TMPSUFFIX TRY_BLOCK_ERROR
  TRY_BLOCK_INTERRUPT TTY TTYIDLE UID USER USERNAME VENDOR WATCH WATCHFMT WORDCHARS
  functions_source module_path`.split(/\s+/),
);

/** Families of such names. zsh ties lower-case names to its own variables (`path` is `PATH`), so only those with `_` in them pass. */
const reservedPatterns = [
  /^(LD|DYLD|LC|BASH|COMP|ZSH|ZLS|ZDOTDIR|ZLE|READLINE|ATRIUM)(_|$)/,
  /^BASH/,
  /^COPROC/,
  /^[a-z0-9]+$/,
  /^(zsh|dis)_/,
];

/** Throws 422 `RESERVED_SECRET_NAME`. That it is a name at all, the contract has checked. */
export function assertNotReserved(name: string): void {
  if (!isReservedName(name)) return;
  throw new DomainError(
    'unprocessable',
    'RESERVED_SECRET_NAME',
    `${name} means something to the shell. Choose another name.`,
    {
      errors: [{ pointer: 'name', detail: 'is reserved' }],
    },
  );
}

export function isReservedName(name: string): boolean {
  return reserved.has(name) || reservedPatterns.some((pattern) => pattern.test(name));
}
