/** What proves or grants something, by its name: credentials, sessions, signatures. */
const secret =
  /authori[sz]ation|cookie|signature|token|secret|passw|credential|(^|-)(access|account|api|auth|functions?|host|master|private|shared|subscription)-?keys?(-|$)|(^|-)(auth|session)(-|$)/;

/**
 * The headers of a delivery that its run is given, by lower-case names: those that are there several times as one list,
 * and none that is a secret.
 */
export function shownHeaders(rawHeaders: readonly string[]): Record<string, string> {
  const shown = new Map<string, string>();
  for (let at = 0; at + 1 < rawHeaders.length; at += 2) {
    const [name = '', value = ''] = [rawHeaders[at]?.toLowerCase(), rawHeaders[at + 1]];
    if (secret.test(name)) continue;
    const known = shown.get(name);
    shown.set(name, known === undefined ? value : `${known}, ${value}`);
  }
  return Object.fromEntries(shown);
}
