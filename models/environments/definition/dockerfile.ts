import { posix } from 'node:path';
import type { EnvironmentStep } from '../steps.ts';
import type { Definition } from './definition.ts';
import { badLine, type Instruction, instructionsOf } from './lines.ts';
import { commandOf, expanded, listOf, quoted, type Variables, wordsOf } from './words.ts';

/** What an image says about containers, and an environment does not. */
const withoutMeaning = new Set(
  'CMD ENTRYPOINT EXPOSE HEALTHCHECK LABEL MAINTAINER ONBUILD STOPSIGNAL VOLUME'.split(' '),
);

export interface DockerfileOptions {
  /** The path of the drive's folder whose files are copied. */
  context?: string | undefined;
  /** Values of `ARG`s, instead of their defaults. */
  args?: Readonly<Record<string, string>> | undefined;
}

/** An environment that a Dockerfile describes. Throws 422 `DOCKERFILE_INVALID`, naming the line. */
export function fromDockerfile(text: string, options: DockerfileOptions = {}): Definition {
  const reader = new Reader(options);
  for (const instruction of instructionsOf(text)) reader.read(instruction);
  return reader.end();
}

class Reader {
  readonly #options: DockerfileOptions;
  readonly #steps: EnvironmentStep[] = [];
  readonly #warnings: string[] = [];
  /** `ARG`s before `FROM`, which only that sees. */
  readonly #before: Record<string, string | undefined> = {};
  readonly #args: Record<string, string | undefined> = {};
  readonly #env: Record<string, string> = {};
  readonly #readers: Readonly<Record<string, (instruction: Instruction) => void>> = {
    FROM: (instruction) => this.#from(instruction),
    ARG: (instruction) => this.#arg(instruction),
    RUN: (instruction) => this.#run(instruction),
    COPY: (instruction) => this.#copy(instruction),
    ADD: (instruction) => this.#copy(instruction),
    ENV: (instruction) => this.#setEnv(instruction),
    WORKDIR: ({ rest }) => void this.#steps.push({ workdir: this.#expanded(rest) }),
    USER: ({ line, rest }) => void this.#steps.push({ user: userOf(line, this.#expanded(rest)) }),
  };
  #base: string | undefined;

  constructor(options: DockerfileOptions) {
    this.#options = options;
  }

  end(): Definition {
    if (this.#base === undefined) throw badLine(1, 'there is no FROM');
    return { base: this.#base, steps: this.#steps, warnings: this.#warnings };
  }

  read(instruction: Instruction): void {
    const { line, keyword, rest } = instruction;
    if (this.#base === undefined && keyword !== 'FROM' && keyword !== 'ARG') throw badLine(line, 'FROM comes first');
    if (withoutMeaning.has(keyword)) this.#warn(line, keyword);
    else if (rest === '') throw badLine(line, `${keyword} says nothing`);
    else if (keyword === 'SHELL') throw badLine(line, 'the shell is always /bin/sh; call another one in RUN');
    else {
      const reads = this.#readers[keyword];
      if (reads === undefined) throw badLine(line, `there is no instruction ${keyword}`);
      reads(instruction);
    }
  }

  get #variables(): Variables {
    return { ...this.#args, ...this.#env };
  }

  #warn(line: number, what: string): void {
    this.#warnings.push(`Line ${line}: ${what} has no meaning here.`);
  }

  #expanded(word: string): string {
    return expanded(word, this.#variables);
  }

  #from({ line, rest }: Instruction): void {
    if (this.#base !== undefined) throw badLine(line, 'a Dockerfile with several stages is not supported');
    const [image = '', as, name, ...more] = wordsOf(rest);
    if (image.startsWith('--')) throw badLine(line, `${image} is not supported`);
    const isNamed = as === undefined || (as.toUpperCase() === 'AS' && name !== undefined);
    if (image === '' || !isNamed || more.length > 0) throw badLine(line, 'write FROM and one base');
    this.#base = baseOf(expanded(image, this.#before));
  }

  #arg({ line, rest }: Instruction): void {
    for (const word of wordsOf(rest)) {
      const [, name = '', value] = /^([A-Za-z_]\w*)(?:=(.*))?$/s.exec(word) ?? [];
      if (name === '') throw badLine(line, 'write ARG NAME=value');
      const scope = this.#base === undefined ? this.#before : this.#args;
      const inherited = this.#base === undefined ? undefined : this.#before[name];
      const usual =
        value === undefined ? inherited : expanded(value, this.#base === undefined ? this.#before : this.#variables);
      scope[name] = this.#options.args?.[name] ?? usual;
    }
  }

  #run({ line, rest }: Instruction): void {
    const { flags, rest: command } = flagsOf(rest);
    for (const flag of flags) {
      if (!/^--mount=(\S*,)?type=cache(,|$)/.test(flag)) throw badLine(line, `${flag} is not supported`);
      this.#warn(line, flag);
    }
    requireNoHereDocument(line, command);
    const list = listOf(command);
    const exports = Object.entries(this.#args)
      .filter(([name, value]) => value !== undefined && !(name in this.#env))
      .map(([name, value = '']) => `export ${name}=${quoted(value)}\n`);
    this.#steps.push({ run: exports.join('') + (list === undefined ? command : commandOf(list)) });
  }

  #copy({ line, keyword, rest }: Instruction): void {
    const { flags, rest: paths } = flagsOf(rest);
    const owner = ownerOf(
      line,
      flags.map((flag) => this.#expanded(flag)),
    );
    requireNoHereDocument(line, paths);
    const words = listOf(paths) ?? wordsOf(paths);
    const to = this.#expanded(words.at(-1) ?? '');
    const sources = words.slice(0, -1).map((word) => this.#expanded(word));
    if (sources.length === 0) throw badLine(line, `write ${keyword} and at least two paths`);
    if (sources.length > 1 && !to.endsWith('/')) throw badLine(line, 'several files go to a folder with / at its end');
    const { context } = this.#options;
    if (context === undefined) throw badLine(line, 'name the folder of the drive as contextFolderId');
    for (const source of sources) {
      if (/^[a-z][a-z0-9+.-]*:\/\/|^git@/i.test(source)) throw badLine(line, 'fetch files by RUN');
      if (/[*?[]/.test(source)) throw badLine(line, 'wildcards are not supported; copy the folder or name the files');
      if (keyword === 'ADD' && /\.(tar|tgz|tbz2?|txz|tar\.\w+)$/.test(source)) {
        throw badLine(line, 'archives are not unpacked; write COPY, and RUN tar');
      }
      const from = posix.join('/', context, posix.resolve('/', source));
      this.#steps.push({ copy: { from, to, ...(owner !== undefined && { owner }) } });
    }
  }

  #setEnv({ line, rest }: Instruction): void {
    const words = wordsOf(rest);
    const [first = ''] = words;
    // The old form sets one variable to all that follows.
    const pairs = first.includes('=') ? words : [rest.replace(/\s+/, '=')];
    const variables = this.#variables;
    const env: Record<string, string> = {};
    for (const pair of pairs) {
      const [, name = '', value] = /^([A-Za-z_]\w{0,127})=(.*)$/s.exec(pair) ?? [];
      if (value === undefined) throw badLine(line, 'write ENV NAME=value');
      env[name] = expanded(value, variables);
    }
    Object.assign(this.#env, env);
    this.#steps.push({ env });
  }
}

/** The base that an image stands for. Other names may be those of environments. */
export function baseOf(image: string): string {
  const debian = /^(?:docker\.io\/)?(?:library\/)?debian(?::(?:bookworm(?:-\d{8})?|12(?:\.\d+)?)(?:-slim)?)?$/;
  return debian.test(image) ? 'debian' : image;
}

/** The words that begin with `--`, and what follows them. */
function flagsOf(text: string): { flags: string[]; rest: string } {
  const [, begin = '', rest = ''] = /^((?:--\S+\s+)*)(.*)$/s.exec(text) ?? [];
  return { flags: wordsOf(begin), rest };
}

function ownerOf(line: number, flags: readonly string[]): string | undefined {
  let owner: string | undefined;
  for (const flag of flags) {
    const [name, value = ''] = flag.split(/=(.*)/s);
    if (name === '--chown') owner = userOf(line, value);
    else if (name !== '--link') throw badLine(line, `${name} is not supported`);
  }
  return owner;
}

function userOf(line: number, text: string): string {
  if (!/^[a-z_0-9][a-z0-9_-]{0,31}(:[a-z_0-9][a-z0-9_-]{0,31})?$/.test(text)) {
    throw badLine(line, `${text} is no name of a user`);
  }
  return text;
}

function requireNoHereDocument(line: number, text: string): void {
  if (/<<-?\s*["']?[A-Za-z_]/.test(text)) {
    throw badLine(line, 'here-documents are not supported; continue lines with a backslash');
  }
}
