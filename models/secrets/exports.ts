/**
 * `export NAME='…'`, which gives sh, bash and zsh the value as it is. Nothing means anything between single quotes; a
 * single quote itself ends them, stands escaped, and begins them again.
 */
export function exportStatement(name: string, value: string): string {
  return `export ${name}='${value.replaceAll("'", "'\\''")}'`;
}
