/** Variables by name. One without a value is not set. */
export type Variables = Readonly<Record<string, string | undefined>>;

/** The words of a line. Quotes keep spaces within a word, and stay for `expanded`. */
export function wordsOf(line: string): string[] {
  return line.match(/(?:\\.|'[^']*'|"(?:\\.|[^"\\])*"|[^\s])+/gs) ?? [];
}

/** Matches what has a meaning in a word: `'…'`, `"…"`, `\c`, `${NAME}`, `${NAME:-…}`, `${NAME:+…}` and `$NAME`. */
const meaning =
  /'(?<raw>[^']*)'|"(?<quoted>(?:\\.|[^"\\])*)"|\\(?<escaped>.)|\$\{(?<braced>\w+)(?::(?<sign>[-+])(?<word>(?:\\.|[^}\\])*))?\}|\$(?<name>\w+)/gs;

/** A word of a Dockerfile as the step gets it: without quotes, and with the values of variables. */
export function expanded(word: string, variables: Variables): string {
  return replaced(word, variables, { inQuotes: false });
}

function replaced(text: string, variables: Variables, { inQuotes }: { inQuotes: boolean }): string {
  return text.replace(meaning, (match: string, ...rest: unknown[]) => {
    const found = rest.at(-1) as Record<string, string | undefined>;
    const { raw, quoted, escaped, braced, sign, word = '', name } = found;
    if (raw !== undefined) return inQuotes ? `'${replaced(raw, variables, { inQuotes })}'` : raw;
    if (quoted !== undefined) return replaced(quoted, variables, { inQuotes: true });
    // Within quotes, a backslash has a meaning before these only.
    if (escaped !== undefined) return inQuotes && !/["$\\]/.test(escaped) ? match : escaped;
    const value = variables[braced ?? name ?? ''];
    if (sign === undefined) return value ?? '';
    const isSet = value !== undefined && value !== '';
    if (sign === '-') return isSet ? value : replaced(word, variables, { inQuotes });
    return isSet ? replaced(word, variables, { inQuotes }) : '';
  });
}

/** The text as one word for a shell. */
export function quoted(text: string): string {
  return `'${text.replaceAll("'", "'\\''")}'`;
}

/** A list of words as a command for a shell. */
export function commandOf(words: readonly string[]): string {
  return `exec ${words.map(quoted).join(' ')}`;
}

/** A JSON list of strings, as instructions may have instead of words. Undefined if the text is none. */
export function listOf(text: string): string[] | undefined {
  if (!text.trimStart().startsWith('[')) return undefined;
  try {
    const list: unknown = JSON.parse(text);
    return Array.isArray(list) && list.every((each) => typeof each === 'string') ? list : undefined;
  } catch {
    return undefined;
  }
}
