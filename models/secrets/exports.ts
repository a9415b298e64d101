/**
 * `export NAME='…'`, from which sh, bash and zsh get the value unchanged. No character is special between single
 * quotes. A single quote in the value closes the quotes, stands escaped, and opens them again.
 */
export function exportStatement(name: string, value: string): string {
  return `export ${name}='${value.replaceAll("'", "'\\''")}'`;
}
