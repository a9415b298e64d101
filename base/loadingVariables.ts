import { DomainError } from './errors.ts';

const words = (text: string): ReadonlySet<string> => new Set(text.split(/\s+/));

/**
 * Variables that make a program load or run code that it would not load by itself. They are refused for a computer, a
 * command and an app's component, where they would change what other people's programs do. A command can still set them
 * itself.
 */
const names = words(
  `ENV SHELLOPTS BASHOPTS PS4 PROMPT_COMMAND ZDOTDIR
  GCONV_PATH GLIBC_TUNABLES LOCPATH MALLOC_TRACE OPENSSL_CONF OPENSSL_ENGINES OPENSSL_MODULES
  NODE_OPTIONS NODE_PATH NODE_REPL_EXTERNAL_MODULE BUN_OPTIONS BUN_INSPECT_PRELOAD ELECTRON_RUN_AS_NODE
  PYTHONSTARTUP PYTHONPATH PYTHONHOME PYTHONINSPECT PYTHONUSERBASE PYTHONBREAKPOINT PYTHONWARNINGS PYTHONPLATLIBDIR
  PYTHONEXECUTABLE
  PERL5OPT PERL5LIB PERL5DB PERLLIB RUBYOPT RUBYLIB PHPRC PHP_INI_SCAN_DIR TCLLIBPATH
  JAVA_TOOL_OPTIONS JDK_JAVA_OPTIONS _JAVA_OPTIONS CLASSPATH DOTNET_STARTUP_HOOKS DOTNET_ADDITIONAL_DEPS
  CORECLR_PROFILER_PATH
  ERL_FLAGS ERL_AFLAGS ERL_ZFLAGS ERL_LIBS ELIXIR_ERL_OPTIONS RUSTC_WRAPPER RUSTC_WORKSPACE_WRAPPER GOFLAGS MAKEFILES
  SSH_ASKPASS SUDO_ASKPASS LESSOPEN LESSCLOSE`,
);
const patterns = [
  /^(LD|DYLD)_/,
  /^BASH_(ENV|FUNC_)/,
  /^LUA_(INIT|PATH|CPATH)/,
  // All of git's variables except a commit's identities, and usual names for stored credentials.
  /^GIT_(?!(AUTHOR|COMMITTER)_(NAME|EMAIL|DATE)$|TERMINAL_PROMPT$|(\w+_)?(TOKEN|PAT|PASSWORD|SECRET|USER|USERNAME)$)/,
];

export function isLoadingVariable(name: string): boolean {
  return names.has(name) || patterns.some((pattern) => pattern.test(name));
}

/** The environment without these variables. */
export function withoutLoading(env: Record<string, string>): Record<string, string> {
  return Object.fromEntries(Object.entries(env).filter(([name]) => !isLoadingVariable(name)));
}

export function whyRefused(name: string): string {
  return `${name} can make programs load other code, so it is not allowed here; set it in the command`;
}

/** Throws 422 `VARIABLE_REFUSED`, naming each refused variable. */
export function requireNoLoading(env: Record<string, string> | undefined): void {
  const refused = Object.keys(env ?? {}).filter(isLoadingVariable);
  if (refused.length === 0) return;
  throw new DomainError(
    'unprocessable',
    'VARIABLE_REFUSED',
    `These variables are not allowed: ${refused.join(', ')}.`,
    {
      errors: refused.map((name) => ({ pointer: `/env/${name}`, detail: whyRefused(name) })),
    },
  );
}
